"""A folder of this machine as the users' storage: nothing to install, and the same for users as HDFS."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from pai_scheduler.storage.paths import StorageError, StoragePath
from pai_scheduler.storage.protocol import Checksum, FileStatus, Listing, OpenFile, Summary, closing

from .resolve import FOLDER_MODE, Walk
from .transfer import Appending, FileUpload, Reading, checksum, concat, copy, truncate
from .tree import FolderTree

#: Threads for what is done in a moment, and for what goes through many files or much of one.
_SHORT, _LONG = 16, 4

_log = logging.getLogger(__name__)

T = TypeVar("T")


class _Held(Protocol):
    """Something that must be let go of."""

    def close(self) -> None:
        """Close what it holds open."""


H = TypeVar("H", bound=_Held)


class FolderStorage:
    """The storage below `root`, a folder of this machine, which `start` makes if need be."""

    def __init__(self, root: Path) -> None:
        self.root_uri = root.absolute().as_uri().rstrip("/")
        self._root = root.absolute()
        self._walk = Walk(self._root)
        self._tree = FolderTree(self._walk)
        self._closed = False
        self._short = ThreadPoolExecutor(_SHORT, "storage")
        self._long = ThreadPoolExecutor(_LONG, "storage-long")

    def host_folder(self, path: StoragePath) -> Path:
        """Return where a folder is on this machine."""
        return self._root.joinpath(*path.parts)

    async def start(self) -> None:
        """Make the folder (StorageError), and begin to remove what a killed service left half done."""
        await self._run(StoragePath(), self._tree.make_root)
        self._submit(StoragePath(), self._tree.tidy, long=True).add_done_callback(_log_failure)

    async def close(self) -> None:
        """Close the storage; transfers under way are broken off."""
        self._closed = True
        self._tree.close()
        for pool in (self._short, self._long):
            await asyncio.to_thread(pool.shutdown, cancel_futures=True)

    async def make_tree(self, path: StoragePath, owner: str, group: str, permission: int) -> None:  # noqa: ARG002
        """Make the root of a tree; its owner is known by its name (`trees.tree_of`)."""
        if not await self._run(path, self._walk.is_folder, path, ""):
            await self.mkdirs(path, "", permission)

    async def status(self, path: StoragePath, actor: str) -> FileStatus:
        """Describe a file or folder."""
        return await self._run(path, self._tree.status, path, actor)

    async def list(self, path: StoragePath, actor: str, after: str = "", limit: int | None = None) -> Listing:
        """List a folder; how many are in each folder of it is not counted."""
        return await self._run(path, self._tree.listing, path, actor, after, limit)

    @asynccontextmanager
    async def open(
        self, path: StoragePath, actor: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[OpenFile]:
        """Read a file from `offset` on, `length` bytes at most."""
        reading = await self._hold(path, partial(Reading, self._walk, path, actor, offset, length))
        try:
            yield OpenFile(reading.status, reading.length, self._pieces(path, reading))
        finally:
            await self._let_go(path, reading)

    async def create(
        self,
        path: StoragePath,
        actor: str,
        pieces: AsyncIterator[bytes],
        *,
        overwrite: bool = False,
        permission: int | None = None,
    ) -> None:
        """Write a file; it has its name only when it is whole."""
        begin = partial(FileUpload, self._walk, path, actor, overwrite=overwrite, permission=permission)
        await self._write(path, begin, pieces)

    async def append(
        self, path: StoragePath, actor: str, pieces: AsyncIterator[bytes], *, offset: int | None = None
    ) -> None:
        """Write on at a file's end, at `offset`; UNAVAILABLE while somebody else does."""
        await self._write(path, partial(Appending, self._walk, path, actor, offset), pieces)

    async def truncate(self, path: StoragePath, actor: str, length: int) -> bool:
        """Cut a file to its first `length` bytes, which is done at once."""
        await self._run(path, truncate, self._walk, path, actor, length)
        return True

    async def concat(self, target: StoragePath, sources: Sequence[StoragePath], actor: str) -> None:
        """Put files at the end of another; what fails before all are there leaves everything as it was."""
        await self._run(target, concat, self._walk, target, sources, actor, self._goes_on, long=True)

    async def check_access(self, path: StoragePath, actor: str, access: str) -> None:
        """Refuse (DENIED) where `actor` may not do something with what is there; `access`: as `rw-`."""
        await self._run(path, self._tree.check_access, path, actor, access)

    async def mkdirs(self, path: StoragePath, actor: str, permission: int | None = None) -> None:
        """Make a folder, and those above it."""
        mode = FOLDER_MODE if permission is None else permission & 0o777
        await self._run(path, self._tree.mkdirs, path, actor, mode)

    async def rename(
        self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool = False
    ) -> None:
        """Move in one step."""
        await self._run(source, self._tree.rename, source, target, actor, overwrite)

    async def delete(self, path: StoragePath, actor: str, *, recursive: bool = False) -> bool:
        """Remove; False where there was nothing."""
        return await self._run(path, self._tree.delete, path, actor, recursive, long=recursive)

    async def copy(
        self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool = False
    ) -> None:
        """Copy a file within the storage, with its times and permission."""
        await self._run(source, copy, self._walk, source, target, actor, overwrite, self._goes_on, long=True)

    async def set_permission(self, path: StoragePath, actor: str, permission: int) -> None:
        """Change the nine bits."""
        await self._run(path, self._tree.set_permission, path, actor, permission)

    async def set_times(
        self, path: StoragePath, actor: str, modified: int | None, accessed: int | None
    ) -> None:
        """Change when it was last changed and read (ms since the epoch; None: stays)."""
        await self._run(path, self._tree.set_times, path, actor, modified, accessed)

    async def summary(self, path: StoragePath, actor: str) -> Summary:
        """Count what is in a tree."""
        return await self._run(path, self._tree.summary, path, actor, long=True)

    async def checksum(self, path: StoragePath, actor: str) -> Checksum:
        """Return a file's SHA-256."""
        return await self._run(path, checksum, self._walk, path, actor, self._goes_on, long=True)

    def _goes_on(self) -> bool:
        return not self._closed

    async def _pieces(self, path: StoragePath, reading: Reading) -> AsyncIterator[bytes]:
        while piece := await self._run(path, reading.read):
            yield piece

    async def _write(
        self, path: StoragePath, begin: Callable[[], FileUpload | Appending], pieces: AsyncIterator[bytes]
    ) -> None:
        file = await self._hold(path, begin)
        try:
            async for piece in pieces:
                if piece:
                    await self._run(path, file.write, piece)
            await self._run(path, file.finish)
        finally:
            await self._let_go(path, file)

    async def _run(
        self, path: StoragePath, call: Callable[..., T], *arguments: object, long: bool = False
    ) -> T:
        return await self._result(path, self._submit(path, partial(call, *arguments), long))

    def _submit(self, path: StoragePath, call: Callable[[], T], long: bool = False) -> Future[T]:
        if self._closed:
            raise closing(path)
        return (self._long if long else self._short).submit(call)

    async def _result(self, path: StoragePath, future: Future[T]) -> T:
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if self._closed and task is not None and not task.cancelling():
                # what was cancelled is not who waits, but what had not begun when the storage was closed
                raise closing(path) from None
            raise

    async def _hold(self, path: StoragePath, begin: Callable[[], H]) -> H:
        """Begin something that must be let go of, which is done here if nobody waits for it any more."""
        future = self._submit(path, begin)
        try:
            return await self._result(path, future)
        except asyncio.CancelledError:
            future.add_done_callback(_close_unwanted)
            raise

    async def _let_go(self, path: StoragePath, held: _Held) -> None:
        try:
            future = self._submit(path, held.close)
        except StorageError:
            # no thread is left: it takes but a moment
            held.close()
        else:
            await asyncio.shield(asyncio.wrap_future(future))


def _log_failure(tidying: Future[None]) -> None:
    if not tidying.cancelled() and (error := tidying.exception()) is not None:
        _log.warning("what was left half done could not be removed: %s", error)


def _close_unwanted(future: Future[H]) -> None:
    if not future.cancelled() and future.exception() is None:
        future.result().close()
