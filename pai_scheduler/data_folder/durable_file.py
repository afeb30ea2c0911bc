"""Writes a small file so that it is there whole, or as it was before, also after a power loss."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_durably(path: Path, contents: bytes) -> None:
    """Write or replace a file that nobody else reads."""
    fresh = write_aside(path, contents)
    fresh.rename(path)
    sync_folder(path.parent)


def write_aside(path: Path, contents: bytes) -> Path:
    """Write what is to become the file at `path` beside it; give where."""
    fresh = path.with_name(f"{path.name}.{secrets.token_hex(8)}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as file:
        file.write(contents)
        file.flush()
        os.fsync(file.fileno())
    return fresh


def sync_folder(folder: Path) -> None:
    """Make what was made, renamed and removed in a folder survive a power loss."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
