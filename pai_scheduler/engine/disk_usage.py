"""Disk use of tasks' folders, and the end of the task that fills a disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.task import TaskRef

from .protocol import Engine

# How much disk a task's folder takes: measured again and again, at a cost that stays bounded.
#
# A folder of a million files takes seconds to go through, so that is done in short slices on a thread of
# its own, and the pause between two measurements grows with what the last one cost. One that has not
# changed is looked at again when its disk has filled further, or after a while, so that many quiet tasks
# cost no more than a question about their disk.

#: Entries of a folder that are looked at in one slice, the part of the time that slices may take, and the
#: seconds after which none more is begun in one step.
_SLICE, _SHARE, _STEP_SECONDS = 1000, 0.05, 0.001
#: Seconds between two measurements of one folder at least.
LEAST_PAUSE = 1.0
#: Seconds between two measurements of a folder that does not change, at most; and by how many bytes its disk
#: must have filled further to look at once.
_QUIET_PAUSE, _GROWTH = 10.0, 2**24
_GB = 2**30
#: What a task without any disk may write: Docker itself leaves some entries in its container.
_LEAST_LIMIT = 2**20
_BLOCK = 512

T = TypeVar("T")


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


#: By device: a folder on it, and the bytes in use there.
_Levels = dict[int, tuple[Path, int]]


@dataclass(eq=False, frozen=True, slots=True)
class _Quiet:
    """Somebody who waits until `since` at least, then until a disk has filled further than to `levels`, or
    until `until` (loop times)."""

    levels: _Levels
    since: float
    until: float
    woken: asyncio.Event = field(default_factory=asyncio.Event)

    def is_over(self, now: float, used: dict[int, int]) -> bool:
        """Return whether it has waited enough, where so many bytes of each device are in use."""
        if now < self.since:
            return False
        return now >= self.until or any(
            used.get(device, level) - level >= _GROWTH for device, (_, level) in self.levels.items()
        )


class _Look:
    """One measurement of folders, in steps. `cost`: seconds that it took so far."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders, self._slices = folders, sizes(*folders)
        self.levels: _Levels = {}
        self.size, self.cost, self.is_whole = 0, 0.0, False

    def step(self) -> float:
        """Look at a slice, or all of a small folder; return the seconds that it took. Blocks."""
        begin = time.monotonic()
        if not self.levels:  # first, so that nothing is written unseen between the one and the other
            self.levels = _levels(self._folders)
        while not self.is_whole and time.monotonic() - begin < _STEP_SECONDS:
            found = next(self._slices, None)
            self.size, self.is_whole = self.size if found is None else found, found is None
        took = time.monotonic() - begin
        self.cost += took
        return took


