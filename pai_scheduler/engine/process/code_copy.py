"""Copies a job's code into a task's working folder, for the task to change.

Only small modules are imported: every supervisor loads this one.
"""

from __future__ import annotations

import os
from pathlib import Path

_PIECE = 2**20


def copy_folder(source: str | Path, target: Path) -> None:
    """Copy a folder of plain files and folders; OSError. The owner may write to the copy.

    Files that may be run stay so. What is neither a file nor a folder is left out.
    """
    target.mkdir(mode=0o755)
    with os.scandir(source) as entries:
        for entry in entries:
            here = target / entry.name
            if entry.is_dir(follow_symlinks=False):
                copy_folder(entry.path, here)
            elif entry.is_file(follow_symlinks=False):
                _copy_file(entry.path, here, 0o755 if entry.stat().st_mode & 0o111 else 0o644)


def _copy_file(source: str, target: Path, mode: int) -> None:
    reading = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            while os.sendfile(writing, reading, None, _PIECE):
                pass
        finally:
            os.close(writing)
    finally:
        os.close(reading)
