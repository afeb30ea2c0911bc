"""The protocol of a storage, and its refusals; one suite of tests holds for all."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pai_scheduler.i18n import msg

from .paths import Problem, StorageError, StoragePath

# What every storage says when something is not there, is there already, or is of the other kind.


def not_found(path: StoragePath) -> StorageError:
    """Return the error that says that nothing is at a path."""
    return StorageError(Problem.NOT_FOUND, msg("There is no file or folder {path}.", path=str(path)))


def no_link(path: StoragePath) -> StorageError:
    """Return the error that what is at a path is neither a file nor a folder: it counts for nothing."""
    return StorageError(
        Problem.NOT_FOUND,
        msg(
            "{path} is no ordinary file or folder: symbolic links are not followed, and count for nothing.",
            path=str(path),
        ),
    )


def exists(path: StoragePath) -> StorageError:
    """Return the error that says that something is there already."""
    return StorageError(
        Problem.EXISTS,
        msg(
            "There is something called {path} already: choose another name, or overwrite it.", path=str(path)
        ),
    )


def is_folder(path: StoragePath) -> StorageError:
    """Return the error that says that a file was wanted."""
    return StorageError(Problem.IS_A_FOLDER, msg("{path} is a folder, not a file.", path=str(path)))


def no_folder(path: StoragePath) -> StorageError:
    """Return the error that says that a folder was wanted."""
    return StorageError(Problem.NOT_A_FOLDER, msg("{path} is a file, not a folder.", path=str(path)))


def ends_elsewhere(path: StoragePath, length: int, offset: int) -> StorageError:
    """Return the error that what was to be appended at `offset` does not follow what is there."""
    return StorageError(
        Problem.UNAVAILABLE,
        msg(
            "{path} has {size} bytes and cannot be written on from byte {offset} on: look again what is "
            "there, and go on from its end.",
            path=str(path),
            size=length,
            offset=offset,
        ),
    )


def closing(path: StoragePath) -> StorageError:
    """Return the error that says that the storage is being closed."""
    return StorageError(
        Problem.UNAVAILABLE, msg("The storage is being closed: ask for {path} later.", path=str(path))
    )


# What is asked of a storage, and what it answers; one suite of tests holds for all.
#
# The operations are those of WebHDFS (Hadoop's "WebHDFS REST API"), and mean what they mean there. A
# storage knows nothing of users' rights: `files.py` decides, and tells in whose name (`actor`) a thing is
# done. HDFS does it in that name and keeps its own rights too; an empty actor is the service itself.


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file or folder. `length` in bytes (0 for a folder), times in ms since the epoch."""

    path: StoragePath
    is_folder: bool
    length: int
    modified: int
    accessed: int
    #: nine bits, as of chmod
    permission: int
    owner: str
    group: str
    #: of a folder: how many are in it; 0 where that was not counted
    children: int = 0
    replication: int = 1
    block_size: int = 128 * 2**20
    #: tells files of one storage apart, also after they were renamed
    file_id: int = 0


@dataclass(frozen=True, slots=True)
class Listing:
    """A part of what is in a folder, in the order of the names; `remaining`: how many follow."""

    entries: Sequence[FileStatus]
    remaining: int = 0


@dataclass(frozen=True, slots=True)
class Summary:
    """Totals of a tree, its root folder included: WebHDFS's ContentSummary. Bytes; quotas -1: none."""

    files: int
    folders: int
    length: int
    space_consumed: int
    quota: int = -1
    space_quota: int = -1


@dataclass(frozen=True, slots=True)
class Checksum:
    """A file's checksum as WebHDFS has it: `bytes` in hexadecimal, `length` of them in bytes."""

    algorithm: str
    bytes: str
    length: int


@dataclass(frozen=True, slots=True)
class OpenFile:
    """A file that is being read from some offset on: `length` bytes come, in `pieces` of a MiB at most."""

    status: FileStatus
    length: int
    pieces: AsyncIterator[bytes] = field(repr=False)


