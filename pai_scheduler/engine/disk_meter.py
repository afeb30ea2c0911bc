"""How much disk a task's folder takes: measured again and again, at a cost that stays bounded.

A folder of a million files takes seconds to go through, so that is done in short slices on a thread of its
own, and the pause between two measurements grows with what the last one cost.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pai_scheduler.job.messages import Message, msg

#: Entries of a folder that are looked at in one slice, and the part of the time that slices may take.
_SLICE, _SHARE = 1000, 0.05
#: Seconds between two measurements of one folder at least.
LEAST_PAUSE = 1.0
_GB = 2**30
#: What a task without any disk may write: Docker itself leaves some entries in its container.
_LEAST_LIMIT = 2**20
_BLOCK = 512


def is_beyond(size: int, gb: int) -> bool:
    """Return whether so many bytes are more than a limit in GB (2^30 bytes, as Docker's own quotas)."""
    return size > max(gb * _GB, _LEAST_LIMIT)


def filled_the_disk() -> Message:
    """Return why a task was ended that kept within its own limits."""
    return msg(
        "A disk of the machine was full, and of all tasks this one was filling it fastest with its log and "
        "its files, so it was ended. Write less, or ask the administrator for a larger disk."
    )


def size_of(folder: Path) -> int:
    """Return what a folder of few files takes on its disk, in bytes."""
    size = 0
    for size in sizes(folder):  # noqa: B007 - the last one counts
        pass
    return size


class DiskMeter:
    """Measures folders, all on one thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "disk-meter")
        self._measuring = 0

    async def follow(self, *folders: Path) -> AsyncIterator[int]:
        """Return the size of folders together, in bytes, again and again."""
        self._measuring += 1
        try:
            while True:
                cost = 0.0
                size = 0
                slices = sizes(*folders)
                while True:
                    found, seconds = await self._run(slices)
                    if found is None:
                        break
                    size, cost = found, cost + seconds
                    await asyncio.sleep(seconds / _SHARE)
                yield size
                await asyncio.sleep(max(LEAST_PAUSE, self._measuring * cost / _SHARE))
        finally:
            self._measuring -= 1

    def close(self) -> None:
        """End the thread that measures."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _run(self, slices: Iterator[int]) -> tuple[int | None, float]:
        def step() -> tuple[int | None, float]:
            begin = time.monotonic()
            return next(slices, None), time.monotonic() - begin

        return await asyncio.get_running_loop().run_in_executor(self._thread, step)


def sizes(*folders: Path) -> Iterator[int]:
    """Go through folders; return what was found so far (bytes on disk), slice by slice, the whole at last.

    A file with several names counts once. What vanishes or may not be looked at meanwhile counts nothing;
    other file systems that are mounted inside are not gone into.
    """
    total = looked = 0
    linked: set[tuple[int, int]] = set()
    waiting: list[tuple[str, int]] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            waiting.append((str(folder), folder.stat().st_dev))
    while waiting:
        path, device = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                looked += 1
                if looked % _SLICE == 0:
                    yield total
                try:
                    info = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                if info.st_dev != device:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    waiting.append((entry.path, device))
                elif info.st_nlink > 1:
                    if (device, info.st_ino) in linked:
                        continue
                    linked.add((device, info.st_ino))
                total += info.st_blocks * _BLOCK
    yield total
