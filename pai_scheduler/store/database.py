"""The database, SQLite or PostgreSQL, set up so that what was committed survives; refusals where it fails."""

from __future__ import annotations

import os
import sqlite3
from enum import StrEnum
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError

from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.errors import RequestError, storage_damaged, storage_full, storage_unavailable

# Opens the database: SQLite or PostgreSQL, each set up so that what was committed survives.

#: Seconds until a PostgreSQL that is not there is given up, and ms until a connection that died silently is.
_CONNECT_SECONDS, _SILENCE_MS = 5, 10_000


class Trouble(StrEnum):
    """The kind of a database failure, as reported to its callers."""

    FULL = "full"  # there is no room for what is to be written
    DAMAGED = "damaged"  # what it wrote is not what it reads
    UNAVAILABLE = "unavailable"  # it does not answer, or refuses; all else


class StoreError(Exception):
    """The database cannot be opened or read, or did not take a change (disk full) and kept nothing of it.

    `reason` is what the database says, or a message of ours.
    """

    def __init__(self, reason: str | Message, trouble: Trouble = Trouble.UNAVAILABLE) -> None:
        super().__init__(str(reason))
        self.reason = reason
        self.trouble = trouble


#: SQLite's result codes and PostgreSQL's SQLSTATEs; the room of SQLite's shared memory is on the disk too
_TROUBLES: dict[object, Trouble] = {
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_IOERR_SHMSIZE: Trouble.FULL,
    sqlite3.SQLITE_CORRUPT: Trouble.DAMAGED,
    sqlite3.SQLITE_NOTADB: Trouble.DAMAGED,
    "53100": Trouble.FULL,
    "XX001": Trouble.DAMAGED,
    "XX002": Trouble.DAMAGED,
}
#: an extended result code of SQLite's has the plain one in its low byte
_PLAIN = 0xFF


def store_error(error: DBAPIError) -> StoreError:
    """Return the error that callers know, in one line."""
    return StoreError(" ".join(str(error.orig).split()), _trouble(error.orig))


def _trouble(error: object) -> Trouble:
    code = getattr(error, "sqlite_errorcode", None)
    if code is not None:
        return _TROUBLES.get(code) or _TROUBLES.get(code & _PLAIN, Trouble.UNAVAILABLE)
    # none where the connection broke
    return _TROUBLES.get(getattr(error, "sqlstate", None), Trouble.UNAVAILABLE)


def open_database(url: str, *, client: str = "pai-scheduler", **options: Any) -> sa.Engine:
    """Make the SQLAlchemy engine for a URL; connects at first use. StoreError where the URL cannot be used.

    `client` is the name that PostgreSQL shows for our sessions; `options` go to SQLAlchemy.
    """
    try:
        place = sa.make_url(url)
    except ArgumentError:
        raise StoreError(
            msg("it is no database's address; one is postgresql://USER@HOST:PORT/DATABASE")
        ) from None
    if place.get_backend_name() not in ("sqlite", "postgresql"):
        raise StoreError(
            msg("{kind} is no kind of database that is known; use postgresql", kind=place.get_backend_name())
        )
    if place.get_backend_name() == "sqlite":
        engine = sa.create_engine(place, **options)
        sa.event.listen(engine, "connect", _set_up_sqlite)
        return engine
    try:
        engine = sa.create_engine(
            place.set(drivername="postgresql+psycopg"),
            # one whose server was started again is noticed before it is used
            pool_pre_ping=True,
            connect_args={
                "application_name": client,
                "connect_timeout": _CONNECT_SECONDS,
                "keepalives_idle": 5,
                "keepalives_interval": 2,
                "keepalives_count": 3,
                "tcp_user_timeout": _SILENCE_MS,
            },
            **options,
        )
        sa.event.listen(engine, "connect", _set_up_postgresql)
        return engine
    except (NoSuchModuleError, ImportError):
        raise StoreError(
            msg("the driver for PostgreSQL is missing; install it: {command}", command=_INSTALL)
        ) from None


_INSTALL = "pip install 'pai-for-jupyter[postgresql]'"


class DatabaseFile:
    """SQLite's file. Where it is deleted, SQLite goes on as if nothing were, into a file without a name."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._identity = self._look()

    def check(self) -> None:
        """StoreError where the file is not the one that was opened."""
        if self._look() != self._identity:
            raise StoreError(
                msg(
                    "its file {file} was deleted or replaced while the scheduler ran; "
                    "restore it, and start the scheduler again",
                    file=self._path,
                )
            )

    def _look(self) -> tuple[int, int] | None:
        if not self._path:
            return None
        try:
            found = os.stat(self._path)  # noqa: PTH116 - at every commit and every read
        except OSError:
            return None
        return found.st_dev, found.st_ino


def _set_up_sqlite(connection: Any, _record: object) -> None:
    """WAL lets readers read while one writes; FULL makes a commit survive power loss.

    What SQLite needs for a moment stays in memory: the disk may be full.
    """
    cursor = connection.cursor()
    for pragma in (
        *("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=10000"),
        "temp_store=MEMORY",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _set_up_postgresql(connection: Any, _record: object) -> None:
    """Make commits survive a crash of the server, even if it is configured with `synchronous_commit` off."""
    connection.execute(
        "SELECT set_config('synchronous_commit', 'on', false)"
        " WHERE current_setting('synchronous_commit') = 'off'"
    )
    connection.commit()


# What a request is told when the database does not do its part: by what is wrong with it.


def not_written(error: StoreError) -> RequestError:
    """Return the error that says that nothing was accepted."""
    match error.trouble:
        case Trouble.FULL:
            message = msg(
                "The scheduler has no room left in its database ({error}). Nothing was accepted; try again "
                "later.",
                error=error.reason,
            )
            return storage_full(message)
        case Trouble.DAMAGED:
            return _damaged(error)
        case Trouble.UNAVAILABLE:
            message = msg(
                "The scheduler cannot reach its database, or may not write to it ({error}). Nothing was "
                "accepted; what runs goes on. Try again later.",
                error=error.reason,
            )
            return storage_unavailable(message)


def not_read(error: StoreError) -> RequestError:
    """Return the error that says that nothing can be told."""
    if error.trouble is Trouble.DAMAGED:
        return _damaged(error)
    message = msg("The scheduler cannot read its database ({error}). What runs goes on.", error=error.reason)
    return storage_unavailable(message)


def _damaged(error: StoreError) -> RequestError:
    message = msg(
        "The scheduler's database is damaged ({error}), and this needs what is lost. What runs goes on. Ask "
        "an administrator to restore a backup.",
        error=error.reason,
    )
    return storage_damaged(message)
