"""Download of files and folders: never through a symbolic link, never half a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.i18n import msg

from .client import FileInfo, FilesClient, FilesError
from .transfer import (
    FileOutcome,
    LeftOut,
    LocalFileError,
    Tell,
    TransferResult,
    TransferTally,
    Trials,
    part_name,
    side_by_side,
)
from .upload import changed

# Puts what was downloaded into its place here: never through a symbolic link, never half a file.


def place_below(root: Path, name: str, *, is_folder: bool) -> Path:
    """Find where something belongs below `root`, its folders made; LocalFileError where that leads out."""
    parts = name.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise LocalFileError(msg("{name} is no name that a file can have here.", name=repr(name)))
    folder = root
    for part in parts if is_folder else parts[:-1]:
        folder = folder / part
        if folder.is_symlink():
            raise LocalFileError(
                msg("{folder} is a symbolic link here: nothing is written through it.", folder=str(folder))
            )
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise unwritable(folder, error) from None
    return folder if is_folder else folder / parts[-1]


def open_part(part: Path) -> int:
    """Open what is there of a file already, or an empty one; return the descriptor. LocalFileError."""
    try:
        return os.open(part, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666)
    except OSError as error:
        raise unwritable(part, error) from None


def write_at(descriptor: int, piece: bytes, offset: int, local: Path) -> None:
    """Write a piece at an offset; LocalFileError names `local`, the file that is to come of it."""
    view = memoryview(piece)
    try:
        while view:
            written = os.pwrite(descriptor, view, offset)
            view, offset = view[written:], offset + written
    except OSError as error:
        raise unwritable(local, error) from None


def put_in_place(part: Path, local: Path, modified: int, mode: int | None = None) -> None:
    """Return a whole file its name, its time of change (ms) and, where told, its mode; LocalFileError."""
    try:
        if mode is not None:
            part.chmod(mode & 0o777)
        os.utime(part, ns=(modified * 1_000_000, modified * 1_000_000))
        # a symbolic link of this name is replaced, not followed
        part.replace(local)
    except OSError as error:
        raise unwritable(local, error) from None


def unwritable(path: Path, error: OSError) -> LocalFileError:
    """Return the error that says that a file here cannot be written."""
    return LocalFileError(
        msg("{file} cannot be written: {reason}.", file=str(path), reason=error.strerror or str(error))
    )


# Receives files from a source, the storage or a task: only what changed, and on from where it broke off.
#
# What is not whole yet is called `.<name>.<fingerprint>.part` here too. Nothing is written through a
# symbolic link below the folder that was named, and nothing outside of it.


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """Something in a folder of a source; `name`: its path below the folder.

    `length` in bytes, `modified` in ms; `mode`: nine bits; None: it is for this side to say.
    """

    path: str
    name: str
    is_folder: bool
    length: int
    modified: int
    mode: int | None = None


class Source(Protocol):
    """Source of files. Its errors are FilesError and OneFileError, or whatever concerns all files."""

    #: ms that its times of change are exact to
    exact: int

    async def fetch(self, file: RemoteFile, descriptor: int, local: Path, at: Callable[[int], None]) -> None:
        """Fetch what an open part of a file lacks; `at` is told how many bytes are there."""

    async def is_unchanged(self, file: RemoteFile) -> bool:
        """Return whether a file is still what it was when it was found."""


async def receive_tree(
    source: Source,
    entries: AsyncIterator[RemoteFile],
    local: Path,
    left_out: list[LeftOut],
    tell: Tell | None,
) -> TransferResult:
    """Make the folder `local` hold these entries; `left_out` is what finding them adds to the outcome."""
    files: list[tuple[RemoteFile, Path]] = []
    await asyncio.to_thread(local.mkdir, parents=True, exist_ok=True)
    async for entry in entries:
        try:
            place = await asyncio.to_thread(place_below, local, entry.name, is_folder=entry.is_folder)
        except LocalFileError as error:
            left_out.append(LeftOut(entry.path, error.message, failed=True))
            continue
        if not entry.is_folder:
            files.append((entry, place))
    result = await receive(source, files, tell)
    result.left_out[:0] = left_out
    return result


async def receive(
    source: Source, files: Sequence[tuple[RemoteFile, Path]], tell: Tell | None
) -> TransferResult:
    """Fetch files to their places; of single ones the result tells."""
    tally = TransferTally(len(files), sum(file.length for file, _ in files), tell)

    async def one(pair: tuple[RemoteFile, Path]) -> None:
        file, local = pair
        work = _receive_one(source, file, local, partial(tally.at, file.path))
        await tally.count(file.path, file.path, file.length, work)

    await side_by_side(files, one)
    return tally.result


async def _receive_one(
    source: Source, file: RemoteFile, local: Path, at: Callable[[int], None]
) -> FileOutcome:
    if await asyncio.to_thread(_is_same, local, file, source.exact):
        return "same"
    part = local.with_name(part_name(local.name, file.length, file.modified))
    descriptor = await asyncio.to_thread(open_part, part)
    try:
        await source.fetch(file, descriptor, local, at)
        if not await source.is_unchanged(file):
            part.unlink()
            raise changed(file.path)
    finally:
        os.close(descriptor)
    await asyncio.to_thread(put_in_place, part, local, file.modified, file.mode)
    return "moved"


def _is_same(local: Path, file: RemoteFile, exact: int) -> bool:
    """Return whether a file is here already; its mode is set then, which may be all that has changed."""
    try:
        status = local.lstat()
    except OSError:
        return False
    if local.is_symlink() or not local.is_file():
        return False
    modified = status.st_mtime_ns // 1_000_000
    if (status.st_size, modified // exact) != (file.length, file.modified // exact):
        return False
    if file.mode is not None and status.st_mode & 0o777 != file.mode:
        local.chmod(file.mode)
    return True


# Downloads files and folders of the storage.


async def download(client: FilesClient, remote: str, local: Path, tell: Tell | None = None) -> TransferResult:
    """Make `local` the same as a file or folder of the storage; what else is there already stays.

    FilesError where `remote` cannot be read; of single files in a folder the outcome tells.
    """
    info = await client.status(remote)
    source = _Storage(client)
    if not info.is_folder:
        return await receive(source, [(_file(info, info.name), local)], tell)
    async with aclosing(client.walk(info.path)) as entries:
        return await receive_tree(source, _files(entries, info.path), local, [], tell)


class _Storage:
    exact = 1

    def __init__(self, client: FilesClient) -> None:
        self._client = client

    async def fetch(self, file: RemoteFile, descriptor: int, local: Path, at: Callable[[int], None]) -> None:
        trials, offset = Trials(), os.fstat(descriptor).st_size
        if offset > file.length:
            os.ftruncate(descriptor, offset := 0)
        while offset < file.length:
            try:
                async with self._client.read(file.path, offset, file.length - offset) as pieces:
                    async for piece in pieces:
                        await asyncio.to_thread(write_at, descriptor, piece, offset, local)
                        offset += len(piece)
                        trials.got_on()
                        at(offset)
                if offset < file.length:
                    raise changed(file.path)
            except (UnreachableError, FilesError) as error:
                await trials.after(error)

    async def is_unchanged(self, file: RemoteFile) -> bool:
        now = await self._client.status(file.path)
        return (now.length, now.modified) == (file.length, file.modified)


async def _files(entries: AsyncIterator[FileInfo], root: str) -> AsyncIterator[RemoteFile]:
    async for info in entries:
        yield _file(info, info.path.removeprefix(root.rstrip("/") + "/"))


def _file(info: FileInfo, name: str) -> RemoteFile:
    return RemoteFile(info.path, name, info.is_folder, info.length, info.modified)
