"""Puts what was downloaded into its place here: never through a symbolic link, never half a file."""

from __future__ import annotations

import os
from pathlib import Path

from pai_scheduler.i18n import msg

from .transfer import LocalFileError


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
