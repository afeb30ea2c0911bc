"""Tar archives for Docker (`PUT /containers/…/archive`), made piece by piece: code may be large.

An image may run as any user, and that user may change what is put into a working folder, so it is open
to all in the container.
"""

from __future__ import annotations

import asyncio
import os
import tarfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path

_PIECE = 2**20
_END = bytes(tarfile.BLOCKSIZE * 2)


def folder_entry(place: str, mode: int) -> Iterator[bytes]:
    """Return an archive's entry of a folder at an absolute path."""
    yield _header(place, mode, tarfile.DIRTYPE)


def file_entries(place: str, files: Mapping[str, bytes]) -> Iterator[bytes]:
    """Return the entries of a folder with small files that all may read and none may write."""
    yield _header(place, 0o755, tarfile.DIRTYPE)
    for name, content in files.items():
        yield (
            _header(f"{place}/{name}", 0o444, tarfile.REGTYPE, len(content))
            + content
            + _padding(len(content))
        )


def tree_entries(source: Path, place: str, *, writable: bool) -> Iterator[bytes]:
    """Return the entries of a folder of this machine and all that is in it, plain files and folders only."""
    yield _header(place, 0o777 if writable else 0o555, tarfile.DIRTYPE)
    with os.scandir(source) as entries:
        for entry in entries:
            there = f"{place}/{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                yield from tree_entries(Path(entry.path), there, writable=writable)
            elif entry.is_file(follow_symlinks=False):
                yield from _file(entry, there, writable)


async def stream(entries: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Return an archive, made in threads, in pieces of about a MiB."""
    gathered: list[bytes] = []
    size = 0

    def gather() -> bool:
        nonlocal size
        while size < _PIECE:
            piece = next(entries, None)
            if piece is None:
                gathered.append(_END)
                return False
            gathered.append(piece)
            size += len(piece)
        return True

    more = True
    while more:
        more = await asyncio.to_thread(gather)
        yield b"".join(gathered)
        gathered.clear()
        size = 0


def _file(entry: os.DirEntry[str], place: str, writable: bool) -> Iterator[bytes]:
    info = entry.stat(follow_symlinks=False)
    mode = (0o666 if writable else 0o444) | (0o111 if info.st_mode & 0o111 else 0)
    yield _header(place, mode, tarfile.REGTYPE, info.st_size)
    left = info.st_size
    with open(entry.path, "rb", buffering=0) as file:
        while left:
            piece = file.read(min(_PIECE, left))
            if not piece:
                raise OSError(f"{entry.path} has become shorter")
            left -= len(piece)
            yield piece
    yield _padding(info.st_size)


def _header(place: str, mode: int, kind: bytes, size: int = 0) -> bytes:
    info = tarfile.TarInfo(place.strip("/"))
    info.mode, info.type, info.size, info.mtime = mode, kind, size, int(time.time())
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