class DiskMeter:
    """Measures folders, all on one thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "disk-meter")
        self._measuring = 0
        self._quiet: set[_Quiet] = set()
        self._waking: asyncio.Task[None] | None = None

    async def follow(self, *folders: Path) -> AsyncIterator[int]:
        """Return the size of folders together, in bytes, again and again."""
        self._measuring += 1
        before = -1
        try:
            while True:
                look = _Look(folders)
                while not look.is_whole:
                    seconds = await self._in_thread(look.step)
                    if not look.is_whole:
                        await asyncio.sleep(seconds / _SHARE)
                size = look.size
                yield size
                pause = max(LEAST_PAUSE, self._measuring * look.cost / _SHARE)
                if size == before:
                    await self._until_fuller(look.levels, pause, max(pause, _QUIET_PAUSE))
                else:
                    await asyncio.sleep(pause)
                before = size
        finally:
            self._measuring -= 1

    def close(self) -> None:
        """End the thread that measures."""
        if self._waking is not None:
            self._waking.cancel()
        self._thread.shutdown(wait=False, cancel_futures=True)

    async def _in_thread(self, function: Callable[..., T], *args: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, function, *args)

    async def _until_fuller(self, levels: _Levels, least: float, most: float) -> None:
        """Wait until one of the disks is fuller than it was, so many seconds at least and at most."""
        now = asyncio.get_running_loop().time()
        quiet = _Quiet(levels, now + least, now + most)
        self._quiet.add(quiet)
        if self._waking is None or self._waking.done():
            self._waking = asyncio.create_task(self._wake())
        try:
            await quiet.woken.wait()
        finally:
            self._quiet.discard(quiet)

    async def _wake(self) -> None:
        """Ask the disks, each once for all who wait, and wake who has waited enough."""
        while self._quiet:
            await asyncio.sleep(LEAST_PAUSE)
            places = {device: place for quiet in self._quiet for device, (place, _) in quiet.levels.items()}
            used = await self._in_thread(_all_used, places)
            now = asyncio.get_running_loop().time()
            for quiet in self._quiet:
                if quiet.is_over(now, used):
                    quiet.woken.set()


def _levels(folders: Sequence[Path]) -> _Levels:
    """Ask the disks of folders how full they are; of a folder that is gone, there is nothing to ask."""
    levels: _Levels = {}
    for folder in folders:
        with contextlib.suppress(OSError):
            levels.setdefault(folder.stat().st_dev, (folder, _used(folder)))
    return levels


def _all_used(places: Mapping[int, Path]) -> dict[int, int]:
    used: dict[int, int] = {}
    for device, place in places.items():
        with contextlib.suppress(OSError):
            used[device] = _used(place)
    return used


def _used(folder: Path) -> int:
    """Return the bytes in use on a folder's file system."""
    told = os.statvfs(folder)
    return (told.f_blocks - told.f_bfree) * told.f_frsize


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


# Ends the task that fills a disk, while there is still some room on it.

_log = logging.getLogger(__name__)

#: Tasks are ended where less than this part of what is to stay free is free.
_ENDING_PART = 0.5
#: How often it is written down how much each task has, as long as there is room.
_LOOKS_BETWEEN = 10
#: After one task was ended for it: until there may be room again, and the next one is looked for.
_PATIENCE_SECONDS = 5.0
#: A task that has written less is no reason for a full disk.
_LEAST_GROWTH = 2**20


class DiskWatch:
    """Looks at the disks of one machine, and knows how much each task of `engine` had when there was room.

    `part_free` returns what is free there as a part of what is to stay free: 1.0 and more is enough.
    `least_free`: the bytes that are to stay free on the smallest of the disks.
    """

    def __init__(self, engine: Engine, part_free: Callable[[], float], least_free: int) -> None:
        self._engine, self._part_free = engine, part_free
        self._least_growth = min(_LEAST_GROWTH, least_free // 2)
        #: what each task had when there was room, or when the first were seen; None: not known yet
        self._before: Mapping[TaskRef, int] | None = None
        self._looks = 0
        self._patient_until = 0.0

    async def look(self) -> float:
        """Return `part_free`; where that is less than half, end the task that has grown most."""
        part = self._part_free()
        if self._before is None:
            # what runs since before this service does may have all it has for long: nobody is ended for that
            sizes = await self._engine.disk_use()
            self._before = sizes if sizes or part >= 1 else None
        elif part < _ENDING_PART and time.monotonic() >= self._patient_until:
            await self._end_the_fastest(self._before)
        elif part >= 1 and self._looks % _LOOKS_BETWEEN == 0:
            self._before = await self._engine.disk_use()
        self._looks += 1
        return part

    async def _end_the_fastest(self, before: Mapping[TaskRef, int]) -> None:
        now = await self._engine.disk_use()
        growth = {task: size - before.get(task, 0) for task, size in now.items()}
        fastest = max(growth, key=growth.__getitem__, default=None)
        if fastest is None or growth[fastest] < self._least_growth:
            return
        _log.error("a disk is full; ending %s, which has grown by %d bytes", fastest.name, growth[fastest])
        await self._engine.end_for_room(fastest)
        self._before = now
        self._patient_until = time.monotonic() + _PATIENCE_SECONDS
