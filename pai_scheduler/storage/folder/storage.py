"""A folder of this machine as the users' storage: nothing to install, and the same for users as HDFS."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import logging
import os
import secrets
import stat
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeVar

from pai_scheduler.i18n import msg
from pai_scheduler.storage.files import tree_of
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import (
    Checksum,
    FileStatus,
    Listing,
    OpenFile,
    Summary,
    closing,
    ends_elsewhere,
    exists,
    is_folder,
)

from .resolve import (
    FILE_MODE,
    FOLDER_MODE,
    READ,
    WRITE,
    Entry,
    Walk,
    describe,
    naming,
    not_permitted,
    permits,
    place,
)
from .tree import FolderTree

# Reads and writes the contents of files in a storage's folder. All of it blocks: it is for threads.


#: Bytes that are read at a time.
PIECE = 2**20
#: Bytes that are copied at a time.
_COPIED = 64 * 2**20

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Reading:
    """A file that is read from `offset` on, `length` bytes at most (None: to its end)."""

    def __init__(
        self, walk: Walk, path: StoragePath, actor: str, offset: int = 0, length: int | None = None
    ) -> None:
        with walk.entry(path, actor) as entry:
            size = entry.stat.st_size
            _need_file(entry)
            entry.permit(actor, READ)
            if not 0 <= offset <= size or (length is not None and length < 0):
                raise StorageError(
                    Problem.INVALID,
                    msg(
                        "{path} has {size} bytes: nothing can be read from byte {offset} on.",
                        path=str(path),
                        size=size,
                        offset=offset,
                    ),
                )
            self.status: FileStatus = describe(path, entry.stat)
            self.length = size - offset if length is None else min(length, size - offset)
            self._path, self._next, self._end = path, offset, offset + self.length
            # a descriptor that is closed while another thread reads may already be another file's
            self._lock = threading.Lock()
            with naming(path):
                self._descriptor: int | None = os.open(entry.proc, os.O_RDONLY | os.O_CLOEXEC)

    def read(self) -> bytes:
        """Return the next piece; nothing at the end."""
        if self._next == self._end:
            return b""
        with self._lock, naming(self._path):
            if self._descriptor is None:
                raise closing(self._path)
            piece = os.pread(self._descriptor, min(PIECE, self._end - self._next), self._next)
        if not piece:
            raise StorageError(
                Problem.UNAVAILABLE,
                msg("{path} became shorter while it was read: read it again.", path=str(self._path)),
            )
        self._next += len(piece)
        return piece

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None


class FileUpload:
    """A file that is being written, and has no name of its own until `finish`. Folders are made at once."""

    def __init__(
        self, walk: Walk, path: StoragePath, actor: str, *, overwrite: bool, permission: int | None = None
    ) -> None:
        self._walk, self._path, self._actor, self._overwrite = walk, path, actor, overwrite
        self._permission = FILE_MODE if permission is None else permission & 0o777
        self._name = secrets.token_hex(16)
        self._lock = threading.Lock()
        if not path.parts:
            raise is_folder(path)
        self._folder = walk.uploads()
        try:
            with walk.parent(path, actor, make=True) as parent, naming(path):
                parent.permit(actor, WRITE)
                self._refuse_existing(parent)
                if os.fstat(self._folder).st_dev != parent.stat.st_dev:
                    # a folder on another disk: what is written elsewhere could not be moved into it
                    os.close(self._folder)
                    self._folder = os.dup(parent.descriptor)
                    self._name = f".{self._name}.unfinished"
                self._descriptor: int | None = os.open(self._name, _NEW, 0o600, dir_fd=self._folder)
        except BaseException:
            os.close(self._folder)
            raise

    def write(self, piece: bytes) -> None:
        """Append a piece."""
        with self._lock, naming(self._path):
            if self._descriptor is None:
                raise closing(self._path)
            _write_all(self._descriptor, piece)

    def fill(self, source: int, go_on: Callable[[], bool]) -> None:
        """Write all that is in the file `source`, as long as `go_on` says so."""
        with self._lock, naming(self._path):
            if self._descriptor is None:
                raise closing(self._path)
            while _copy_piece(source, self._descriptor):
                if not go_on():
                    raise closing(self._path)

    def finish(self, times: tuple[int, int] | None = None) -> None:
        """Return the file its name, and if need be its `times` (accessed, modified, in ns)."""
        with self._lock, naming(self._path):
            if self._descriptor is None:
                raise closing(self._path)
            os.fchmod(self._descriptor, self._permission)
            if times is not None:
                os.utime(self._descriptor, ns=times)
            os.fsync(self._descriptor)
            with self._walk.parent(self._path, self._actor, make=True) as parent:
                place(self._folder, self._name, parent.descriptor, self._path.name, overwrite=self._overwrite)
            self._let_go()

    def close(self) -> None:
        """Drop the file, if it is not finished."""
        with self._lock:
            if self._descriptor is not None:
                with suppress(FileNotFoundError):
                    os.unlink(self._name, dir_fd=self._folder)
                self._let_go()

    def _let_go(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            os.close(self._folder)
            self._descriptor = None

    def _refuse_existing(self, parent: Entry) -> None:
        try:
            there = os.lstat(self._path.name, dir_fd=parent.descriptor)
        except FileNotFoundError:
            return
        if stat.S_ISDIR(there.st_mode):
            raise is_folder(self._path)
        if not self._overwrite:
            raise exists(self._path)
        if stat.S_ISREG(there.st_mode) and not permits(tree_of(self._path), there, self._actor, WRITE):
            raise not_permitted(self._path, there, WRITE)


class Appending:
    """A file that is written on at its end (at `offset`, where that is given), by one at a time."""

    def __init__(self, walk: Walk, path: StoragePath, actor: str, offset: int | None = None) -> None:
        self._path = path
        self._lock = threading.Lock()
        with walk.entry(path, actor) as entry, naming(path):
            _need_file(entry)
            entry.permit(actor, WRITE)
            descriptor = os.open(entry.proc, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):
                    raise
                raise StorageError(
                    Problem.UNAVAILABLE,
                    msg(
                        "Somebody else is appending to {path} at this moment: try again later.",
                        path=str(path),
                    ),
                ) from error
            # nobody else writes to it any more
            size = os.fstat(descriptor).st_size
            if offset is not None and offset != size:
                os.close(descriptor)
                raise ends_elsewhere(path, size, offset)
            self._descriptor: int | None = descriptor

    def write(self, piece: bytes) -> None:
        """Append a piece."""
        with self._lock, naming(self._path):
            if self._descriptor is None:
                raise closing(self._path)
            _write_all(self._descriptor, piece)

    def cut(self, length: int) -> None:
        """Keep the first `length` bytes only."""
        with self._lock, naming(self._path):
            if self._descriptor is None:
                raise closing(self._path)
            size = os.fstat(self._descriptor).st_size
            if not 0 <= length <= size:
                raise StorageError(
                    Problem.INVALID,
                    msg(
                        "{path} has {size} bytes: it cannot be cut to {length}.",
                        path=str(self._path),
                        size=size,
                        length=length,
                    ),
                )
            os.ftruncate(self._descriptor, length)

    def finish(self) -> None:
        """Wait until what was written survives a loss of power."""
        with self._lock, naming(self._path):
            if self._descriptor is None:
                raise closing(self._path)
            os.fdatasync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None


def copy(
    walk: Walk,
    source: StoragePath,
    target: StoragePath,
    actor: str,
    overwrite: bool,
    go_on: Callable[[], bool],
) -> None:
    """Copy a file, by reference where the file system can; with its times and permission. StorageError."""
    with walk.entry(source, actor) as entry:
        _need_file(entry)
        entry.permit(actor, READ)
        with naming(source):
            reading = os.open(entry.proc, os.O_RDONLY | os.O_CLOEXEC)
        try:
            upload = FileUpload(
                walk, target, actor, overwrite=overwrite, permission=entry.stat.st_mode & 0o777
            )
            try:
                upload.fill(reading, go_on)
                upload.finish((entry.stat.st_atime_ns, entry.stat.st_mtime_ns))
            finally:
                upload.close()
        finally:
            os.close(reading)


def truncate(walk: Walk, path: StoragePath, actor: str, length: int) -> None:
    """Cut a file to its first `length` bytes. StorageError."""
    file = Appending(walk, path, actor)
    try:
        file.cut(length)
        file.finish()
    finally:
        file.close()


def concat(
    walk: Walk,
    target: StoragePath,
    sources: Sequence[StoragePath],
    actor: str,
    go_on: Callable[[], bool],
) -> None:
    """Put files at the end of another in the same folder, and remove them. StorageError.

    All of it is written anew beside the target, and gets its name when it is whole; what was appended to the
    target meanwhile would be lost, so nobody may.
    """
    held = Appending(walk, target, actor)
    try:
        with walk.entry(target, actor) as entry:
            permission = entry.stat.st_mode & 0o777
        upload = FileUpload(walk, target, actor, overwrite=True, permission=permission)
        try:
            for path in (target, *sources):
                with walk.entry(path, actor) as entry, naming(path):
                    _need_file(entry)
                    entry.permit(actor, READ)
                    reading = os.open(entry.proc, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    upload.fill(reading, go_on)
                finally:
                    os.close(reading)
            upload.finish()
        finally:
            upload.close()
        for path in sources:
            with walk.parent(path, actor) as parent, naming(path), suppress(FileNotFoundError):
                os.unlink(path.name, dir_fd=parent.descriptor)
    finally:
        held.close()


def checksum(walk: Walk, path: StoragePath, actor: str, go_on: Callable[[], bool]) -> Checksum:
    """Return a file's SHA-256: HDFS's own, made of those of blocks, means nothing here. StorageError."""
    digest = hashlib.sha256()
    reading = Reading(walk, path, actor)
    try:
        while piece := reading.read():
            if not go_on():
                raise closing(path)
            digest.update(piece)
    finally:
        reading.close()
    return Checksum("SHA-256", digest.hexdigest(), digest.digest_size)


def _copy_piece(source: int, target: int) -> int:
    """Copy some bytes at where both are; 0 at the end."""
    try:
        return os.copy_file_range(source, target, _COPIED)
    except OSError as error:
        # not every file system can, nor between any two
        if error.errno not in (errno.EXDEV, errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
            raise
    piece = os.read(source, PIECE)
    _write_all(target, piece)
    return len(piece)


def _write_all(descriptor: int, piece: bytes) -> None:
    """Write all of a piece; OSError."""
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]


def _need_file(entry: Entry) -> None:
    if entry.is_folder:
        raise is_folder(entry.path)


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
