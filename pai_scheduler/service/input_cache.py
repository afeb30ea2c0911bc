"""Folders of the storage that jobs need on this machine, fetched once per job and kept until it has ended."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import shutil
from collections.abc import AsyncIterator, Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus

#: files of one folder that are read at once
_PARALLEL_READS = 8
#: entries of a folder that are asked for at once
_PAGE = 1000
_PARTS, _BOOT = ".parts", ".boot"
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a staged folder may hold: MB are 10^6 bytes. `too_large(mb, files)` says that it is more."""

    mb: int
    files: int
    too_large: Callable[[int, int], Message]

    def check(self, length: int, files: int) -> None:
        """Refuse (TOO_LARGE) what is more."""
        if length > self.mb * 10**6 or files > self.files:
            raise StorageError(Problem.TOO_LARGE, self.too_large(-(-length // 10**6), files))


class FolderCache:
    """Keeps `<folder>/<job id>/<name>`, which nobody changes: either all of what was fetched, or nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count()
        #: jobs that have something here
        self._jobs: set[str] = set()

    async def fetch(
        self, files: Files, principal: Principal, path: StoragePath, limit: Limit, job_id: str, name: str
    ) -> Path:
        """Return the copy of a folder that a job has under a name, made now if need be; StorageError."""
        self._jobs.add(job_id)
        place = self._folder / job_id / name
        if await asyncio.to_thread(place.exists):
            return place
        summary = await files.summary(principal, path)
        limit.check(summary.length, summary.files)
        part = self._folder / _PARTS / f"{job_id}-{next(self._numbers)}"
        try:
            await asyncio.to_thread(part.mkdir, parents=True)
            await _Fetch(files, principal, limit).fetch(path, part)
            await asyncio.to_thread(_settle, part, place)
        except OSError as error:
            raise _not_kept(path, error) from error
        finally:
            await asyncio.to_thread(remove_tree, part)
        return place

    def keeps(self, job_id: str) -> bool:
        """Return whether a job may have something here."""
        return job_id in self._jobs

    async def forget(self, job_id: str) -> None:
        """Remove what a job had; nothing is no error."""
        await asyncio.to_thread(remove_tree, self._folder / job_id)
        self._jobs.discard(job_id)

    async def keep_only(self, jobs: Collection[str]) -> None:
        """Remove what other jobs than these had, and what was not fetched to its end."""
        self._jobs = await asyncio.to_thread(self._clean, jobs)

    def _clean(self, jobs: Collection[str]) -> set[str]:
        self._folder.mkdir(parents=True, exist_ok=True)
        # after a crash of the machine a file may be there without its contents
        boot = _BOOT_ID.read_text().strip() if _BOOT_ID.exists() else ""
        mark = self._folder / _BOOT
        same = mark.exists() and mark.read_text() == boot
        kept = set()
        for entry in list(self._folder.iterdir()):
            if same and entry.name in jobs:
                kept.add(entry.name)
            elif entry != mark:
                remove_tree(entry)
        mark.write_text(boot)
        return kept


class _Fetch:
    """One folder on its way here: what was read of it so far is counted, as it may grow meanwhile."""

    def __init__(self, files: Files, principal: Principal, limit: Limit) -> None:
        self._files, self._principal, self._limit = files, principal, limit
        self._slots = asyncio.Semaphore(_PARALLEL_READS)
        self._count = self._length = 0

    async def fetch(self, path: StoragePath, target: Path) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                waiting = [(path, target)]
                while waiting:
                    folder, into = waiting.pop()
                    async for entry in self._entries(folder):
                        here = into / entry.path.name
                        if entry.is_folder:
                            await asyncio.to_thread(here.mkdir)
                            waiting.append((entry.path, here))
                        else:
                            self._count += 1
                            self._limit.check(self._length, self._count)
                            group.create_task(self._read(entry, here))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from failed

    async def _entries(self, folder: StoragePath) -> AsyncIterator[FileStatus]:
        after, more = "", True
        while more:
            page = await self._files.list(self._principal, folder, after, _PAGE)
            for entry in page.entries:
                yield entry
                after = entry.path.name
            more = page.remaining > 0 and bool(page.entries)

    async def _read(self, entry: FileStatus, here: Path) -> None:
        async with self._slots, self._files.open(self._principal, entry.path) as file:
            target = await asyncio.to_thread(open, here, "xb")
            try:
                async for piece in file.pieces:
                    self._length += len(piece)
                    self._limit.check(self._length, self._count)
                    await asyncio.to_thread(target.write, piece)
            finally:
                await asyncio.to_thread(_finish, target, entry.permission)


def remove_tree(folder: Path) -> None:
    """Remove a folder whose folders nobody may write to; nothing is no error."""
    try:
        if not folder.is_dir():
            folder.unlink(missing_ok=True)
            return
        for above, _, _ in os.walk(folder):
            Path(above).chmod(0o700)
        shutil.rmtree(folder)
    except OSError as error:
        _log.warning("%s cannot be removed: %s", folder, error)


def _finish(file: BinaryIO, permission: int) -> None:
    with file:
        os.fchmod(file.fileno(), 0o555 if permission & 0o111 else 0o444)


def _settle(part: Path, place: Path) -> None:
    """Return what was fetched its name; nobody writes to it from now on."""
    place.parent.mkdir(parents=True, exist_ok=True)
    for above, _, _ in os.walk(part, topdown=False):
        if Path(above) != part:
            Path(above).chmod(0o555)
    try:
        part.rename(place)
    except OSError:
        if not place.exists():
            raise
    place.chmod(0o555)


def _not_kept(path: StoragePath, error: OSError) -> StorageError:
    return StorageError(
        Problem.NO_SPACE,
        msg(
            "{path} cannot be kept on the scheduler's disk for the job: {error}.",
            path=str(path),
            error=error.strerror or str(error),
        ),
    )
