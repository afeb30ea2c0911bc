"""Volumes of containers: homes, shared folders, and the disk that a container takes."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pai_scheduler.cluster.shared_folders import SharedMount
from pai_scheduler.engine.disk_usage import DiskMeter
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import volume_part

from .client import DockerApi

# A user's home in containers: one named volume of this cluster, which outlives every container of theirs.

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


# Folders and volumes of the machine that an administrator shares with a task's user, in its container.


def shared_mount(mount: SharedMount) -> dict[str, Any]:
    """Describe the mount of a shared folder for Docker's API.

    What may only be read is mounted without the file systems that are mounted within it: Docker's read-only
    (before version 25 always, later on old kernels) does not hold for them.
    """
    described: dict[str, Any] = {
        "Type": "volume" if mount.is_volume else "bind",
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }
    if mount.read_only and not mount.is_volume:
        described["BindOptions"] = {"NonRecursive": True}
    return described


def make_missing(mounts: Sequence[SharedMount]) -> None:
    """Make the folders that are to be made, open to every image's user; OSError.

    Who else is on the machine is kept out by the folder around them, as with homes.
    """
    for mount in mounts:
        if mount.create:
            folder = Path(mount.source)
            try:
                folder.mkdir()
            except FileExistsError:
                continue
            folder.chmod(0o777)


def find_missing(mounts: Sequence[SharedMount], error: str) -> SharedMount | None:
    """Return which of the mounts Docker refuses because its folder is not on the machine."""
    return next(
        (
            mount
            for mount in mounts
            if not mount.is_volume and error.endswith(f"bind source path does not exist: {mount.source}")
        ),
        None,
    )


# How much disk a container takes: its writable layer and its volumes, measured again and again.
#
# Where the folders of the storage driver can be looked into (overlay2, and the rights for it) they are
# measured as the process engine does it. Elsewhere the daemon is asked, which knows the writable layer only
# and counts a file with holes as if it were full.

#: Seconds between two questions to the daemon at least, and the part of the time that it may spend on them.
_LEAST_PAUSE, _SHARE = 10.0, 0.05
_GB = 2**30

LABEL_STORAGE = "pai.storage-gb"


class ContainerDisks:
    """Measures the disks of one daemon's containers. `is_local`: its folders are on this machine."""

    def __init__(self, api: DockerApi, *, is_local: bool) -> None:
        self._api, self._is_local = api, is_local
        self._meter = DiskMeter()
        self._asking = asyncio.Lock()

    async def follow(self, found: Mapping[str, Any]) -> AsyncIterator[int]:
        """Return the bytes on the disk of a container that Docker described, again and again."""
        folders = _folders(found) if self._is_local else ()
        sizes = self._meter.follow(*folders) if folders else self._ask(str(found["Id"]))
        async for size in sizes:
            yield size

    def close(self) -> None:
        """End the thread that measures."""
        self._meter.close()

    async def _ask(self, container: str) -> AsyncIterator[int]:
        while True:
            # one after the other: the daemon goes through all of a container's files for this
            async with self._asking:
                begin = time.monotonic()
                size = await self._api.size(container)
                cost = time.monotonic() - begin
            if size is not None:
                yield size
            await asyncio.sleep(max(_LEAST_PAUSE, cost / _SHARE))


def storage_gb(found: Mapping[str, Any]) -> int | None:
    """Return the GB that a container may write, where that is ours to watch; None where it is not."""
    if found["HostConfig"].get("StorageOpt"):  # the storage driver sees to it
        return None
    limit = found["Config"]["Labels"].get(LABEL_STORAGE)
    return None if limit is None else int(limit)


def _folders(found: Mapping[str, Any]) -> tuple[Path, ...]:
    """Find the folders of a container's writable layer and volumes; none where they cannot be looked into.

    A volume that outlives the container, its user's home, does not count.
    """
    driver = found.get("GraphDriver") or {}
    upper = (driver.get("Data") or {}).get("UpperDir")
    kept = kept_volumes(found)
    volumes = [
        mount["Source"]
        for mount in found.get("Mounts") or ()
        if mount["Type"] == "volume" and mount["Name"] not in kept
    ]
    folders = [upper, *volumes] if upper else []
    if not all(os.access(folder, os.R_OK | os.X_OK) for folder in folders):
        return ()
    return tuple(map(Path, folders))