class Storage(Protocol):
    """Keeps files. Calls are coroutines and never block; every one may raise StorageError.

    Symbolic links are followed nowhere: they are not listed, and a path that leads over one is not found.
    """

    #: What every path is below, as a URI without a final slash (`file:///srv/pai`, `hdfs://name:9870`).
    root_uri: str

    def host_folder(self, path: StoragePath) -> Path | None:
        """Return where a folder would be on this machine; None: it must be fetched. Nothing is looked at."""

    async def start(self) -> None:
        """Make ready; UNAVAILABLE is no error here, as it may become available later."""

    async def close(self) -> None:
        """Close the storage; transfers under way are broken off."""

    async def make_tree(self, path: StoragePath, owner: str, group: str, permission: int) -> None:
        """Make the root of a tree and return it to its owner; nothing happens where it is there."""

    async def status(self, path: StoragePath, actor: str) -> FileStatus:
        """Describe a file or folder."""

    async def list(self, path: StoragePath, actor: str, after: str = "", limit: int | None = None) -> Listing:
        """List a folder: what comes after the name `after`; a file lists as itself."""

    def open(
        self, path: StoragePath, actor: str, offset: int = 0, length: int | None = None
    ) -> AbstractAsyncContextManager[OpenFile]:
        """Read a file from `offset` (up to its end; beyond it: INVALID), `length` bytes at most."""

    async def create(
        self,
        path: StoragePath,
        actor: str,
        pieces: AsyncIterator[bytes],
        *,
        overwrite: bool = False,
        permission: int | None = None,
    ) -> None:
        """Write a file; it has its name only when it is whole. Folders above it are made where they lack.

        When `pieces` raises, or this is cancelled, nothing of it stays, and what was there before does.
        """

    async def append(
        self, path: StoragePath, actor: str, pieces: AsyncIterator[bytes], *, offset: int | None = None
    ) -> None:
        """Write on at a file's end. What had come when `pieces` raised stays.

        `offset`: where the pieces belong. UNAVAILABLE where the file ends elsewhere, or did when they came:
        who asks then has to look what is there.
        """

    async def truncate(self, path: StoragePath, actor: str, length: int) -> bool:
        """Cut a file to its first `length` bytes (more than it has: INVALID).

        False: the storage has not finished yet; until it has, nothing can be written on.
        """

    async def concat(self, target: StoragePath, sources: Sequence[StoragePath], actor: str) -> None:
        """Put the contents of `sources`, files of the same folder, at the end of a file, and remove them."""

    async def check_access(self, path: StoragePath, actor: str, access: str) -> None:
        """Refuse (DENIED) where `actor` may not do something with what is there; `access`: as `rw-`."""

    async def mkdirs(self, path: StoragePath, actor: str, permission: int | None = None) -> None:
        """Make a folder, and those above it; nothing happens where it is there (EXISTS: as a file)."""

    async def rename(
        self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool = False
    ) -> None:
        """Move in one step. A `target` that is a folder: into it (not with `overwrite`), as in HDFS.

        `overwrite` replaces a file, or an empty folder, in one step.
        """

    async def delete(self, path: StoragePath, actor: str, *, recursive: bool = False) -> bool:
        """Remove; False where there was nothing. NOT_EMPTY: a folder that is not, without `recursive`."""

    async def copy(
        self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool = False
    ) -> None:
        """Copy a file within the storage; the copy has its name only when it is whole, and the same times."""

    async def set_permission(self, path: StoragePath, actor: str, permission: int) -> None:
        """Change the nine bits, as chmod does."""

    async def set_times(
        self, path: StoragePath, actor: str, modified: int | None, accessed: int | None
    ) -> None:
        """Change when it was last changed and read (ms since the epoch; None: stays)."""

    async def summary(self, path: StoragePath, actor: str) -> Summary:
        """Count what is in a tree."""

    async def checksum(self, path: StoragePath, actor: str) -> Checksum:
        """Return a file's checksum."""
