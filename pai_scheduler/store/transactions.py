"""The open database and its transactions: a leader signs what it writes, and damage is noticed."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from .database import DatabaseFile, StoreError, Trouble, open_database, store_error
from .lease import Lease
from .migrate import EmptyDatabaseError, migrate
from .sqlite_file import check_connection, keep_reserve

_log = logging.getLogger(__name__)

#: in the data folder, where the scheduler has no PostgreSQL
DATABASE_FILE = "scheduler.sqlite"


class Database:
    """The database at an SQLAlchemy `url`, brought up to the present schema; StoreError where that fails.

    With a `lease`, nothing is written once another service has it. EmptyDatabaseError: it is empty, and may
    not be.
    """

    def __init__(self, url: str, lease: Lease | None = None, *, may_be_empty: bool = True) -> None:
        self._lease = lease
        self.engine = open_database(url, client=lease.client if lease else "pai-scheduler")
        on_postgresql = self.engine.dialect.name == "postgresql"
        # several queries see one state
        self._reader = (
            self.engine.execution_options(isolation_level="REPEATABLE READ") if on_postgresql else self.engine
        )
        try:
            migrate(self.engine, lease.sign if lease else _nobody_else, may_be_empty=may_be_empty)
        except StoreError:
            self.engine.dispose()
            raise
        except DBAPIError as error:
            self.engine.dispose()
            raise store_error(error) from error
        self._file = None if on_postgresql else DatabaseFile(self.engine.url.database)
        #: what is known to be damaged; None: nothing
        self.damage: str | None = None
        #: whether the last look for damage came to its end
        self.checked = True

    @classmethod
    def in_folder(cls, folder: Path, *, may_be_empty: bool = True) -> Self:
        """Open (or make) the embedded SQLite database in a folder."""
        file = folder / DATABASE_FILE
        # opened, it would lose what is in the log beside it
        if not may_be_empty and not (file.exists() and file.stat().st_size):
            raise EmptyDatabaseError
        folder.mkdir(parents=True, exist_ok=True)
        # everybody's jobs, and the secrets in their jobEnvs; SQLite's other files get the same mode
        file.touch(mode=0o600)
        file.chmod(0o600)
        return cls(f"sqlite:///{file}", may_be_empty=may_be_empty)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def look_for_damage(self, seconds: float) -> None:
        """Look whether SQLite's file is damaged, for so long at most; a PostgreSQL looks after itself."""
        if self._file is None:
            return
        with self._reading() as connection:
            raw = connection.connection.driver_connection
            assert isinstance(raw, sqlite3.Connection)  # noqa: S101 - SQLAlchemy does not know its type
            found = check_connection(raw, seconds=seconds)
        self.checked = found.whole
        if found.problems:
            self._note_damage(found.problems[0])
        elif not found.whole:
            _log.warning("the database was looked at for damage for %g s, and not to its end", seconds)

    def _note_damage(self, problem: str) -> None:
        if self.damage is None:
            self.damage = problem
            _log.critical("StorageDamagedError: the database is damaged, restore a backup: %s", problem)

    def _failed(self, error: DBAPIError) -> StoreError:
        found = store_error(error)
        if found.trouble is Trouble.DAMAGED:
            self._note_damage(str(found))
        return found

    def check_writable(self) -> None:
        """Write what changes nothing; StoreError where the database does not take it (disk full)."""
        with self._writing() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = version_num"))

    def keep_reserve(self, least_free: int) -> None:
        """Keep room for writes on a full disk, where `least_free` bytes remain beside it; see `reserve`.

        A PostgreSQL has none: it is on a disk of its own.
        """
        if self._file is None:
            return
        self._check_file()
        try:
            keep_reserve(self.engine, least_free)
        except DBAPIError as error:
            raise store_error(error) from error

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        """Write in one transaction, the only way to: as long as no other service has taken the lease."""
        self._check_file()
        mark, whole = None, False
        try:
            with self.engine.begin() as connection:
                if self._lease is not None:
                    mark = self._lease.sign(connection)
                yield connection
                whole = True
        except (IntegrityError, DataError):
            # what was to be written is wrong, not the database
            raise
        except DBAPIError as error:
            # the connection may have broken after the commit, before its answer
            if whole and mark is not None and self._lease is not None and self._lease.has_kept(mark):
                return
            raise self._failed(error) from error

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        self._check_file()
        try:
            with self._reader.connect() as connection:
                yield connection
        except DBAPIError as error:
            raise self._failed(error) from error


def _nobody_else(_connection: sa.Connection) -> None:
    """A database in our own folder has no other writer."""
