"""Copies of the scheduler's folders (a job's code, its data) that tasks of this node get."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import tarfile
from collections.abc import Collection
from pathlib import Path

_KEY = re.compile(r"[0-9a-f]{64}")
_NAME = re.compile(r"[^/\0]{1,255}")


class FolderError(Exception):
    """A folder cannot be taken over: what is sent is no folder of ours, or the disk is full."""


class Folders:
    """Keeps them in `folder`, each under the key that the scheduler gives it, until it is not wanted."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def find(self, key: str, name: str) -> Path | None:
        """Return where the copy called `name` of a key is; None where it is not there (as a whole)."""
        place = self._place(key, name)
        return place if place.is_dir() else None

    def begin(self, key: str, name: str) -> FolderCopy:
        """Begin to take a copy over."""
        return FolderCopy(self._place(key, name))

    async def keep_only(self, keys: Collection[str]) -> None:
        """Remove every other copy."""
        await asyncio.to_thread(self._keep_only, keys)

    async def remove(self, key: str) -> None:
        """Remove a copy, if there is one."""
        await asyncio.to_thread(_remove, self._place(key, "x").parent)

    def _keep_only(self, keys: Collection[str]) -> None:
        if self._folder.is_dir():
            for found in list(self._folder.iterdir()):
                if found.name not in keys:
                    _remove(found)

    def _place(self, key: str, name: str) -> Path:
        if not _KEY.fullmatch(key) or not _NAME.fullmatch(name) or name in (".", ".."):
            raise FolderError("no such folder")
        return self._folder / key / name


class FolderCopy:
    """One folder on its way: the pieces of its tar archive, then `finish`. It is there as a whole or not.

    The archive has plain files and folders only, each below a folder of the name that the copy gets.
    """

    def __init__(self, place: Path) -> None:
        self._place = place
        self._coming = place.parent.with_name(f"{place.parent.name}.{os.urandom(4).hex()}.new")
        self._coming.mkdir(parents=True, mode=0o755)
        self._archive = (self._coming / ".archive").open("wb")

    async def add(self, piece: bytes) -> None:
        """Take the next piece of the archive; OSError."""
        await asyncio.to_thread(self._archive.write, piece)

    async def finish(self) -> Path:
        """Unpack it and put it in its place; FolderError where it is not what it should be."""
        return await asyncio.to_thread(self._finish)

    async def give_up(self) -> None:
        """Remove what has come so far."""
        self._archive.close()
        await asyncio.to_thread(_remove, self._coming)

    def _finish(self) -> Path:
        self._archive.close()
        try:
            with tarfile.open(self._coming / ".archive", "r:") as archive:
                # (never outside of the folder, no links to elsewhere, no devices)
                archive.extractall(self._coming, filter="data")
        except (tarfile.TarError, OSError) as error:
            raise FolderError(str(error)) from error
        (self._coming / ".archive").unlink()
        if not (self._coming / self._place.name).is_dir():
            raise FolderError("the archive has another folder")
        if self._place.is_dir():
            _remove(self._coming)
        else:
            self._place.parent.parent.mkdir(parents=True, exist_ok=True)
            self._coming.rename(self._place.parent)
        return self._place


def _remove(folder: Path) -> None:
    def open_up(function: object, path: str, error: object) -> None:  # noqa: ARG001
        # what nobody may write to can be removed only from a folder that may be written to
        Path(path).parent.chmod(0o700)
        if Path(path).is_dir():
            Path(path).chmod(0o700)
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    if folder.exists():
        shutil.rmtree(folder, onerror=open_up)
