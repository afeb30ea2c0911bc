"""A user's tree in a storage, and short ways to use it in tests."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from dataclasses import dataclass

import pytest

from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus, Storage


@dataclass(frozen=True)
class Home:
    """The tree of `user` in a storage: names are below it (`data/file`), and the user does everything."""

    storage: Storage
    user: str
    root: StoragePath

    @classmethod
    async def make(cls, storage: Storage) -> Home:
        """Make a tree that no other test has."""
        user = f"user-{uuid.uuid4().hex[:8]}"
        root = StoragePath((user,))
        await storage.make_tree(root, user, "", 0o700)
        return cls(storage, user, root)

    async def remove(self) -> None:
        """Remove the tree, where that is possible."""
        with suppress(StorageError):
            await self.storage.delete(self.root, "", recursive=True)

    def at(self, name: str = "") -> StoragePath:
        """Return the path of `name` in the storage."""
        return StoragePath((*self.root.parts, *(part for part in name.split("/") if part)))

    async def write(self, name: str, *pieces: bytes, overwrite: bool = False) -> None:
        """Create a file of these pieces."""
        await self.storage.create(self.at(name), self.user, giving(pieces), overwrite=overwrite)

    async def append(self, name: str, *pieces: bytes, offset: int | None = None) -> None:
        """Append these pieces to a file."""
        await self.storage.append(self.at(name), self.user, giving(pieces), offset=offset)

    async def read(self, name: str, offset: int = 0, length: int | None = None) -> bytes:
        """Return a part of a file, and check that its length is as announced."""
        async with self.storage.open(self.at(name), self.user, offset, length) as file:
            contents = b"".join([piece async for piece in file.pieces])
        assert len(contents) == file.length
        return contents

    async def mkdirs(self, name: str) -> None:
        """Make a folder and those above it."""
        await self.storage.mkdirs(self.at(name), self.user)

    async def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Rename a file or folder."""
        await self.storage.rename(self.at(source), self.at(target), self.user, overwrite=overwrite)

    async def copy(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Copy a file."""
        await self.storage.copy(self.at(source), self.at(target), self.user, overwrite=overwrite)

    async def delete(self, name: str, *, recursive: bool = False) -> bool:
        """Delete a file or folder; return whether it existed."""
        return await self.storage.delete(self.at(name), self.user, recursive=recursive)

    async def chmod(self, name: str, permission: int) -> None:
        """Set permission bits."""
        await self.storage.set_permission(self.at(name), self.user, permission)

    async def status(self, name: str = "") -> FileStatus:
        """Return the status of a file or folder."""
        return await self.storage.status(self.at(name), self.user)

    async def names(self, name: str = "", after: str = "", limit: int | None = None) -> list[str]:
        """Return the names in a folder."""
        listing = await self.storage.list(self.at(name), self.user, after, limit)
        return [entry.path.name for entry in listing.entries]


class Broken(Exception):
    """A connection that breaks in the middle of an upload."""


async def giving(pieces: Iterable[bytes]) -> AsyncIterator[bytes]:
    """Yield pieces."""
    for piece in pieces:
        yield piece


async def breaking(*pieces: bytes) -> AsyncIterator[bytes]:
    """Return pieces, and then break."""
    for piece in pieces:
        yield piece
    raise Broken


class Stuck:
    """Pieces of which the last never comes: `reached` is set when it is waited for, `go` lets them end."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = pieces
        self.reached, self.go = asyncio.Event(), asyncio.Event()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._pieces:
            yield piece
        self.reached.set()
        await self.go.wait()


class refuses:
    """Expect a StorageError of one of these kinds."""

    def __init__(self, *problems: Problem) -> None:
        self._problems = problems
        self._raises = pytest.raises(StorageError)

    def __enter__(self) -> None:
        self._caught = self._raises.__enter__()

    def __exit__(self, *exc: object) -> bool:
        swallowed = self._raises.__exit__(*exc)  # type: ignore[arg-type]
        assert self._caught.value.problem in self._problems, self._caught.value
        assert str(self._caught.value)
        return bool(swallowed)
