"""A SQLite database as a file: its state, copies of it, and room in it for a full disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

# A SQLite database as a file: is it whole, what is it, and a copy of it while others write to it.

#: instructions of SQLite's machine between two looks at the clock: so many at least, and so many for each
#: page of the file, as each look waits for whatever else Python does
_STEPS, _STEPS_A_PAGE = 10_000, 25
#: findings that are told: the first ones tell enough
_MOST = 20
#: what tells a database of ours, with the version of its tables, and its name, which those from before the
#: first release may lack
_REVISION = "SELECT version_num FROM alembic_version"
_NAME = "SELECT value FROM installation WHERE name = 'database'"


@dataclass(frozen=True, slots=True)
class Findings:
    """The result of a check: messages of SQLite, none if the file is intact; `whole`: the check completed."""

    problems: tuple[str, ...]
    whole: bool = True


@dataclass(frozen=True, slots=True)
class Identity:
    """The schema revision and name of a database; `name` is None in one from before the first release."""

    revision: str
    name: str | None


def check(path: Path, *, seconds: float | None = None) -> Findings:
    """Look for damage, for so long at most; without a limit the indexes are held against their tables too."""
    with _opened(path) as connection:
        return check_connection(connection, seconds=seconds)


def check_connection(connection: sqlite3.Connection, *, seconds: float | None = None) -> Findings:
    """Look for damage on an open connection, which is as before afterwards."""
    problems: list[str] = []
    questions = ["PRAGMA quick_check"]
    if seconds is None:
        questions = ["PRAGMA integrity_check", "PRAGMA foreign_key_check"]
    try:
        if seconds is not None:
            deadline = time.monotonic() + seconds
            (pages,) = connection.execute("PRAGMA page_count").fetchone()
            steps = max(_STEPS, _STEPS_A_PAGE * pages)
            connection.set_progress_handler(lambda: time.monotonic() > deadline, steps)
        for question in questions:
            for row in connection.execute(question):
                if row != ("ok",):
                    problems.append(" ".join(" ".join(map(str, row)).split()))
                if len(problems) >= _MOST:
                    return Findings(tuple(problems))
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            return Findings(tuple(problems), whole=False)
        problems.append(str(error))
    finally:
        connection.set_progress_handler(None, 0)
    return Findings(tuple(problems))


def identify(path: Path) -> Identity | None:
    """Return what a file is; None where it is no database of ours."""
    with _opened(path) as connection:
        try:
            row = connection.execute(_REVISION).fetchone()
        except sqlite3.DatabaseError:
            return None
        try:
            name = connection.execute(_NAME).fetchone()
        except sqlite3.DatabaseError:
            name = None
    return Identity(row[0], name[0] if name else None) if row else None


def copy(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment, while others write to it, into one file that only we read.

    sqlite3.Error, OSError: it cannot be read, or there is no room; nothing is at `target` then.
    """
    target.unlink(missing_ok=True)
    target.touch(mode=0o600)
    try:
        with _opened(source) as connection, closing(sqlite3.connect(target)) as made:
            connection.backup(made)
            # without a log beside it
            made.execute("PRAGMA journal_mode = DELETE")
    except BaseException:
        target.unlink(missing_ok=True)
        raise


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        yield connection


# Room in SQLite's own files, so that it takes writes on a full disk: jobs must end there too.
#
# Nobody else can take it, unlike a file that is given back: free pages in the database for what is new, and
# a write-ahead log that is as long already as it grows until its next checkpoint. Where files are not
# written in place (btrfs, ZFS) it is of no use.

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
