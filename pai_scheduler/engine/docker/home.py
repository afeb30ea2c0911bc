"""A user's home in containers: one named volume of this cluster, which outlives every container of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import volume_part

#: Docker's own kind of volumes, the only one of which it is known how they are limited.
_DRIVER = "local"
#: The volume by which it is found out whether homes can be limited.
PROBE = "pai-home-probe"


def home_volume(instance: str, user: str) -> str:
    """Name the volume of a user; no two users have the same, whatever they are called."""
    return f"pai-home-{instance}-{volume_part(user)}"


def home_mount(
    volume: str, place: str, labels: Mapping[str, str], options: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Describe the mount of a user's home for Docker's API.

    Docker makes the volume with the container where there is none yet, with these labels, and fills it with
    what the image has at that place, ownership included. It removes no volume that has a name.
    `options`: those of the driver for a volume that is made; one that is there stays as it is.
    """
    made_with = {"DriverConfig": {"Name": _DRIVER, "Options": dict(options)}} if options else {}
    return {
        "Type": "volume",
        "Source": volume,
        "Target": place,
        "ReadOnly": False,
        "VolumeOptions": {"Labels": dict(labels), **made_with},
    }


def size_options(gb: int) -> Mapping[str, str]:
    """Return the driver's options for volumes of so many GB (of 2³⁰ bytes) at most."""
    return {"size": f"{gb}G"}


def cannot_limit(folder: str, error: str) -> Message:
    """Say that Docker makes no volumes of a limited size."""
    return msg(
        "Docker cannot limit how large homes become (--home-gb): {error}. Its folder {folder} has to be on "
        "an XFS that is mounted with pquota. Without --home-gb homes have no limit.",
        error=error,
        folder=folder,
    )


def kept_volumes(found: Mapping[str, Any]) -> frozenset[str]:
    """Name the volumes of a container that Docker described which outlive it."""
    mounts = found["HostConfig"].get("Mounts") or ()
    return frozenset(str(mount["Source"]) for mount in mounts if mount["Type"] == "volume")
