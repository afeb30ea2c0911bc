"""Room that is to stay free on a disk."""

from __future__ import annotations

import shutil
from pathlib import Path

#: The part of a disk that is kept free at most, so that a small one can be used at all.
_LARGEST_PART = 0.05
_MB = 2**20


def least_free(folder: Path, least_free_mb: int) -> int:
    """Return the bytes that are to stay free on a folder's disk, of which `least_free_mb` are asked for."""
    return int(min(least_free_mb * _MB, shutil.disk_usage(folder).total * _LARGEST_PART))
