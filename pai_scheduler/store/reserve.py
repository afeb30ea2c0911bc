"""Room in SQLite's own files, so that it takes writes on a full disk: jobs must end there too.

Nobody else can take it, unlike a file that is given back: free pages in the database for what is new, and a
write-ahead log that is as long already as it grows until its next checkpoint. Where files are not written in
place (btrfs, ZFS) it is of no use.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from pathlib import Path

import sqlalchemy as sa

#: Bytes in the database, and in the log: twice what SQLite writes to that before it begins it again.
RESERVE = 2**23


def keep_reserve(engine: sa.Engine, least_free: int) -> None:
    """Make the reserve where half of it is used, as long as `least_free` bytes remain for others."""
    path = Path(engine.url.database or "")
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        page = connection.execute(sa.text("PRAGMA page_size")).scalar_one()
        free = connection.execute(sa.text("PRAGMA freelist_count")).scalar_one()
        if min(page * free, _size(path.with_name(f"{path.name}-wal"))) >= RESERVE // 2:
            return
        if shutil.disk_usage(path.parent).free < least_free + 2 * RESERVE:
            return
        # (a crash may have left it; and only what was once committed is really on the disk)
        connection.execute(sa.text("DROP TABLE IF EXISTS reserve"))
        connection.execute(sa.text("CREATE TABLE reserve (content BLOB)"))
        connection.execute(sa.text("INSERT INTO reserve VALUES (zeroblob(:size))"), {"size": RESERVE})
        connection.execute(sa.text("DROP TABLE reserve"))


def _size(file: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return os.path.getsize(file)  # noqa: PTH202 - no object is needed for it
    return 0
