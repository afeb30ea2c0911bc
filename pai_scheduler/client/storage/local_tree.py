"""What there is to upload in a folder of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from pai_scheduler.i18n import msg

from .transfer import LeftOut, LocalFileError


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file; `name`: its path below the folder, with `/`; `length` in bytes, `modified` in ms.

    `mode`: nine bits, as of chmod.
    """

    path: Path
    name: str
    length: int
    modified: int
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class LocalTree:
    """What is in a folder: files, folders (paths below it), and what cannot go along."""

    files: Sequence[LocalFile]
    folders: Sequence[str]
    left_out: Sequence[LeftOut]


def look_at(path: Path) -> LocalFile:
    """Describe one file; LocalFileError where there is none, or none that can be read."""
    try:
        return _file(path, path.name, path.stat())
    except OSError as error:
        raise unreadable(path, error) from None


def open_unchanged(file: LocalFile) -> BinaryIO:
    """Open a file that must be as it was when it was looked at; LocalFileError."""
    try:
        # what has become a pipe since must not hold us up
        stream = os.fdopen(os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
    except OSError as error:
        raise unreadable(file.path, error) from None
    if not is_unchanged(stream, file):
        stream.close()
        raise changed(str(file.path))
    return stream


def is_unchanged(stream: BinaryIO, file: LocalFile) -> bool:
    """Return whether an open file is still as it was when it was looked at."""
    status = os.fstat(stream.fileno())
    return (status.st_size, status.st_mtime_ns // 1_000_000) == (file.length, file.modified)


def check_unchanged(file: LocalFile) -> None:
    """Raise LocalFileError where a file is not as it was when it was looked at."""
    open_unchanged(file).close()


def changed(path: str) -> LocalFileError:
    """Return the error that says that a file did not stay as it was."""
    return LocalFileError(msg("{path} has changed while it was being copied: copy it again.", path=path))


def unreadable(path: Path, error: OSError) -> LocalFileError:
    """Return the error that says that a file here cannot be read."""
    return LocalFileError(
        msg("{file} cannot be read: {reason}.", file=str(path), reason=error.strerror or str(error))
    )


def look_through(root: Path, enters: Callable[[str], bool] = lambda _name: True) -> LocalTree:
    """Find everything in a folder, in the order of names; of its folders those that `enters` says.

    A link to a file counts as a file. A link to a folder is left out: it may lead out of the tree, or round
    in a circle. So is what is neither file nor folder.
    """
    files: list[LocalFile] = []
    folders: list[str] = []
    left_out: list[LeftOut] = []

    def enter(folder: Path, prefix: str) -> None:
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            left_out.append(LeftOut(str(folder), unreadable(folder, error).message, failed=True))
            return
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if enters(name):
                    folders.append(name)
                    enter(folder / entry.name, f"{name}/")
                continue
            try:
                files.append(_file(folder / entry.name, name, entry.stat()))
            except LocalFileError as error:
                left_out.append(LeftOut(entry.path, error.message, failed=False))
            except OSError as error:
                reason = unreadable(folder / entry.name, error).message
                # a link that leads nowhere is no loss
                left_out.append(LeftOut(entry.path, reason, failed=not entry.is_symlink()))

    enter(root, "")
    return LocalTree(files, folders, left_out)


def _file(path: Path, name: str, status: os.stat_result) -> LocalFile:
    if stat.S_ISDIR(status.st_mode):
        raise LocalFileError(
            msg("{file} is a link to a folder, which is not followed: it is left out.", file=str(path))
        )
    if not stat.S_ISREG(status.st_mode):
        raise LocalFileError(msg("{file} is no ordinary file: it is left out.", file=str(path)))
    mode = stat.S_IMODE(status.st_mode) & 0o777
    return LocalFile(path, name, status.st_size, status.st_mtime_ns // 1_000_000, mode)
