"""Damages a SQLite file as a bad disk does."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

#: Bytes of a page of ours.
_PAGE = 4096


def overwrite(database: Path) -> None:
    """Overwrite the first page of the index by which jobs are found."""
    connection = sqlite3.connect(database)
    (page,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = 'uq_jobs_user_name'"
    ).fetchone()
    connection.close()
    with open(database, "r+b") as file:
        file.seek((page - 1) * _PAGE)
        file.write(b"\xff" * _PAGE)


def cut(database: Path) -> None:
    """Lose the second half."""
    os.truncate(database, database.stat().st_size // 2 // _PAGE * _PAGE)
