"""How much disk a container takes: its writable layer and its volumes, measured again and again.

Where the folders of the storage driver can be looked into (overlay2, and the rights for it) they are
measured as the process engine does it. Elsewhere the daemon is asked, which knows the writable layer only
and counts a file with holes as if it were full.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

from pai_scheduler.engine.disk_meter import DiskMeter

from .connection import DockerApi
from .home import kept_volumes

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
