"""What there is to upload in a folder of this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.job.messages import msg

from .transfer import LeftOut, LocalFileError


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file; `name`: its path below the folder, with `/`; `length` in bytes, `modified` in ms."""

    path: Path
    name: str
    length: int
    modified: int
    executable: bool = False


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
        raise LocalFileError(
            msg("{file} cannot be read: {reason}.", file=str(path), reason=error.strerror)
        ) from None


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
            reason = msg("{file} cannot be read: {reason}.", file=str(folder), reason=error.strerror)
            left_out.append(LeftOut(str(folder), reason, failed=True))
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
                reason = msg("{file} cannot be read: {reason}.", file=entry.path, reason=error.strerror)
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
    executable = bool(status.st_mode & stat.S_IXUSR)
    return LocalFile(path, name, status.st_size, status.st_mtime_ns // 1_000_000, executable)
