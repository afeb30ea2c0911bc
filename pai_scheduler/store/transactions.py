"""The open database, its transactions, and the writing of what the core decided; damage is noticed."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from pai_scheduler.cluster.fair_share import DecayedUsage, Sharer
from pai_scheduler.core.events import Notice
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import ACCESS, Job, JobEvent
from pai_scheduler.job.task import TaskRef

from . import rows
from .database import DatabaseFile, StoreError, Trouble, open_database, store_error
from .lease import Lease
from .migrate import EmptyDatabaseError, migrate
from .records import SubmittedText
from .sqlite_file import check_connection, keep_reserve
from .tables import (
    announcements,
    attempts,
    dependencies,
    forgotten,
    job_events,
    jobs,
    tasks,
    usages,
    virtual_clusters,
)

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

    def commit(
        self,
        outcome: Outcome,
        configs: Mapping[str, Mapping[str, Any]],
        texts: Mapping[str, SubmittedText] | None = None,
    ) -> list[TaskRef]:
        """Write all changes in one transaction; `configs` has the job JSON of the new jobs by id, `texts`
        what it was read from where that is kept too.

        Gives the tasks of the deleted jobs, whose logs may go now. StoreError: nothing was written.
        """
        with self._writing() as connection:
            _write_jobs(connection, outcome.jobs.values(), configs, texts or {})
            changed = [
                rows.dependency_row(*key, dependency) for key, dependency in outcome.dependencies.items()
            ]
            rows.upsert(connection, dependencies, changed)
            changed = [rows.attempt_row(job_id, attempt) for (job_id, _), attempt in outcome.attempts.items()]
            rows.upsert(connection, attempts, changed)
            rows.upsert(connection, tasks, [rows.task_row(task) for task in outcome.tasks.values()])
            entries = _untold(connection, _of_known_jobs(connection, outcome.job_events))
            _insert(connection, job_events, [rows.job_event_row(entry) for entry in entries])
            changed = [
                rows.virtual_cluster_row(name, cluster) for name, cluster in outcome.virtual_clusters.items()
            ]
            rows.upsert(connection, virtual_clusters, changed)
            _write_usages(connection, outcome.usages)
            rows.upsert(connection, announcements, rows.announcement_rows(outcome.announcements))
            return _delete(connection, outcome.deleted)

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


# Writing of what the core decided, within the caller's transaction.


#: Rows that SQLite gets at once, at most: after each statement its driver waits for its turn to run Python.
_ROWS = 64
_NOTICES = frozenset(notice.value for notice in Notice)
#: what never changes of a job; written again, its indexes would be too
_FIXED = frozenset({"id", "user_name", "name", "virtual_cluster", "created"})


def _insert(connection: sa.Connection, table: sa.Table, new: list[dict[str, Any]]) -> None:
    """Insert rows that have the same columns, given to the driver as they are.

    What SQLAlchemy does for each value of a statement takes as long as the database takes for a small job.
    """
    if not new:
        return
    columns, values = tuple(new[0]), [tuple(row.values()) for row in new]
    if connection.dialect.name != "sqlite":
        connection.exec_driver_sql(_insert_text(table.name, columns, "%s"), values)
        return
    while values:
        # a power of two, so that few texts are ever prepared
        count = min(_ROWS, 1 << (len(values).bit_length() - 1))
        text = _insert_text(table.name, columns, "?", count)
        connection.exec_driver_sql(text, tuple(chain.from_iterable(values[:count])))
        del values[:count]


@lru_cache
def _insert_text(table: str, columns: tuple[str, ...], mark: str, count: int = 1) -> str:
    row = f"({', '.join([mark] * len(columns))})"
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES {', '.join([row] * count)}"  # noqa: S608 - names of our own


def _write_jobs(
    connection: sa.Connection,
    changed: Iterable[Job],
    configs: Mapping[str, Mapping[str, Any]],
    texts: Mapping[str, SubmittedText],
) -> None:
    new, old = [], []
    for job in changed:
        if job.id in configs:
            text, media_type = texts.get(job.id) or (None, None)
            kept = {"config": rows.dump(configs[job.id]), "submitted": text, "submitted_type": media_type}
            new.append({**rows.job_row(job), **kept})
        else:
            changing = {key: value for key, value in rows.job_row(job).items() if key not in _FIXED}
            old.append({"_id": job.id, **changing})
    _insert(connection, jobs, new)
    if old:
        connection.execute(jobs.update().where(jobs.c.id == sa.bindparam("_id")), old)


def _write_usages(connection: sa.Connection, changed: Mapping[Sharer, DecayedUsage | None]) -> None:
    kept = [rows.usage_row(sharer, usage) for sharer, usage in changed.items() if usage is not None]
    rows.upsert(connection, usages, kept)
    for (cluster, user), usage in changed.items():
        if usage is None:
            which = (usages.c.virtual_cluster == cluster, usages.c.user_name == user)
            connection.execute(usages.delete().where(*which))


def _of_known_jobs(connection: sa.Connection, entries: Iterable[JobEvent]) -> list[JobEvent]:
    """Leave out what is told of jobs that are deleted: who was in a task may leave it after that."""
    late = {entry.job_id for entry in entries if entry.type == ACCESS}
    if not late:
        return list(entries)
    there = set(connection.execute(sa.select(jobs.c.id).where(jobs.c.id.in_(late))).scalars())
    return [entry for entry in entries if entry.type != ACCESS or entry.job_id in there]


def _untold(connection: sa.Connection, entries: Iterable[JobEvent]) -> list[JobEvent]:
    """Leave out what was noticed of a task before: an engine that was started again notices it again."""
    fresh: dict[object, JobEvent] = {}
    for number, entry in enumerate(entries):
        if entry.type not in _NOTICES:
            fresh[number] = entry
            continue
        values = (entry.job_id, entry.type, entry.attempt, entry.role, entry.index)
        columns = (
            job_events.c.job_id,
            job_events.c.type,
            job_events.c.attempt,
            job_events.c.role,
            job_events.c.idx,
        )
        same = (column == value for column, value in zip(columns, values, strict=True))
        if connection.execute(sa.select(job_events.c.id).where(*same)).first() is None:
            fresh.setdefault(values, entry)
    return list(fresh.values())


def _delete(connection: sa.Connection, deleted: Collection[str]) -> list[TaskRef]:
    if not deleted:
        return []
    columns = (tasks.c.job_id, tasks.c.attempt, tasks.c.role, tasks.c.idx)
    gone = sa.select(*columns).where(tasks.c.job_id.in_(deleted))
    refs = [TaskRef(*row) for row in connection.execute(gone)]
    connection.execute(forgotten.insert().from_select([column.name for column in columns], gone))
    connection.execute(jobs.delete().where(jobs.c.id.in_(deleted)))
    return refs
