"""A user's home in containers: one named volume of this cluster, which outlives every container of theirs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_scheduler.job.folders import volume_part


def home_volume(instance: str, user: str) -> str:
    """Name the volume of a user; no two users have the same, whatever they are called."""
    return f"pai-home-{instance}-{volume_part(user)}"


def home_mount(volume: str, place: str, labels: Mapping[str, str]) -> dict[str, Any]:
    """Describe the mount of a user's home for Docker's API.

    Docker makes the volume with the container where there is none yet, with these labels, and fills it with
    what the image has at that place, ownership included. It removes no volume that has a name.
    """
    return {
        "Type": "volume",
        "Source": volume,
        "Target": place,
        "ReadOnly": False,
        "VolumeOptions": {"Labels": dict(labels)},
    }


def kept_volumes(found: Mapping[str, Any]) -> frozenset[str]:
    """Name the volumes of a container that Docker described which outlive it."""
    mounts = found["HostConfig"].get("Mounts") or ()
    return frozenset(str(mount["Source"]) for mount in mounts if mount["Type"] == "volume")
