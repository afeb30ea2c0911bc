"""Receives files from a source, the storage or a task: only what changed, and on from where it broke off.

What is not whole yet is called `.<name>.<fingerprint>.part` here too. Nothing is written through a symbolic
link below the folder that was named, and nothing outside of it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from .local_tree import changed
from .placing import open_part, place_below, put_in_place
from .transfer import (
    FileOutcome,
    LeftOut,
    LocalFileError,
    Tally,
    Tell,
    TransferResult,
    part_name,
    side_by_side,
)


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
    """Where files come from. Its errors are FilesError and OneFileError, or whatever concerns all files."""

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
    tally = Tally(len(files), sum(file.length for file, _ in files), tell)

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
