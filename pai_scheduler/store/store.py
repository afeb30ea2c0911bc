"""Reads and writes what must survive. Blocking: the service calls it from its own threads."""

from __future__ import annotations

import json
import logging
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError

from pai_scheduler.clock.clock import ClockMark
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.core.events import Notice
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import ACCESS, Attempt, Job, JobEvent, SubState
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.keys.public_key import PublicKey

from . import rows
from .database import DatabaseFile, StoreError, Trouble, open_database, store_error
from .lease import Lease
from .migrate import EmptyDatabaseError, migrate
from .reserve import keep_reserve
from .sqlite_file import check_connection
from .tables import (
    KEPT,
    attempts,
    clock_marks,
    forgotten,
    installation,
    jobs,
    public_keys,
    story,
    tasks,
    virtual_clusters,
)

__all__ = ["DATABASE_FILE", "EmptyDatabaseError", "JobPosition", "Store", "StoreError", "StoredJobEvent"]

_log = logging.getLogger(__name__)

#: in the data folder, where the scheduler has no PostgreSQL
DATABASE_FILE = "scheduler.sqlite"
#: the row of `installation` with the database's own name
_NAME = "database"

_NOTICES = frozenset(notice.value for notice in Notice)

#: ids in one `IN (…)`: below SQLite's limit of 32,766 variables
_CHUNK = 10_000
#: what never changes of a job; written again, its indexes would be too
_FIXED = frozenset({"id", "user_name", "name", "virtual_cluster", "created"})
#: in which of them something may still happen to a job; a query for `!= ENDED` would use no index
_LIVE = [state.value for state in SubState if state is not SubState.ENDED]
#: rows that are in memory at once where there may be any number
_PAGE = 100


@dataclass(frozen=True, slots=True)
class StoredJobEvent:
    """A story entry with its id and whose job it is about."""

    id: int
    user: str
    job: str
    entry: JobEvent


class JobPosition(NamedTuple):
    """Where a job stands in the list of jobs: newest first, those of one ms by id; never changes."""

    created: int
    id: str


class Store:
    """The database at an SQLAlchemy `url`, brought up to the present schema; StoreError where that fails.

    With a `lease`, nothing is written once another service has it. EmptyDatabaseError: it is empty, and may
    not be.
    """

    def __init__(self, url: str, lease: Lease | None = None, *, may_be_empty: bool = True) -> None:
        self._lease = lease
        self.engine = open_database(url, client=lease.client if lease else "pai-scheduler")
        on_postgresql = self.engine.dialect.name == "postgresql"
        self._upsert: Any = postgresql.insert if on_postgresql else sqlite.insert
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

    # -- writing --------------------------------------------------------------------------------------------

    def commit(self, outcome: Outcome, configs: Mapping[str, Mapping[str, Any]]) -> list[TaskRef]:
        """Write all changes in one transaction; `configs` has the job JSON of the new jobs by id.

        Gives the tasks of the deleted jobs, whose logs may go now. StoreError: nothing was written.
        """
        with self._writing() as connection:
            self._write_jobs(connection, outcome.jobs.values(), configs)
            changed = [rows.attempt_row(job_id, attempt) for (job_id, _), attempt in outcome.attempts.items()]
            self._write(connection, attempts, changed)
            self._write(connection, tasks, [rows.task_row(task) for task in outcome.tasks.values()])
            if entries := self._untold(connection, self._of_known_jobs(connection, outcome.story)):
                connection.execute(story.insert(), [rows.story_row(entry) for entry in entries])
            changed = [
                rows.virtual_cluster_row(name, cluster) for name, cluster in outcome.virtual_clusters.items()
            ]
            self._write(connection, virtual_clusters, changed)
            gone = self._delete(connection, outcome.deleted)
        return gone

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

    def _write_jobs(
        self, connection: sa.Connection, changed: Iterable[Job], configs: Mapping[str, Mapping[str, Any]]
    ) -> None:
        new, old = [], []
        for job in changed:
            if job.id in configs:
                config = json.dumps(configs[job.id], ensure_ascii=False, separators=(",", ":"))
                new.append({**rows.job_row(job), "config": config})
            else:
                changing = {key: value for key, value in rows.job_row(job).items() if key not in _FIXED}
                old.append({"_id": job.id, **changing})
        if new:
            connection.execute(jobs.insert(), new)
        if old:
            connection.execute(jobs.update().where(jobs.c.id == sa.bindparam("_id")), old)

    def _of_known_jobs(self, connection: sa.Connection, entries: Iterable[JobEvent]) -> list[JobEvent]:
        """Leave out what is told of jobs that are deleted: who was in a task may leave it after that."""
        late = {entry.job_id for entry in entries if entry.type == ACCESS}
        if not late:
            return list(entries)
        there = set(connection.execute(sa.select(jobs.c.id).where(jobs.c.id.in_(late))).scalars())
        return [entry for entry in entries if entry.type != ACCESS or entry.job_id in there]

    def _untold(self, connection: sa.Connection, entries: Iterable[JobEvent]) -> list[JobEvent]:
        """Leave out what was noticed of a task before: an engine that was started again notices it again."""
        fresh: dict[object, JobEvent] = {}
        for number, entry in enumerate(entries):
            if entry.type not in _NOTICES:
                fresh[number] = entry
                continue
            values = (entry.job_id, entry.type, entry.attempt, entry.role, entry.index)
            columns = (story.c.job_id, story.c.type, story.c.attempt, story.c.role, story.c.idx)
            same = (column == value for column, value in zip(columns, values, strict=True))
            if connection.execute(sa.select(story.c.id).where(*same)).first() is None:
                fresh.setdefault(values, entry)
        return list(fresh.values())

    def _write(self, connection: sa.Connection, table: sa.Table, changed: list[dict[str, Any]]) -> None:
        if not changed:
            return
        insert = self._upsert(table)
        keys = [column.name for column in table.primary_key]
        others = {name: insert.excluded[name] for name in changed[0] if name not in keys}
        connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=others), changed)

    def _delete(self, connection: sa.Connection, deleted: Collection[str]) -> list[TaskRef]:
        if not deleted:
            return []
        columns = (tasks.c.job_id, tasks.c.attempt, tasks.c.role, tasks.c.idx)
        gone = sa.select(*columns).where(tasks.c.job_id.in_(deleted))
        refs = [TaskRef(*row) for row in connection.execute(gone)]
        connection.execute(forgotten.insert().from_select([column.name for column in columns], gone))
        connection.execute(jobs.delete().where(jobs.c.id.in_(deleted)))
        return refs

    def forgot(self, refs: Collection[TaskRef]) -> None:
        """Take note that the logs of these tasks of deleted jobs are removed."""
        with self._writing() as connection:
            for job_id in {ref.job_id for ref in refs}:
                connection.execute(forgotten.delete().where(forgotten.c.job_id == job_id))

    def keep_clock_mark(self, mark: ClockMark) -> None:
        """Keep where the scheduler's clock is, instead of where it was."""
        with self._writing() as connection:
            connection.execute(clock_marks.delete())
            connection.execute(clock_marks.insert(), asdict(mark))

    def add_public_key(self, user: str, key: PublicKey, now: int, most: int) -> int | None:
        """Keep a user's public key, at `now` (ms since the epoch); None: there are `most` already.

        Gives when it was added, as one that is there already stays as it is.
        """
        of_user = public_keys.c.user_name == user
        with self._writing() as connection:
            columns = (public_keys.c.fingerprint, public_keys.c.added)
            found = connection.execute(sa.select(*columns).where(of_user))
            known: dict[str, int] = {row.fingerprint: row.added for row in found}
            if key.fingerprint in known:
                return known[key.fingerprint]
            if len(known) >= most:
                return None
            row = {"user_name": user, "fingerprint": key.fingerprint, "line": str(key), "added": now}
            connection.execute(public_keys.insert(), row)
        return now

    def remove_public_key(self, user: str, fingerprint: str) -> bool:
        """Forget a user's public key; False where there is none."""
        which = (public_keys.c.user_name == user, public_keys.c.fingerprint == fingerprint)
        with self._writing() as connection:
            return connection.execute(public_keys.delete().where(*which)).rowcount > 0

    def remember_fingerprints(self, files: Mapping[str, str]) -> None:
        """Keep the fingerprints of files that belong to this database, by name."""
        with self._writing() as connection:
            changed = [{"name": name, "value": value} for name, value in files.items()]
            self._write(connection, installation, changed)

    # -- reading --------------------------------------------------------------------------------------------

    def name(self) -> str:
        """Return what tells this database from all others."""
        query = sa.select(installation.c.value).where(installation.c.name == _NAME)
        with self._reading() as connection:
            return str(connection.execute(query).scalar_one())

    def fingerprints(self) -> dict[str, str]:
        """Return the fingerprints of the files that belong to this database, by name."""
        with self._reading() as connection:
            found = connection.execute(sa.select(installation).where(installation.c.name != _NAME))
            return {row.name: row.value for row in found}

    def live_jobs(self) -> list[Job]:
        """Return every job that has not ended, or still holds something, with its present attempt's tasks."""
        with self._reading() as connection:
            found = connection.execute(sa.select(jobs).where(jobs.c.sub_state.in_(_LIVE)))
            return self._with_attempts(connection, [row._mapping for row in found])

    def virtual_clusters(self) -> dict[str, VirtualCluster | None]:
        """Return what administrators changed of the virtual clusters; None: deleted."""
        with self._reading() as connection:
            found = connection.execute(sa.select(virtual_clusters))
            return {row.name: rows.read_virtual_cluster(row._mapping) for row in found}

    def clock_mark(self) -> tuple[ClockMark | None, int | None]:
        """Return where the clock was, and the latest time told of jobs that have not ended.

        None: nothing is kept; there is no such job.
        """
        told = sa.select(sa.func.max(story.c.time)).join(jobs, jobs.c.id == story.c.job_id)
        with self._reading() as connection:
            found = connection.execute(sa.select(clock_marks)).first()
            latest = connection.execute(told.where(jobs.c.sub_state != SubState.ENDED.value)).scalar()
        return None if found is None else ClockMark(**found._mapping), latest

    def forgotten(self) -> list[TaskRef]:
        """Return the tasks of deleted jobs whose logs are still to be removed."""
        with self._reading() as connection:
            return [TaskRef(*row) for row in connection.execute(sa.select(forgotten))]

    def last_order(self) -> int:
        """Return the highest place in the order of submissions so far."""
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.max(jobs.c.ord))).scalar() or 0

    def jobs(
        self, user: str | None = None, *, after: JobPosition | None = None, limit: int | None = None
    ) -> list[Job]:
        """List jobs that nobody has deleted, newest first, without their tasks.

        `limit` of them (None: all), those that come after a position in that order.
        """
        if user is not None and not _can_be(user):
            return []
        # not by the order in the queue, which changes when a job is moved there
        query = sa.select(jobs).where(KEPT).order_by(jobs.c.created.desc(), jobs.c.id.desc())
        query = query.limit(limit)
        if user is not None:
            query = query.where(jobs.c.user_name == user)
        if after is not None:
            query = query.where(sa.tuple_(jobs.c.created, jobs.c.id) < sa.tuple_(*after))
        with self._reading() as connection:
            # row by row: their job JSONs all at once may be gigabytes
            return [
                rows.read_job(
                    row._mapping, None if row.attempt is None else Attempt(row.attempt, row.created)
                )
                for row in connection.execute(query.execution_options(yield_per=_PAGE))
            ]

    def job(self, user: str, name: str) -> Job | None:
        """Find a job that nobody has deleted, with its last attempt and its tasks."""
        if not _can_be(user, name):
            return None
        with self._reading() as connection:
            query = sa.select(jobs).where(jobs.c.user_name == user, jobs.c.name == name, KEPT)
            found = connection.execute(query).first()
            return self._with_attempts(connection, [found._mapping])[0] if found else None

    def is_over(self, job_id: str) -> bool:
        """Return whether nothing more will happen to a job: it ended and holds nothing, or is gone."""
        with self._reading() as connection:
            query = sa.select(jobs.c.sub_state).where(jobs.c.id == job_id)
            return connection.execute(query).scalar() in (None, SubState.ENDED.value)

    def config(self, job_id: str) -> dict[str, Any]:
        """Return the job JSON as submitted; KeyError where the job is gone."""
        with self._reading() as connection:
            text = connection.execute(sa.select(jobs.c.config).where(jobs.c.id == job_id)).scalar()
        if text is None:
            raise KeyError(job_id)
        config: dict[str, Any] = json.loads(text)
        return config

    def attempts(self, job_id: str) -> list[Attempt]:
        """Return all attempts of a job with their tasks, oldest first."""
        with self._reading() as connection:
            query = sa.select(attempts).where(attempts.c.job_id == job_id).order_by(attempts.c.number)
            found = [rows.read_attempt(row._mapping) for row in connection.execute(query)]
            by_number = {attempt.number: attempt for attempt in found}
            self._add_tasks(
                connection, tasks.c.job_id == job_id, {(job_id, n): a for n, a in by_number.items()}
            )
        return found

    def story(
        self, *, job_id: str | None = None, user: str | None = None, after: int = 0, limit: int = 10_000
    ) -> list[StoredJobEvent]:
        """Return story entries after an id, oldest first: of a job, of a user's jobs, or of all."""
        query = (
            sa.select(story, jobs.c.user_name, jobs.c.name)
            .join(jobs, jobs.c.id == story.c.job_id)
            .where(story.c.id > after)
            .order_by(story.c.id)
            .limit(limit)
        )
        if job_id is not None:
            query = query.where(story.c.job_id == job_id)
        if user is not None:
            query = query.where(jobs.c.user_name == user)
        with self._reading() as connection:
            found = [row._mapping for row in connection.execute(query)]
        return [
            StoredJobEvent(row["id"], row["user_name"], row["name"], rows.read_story(row)) for row in found
        ]

    def public_keys(self, user: str) -> list[tuple[PublicKey, int]]:
        """List the public keys of a user, and when each was added (ms since the epoch), oldest first."""
        if not _can_be(user):
            return []
        query = (
            sa.select(public_keys.c.line, public_keys.c.added)
            .where(public_keys.c.user_name == user)
            .order_by(public_keys.c.added, public_keys.c.fingerprint)
        )
        with self._reading() as connection:
            return [(PublicKey.parse(row.line), row.added) for row in connection.execute(query)]

    def has_public_key(self, user: str, fingerprint: str) -> bool:
        """Return whether a public key is one of a user's."""
        if not _can_be(user):
            return False
        which = (public_keys.c.user_name == user, public_keys.c.fingerprint == fingerprint)
        with self._reading() as connection:
            return connection.execute(sa.select(public_keys.c.added).where(*which)).first() is not None

    def count_by_virtual_cluster(self) -> dict[str, int]:
        """Count the jobs, ended ones too."""
        query = sa.select(jobs.c.virtual_cluster, sa.func.count()).group_by(jobs.c.virtual_cluster)
        with self._reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

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

    def _with_attempts(self, connection: sa.Connection, found: list[Any]) -> list[Job]:
        present: dict[tuple[str, int], Attempt] = {}
        numbers = {row["id"]: row["attempt"] for row in found if row["attempt"] is not None}
        ids = list(numbers)
        for start in range(0, len(ids), _CHUNK):
            chunk = ids[start : start + _CHUNK]
            for row in connection.execute(sa.select(attempts).where(attempts.c.job_id.in_(chunk))):
                if row.number == numbers[row.job_id]:
                    present[row.job_id, row.number] = rows.read_attempt(row._mapping)
            self._add_tasks(connection, tasks.c.job_id.in_(chunk), present)
        return [rows.read_job(row, present.get((row["id"], row["attempt"]))) for row in found]

    def _add_tasks(
        self,
        connection: sa.Connection,
        which: sa.ColumnElement[bool],
        present: Mapping[tuple[str, int], Attempt],
    ) -> None:
        by_attempt: dict[tuple[str, int], list[Any]] = defaultdict(list)
        for row in connection.execute(sa.select(tasks).where(which)):
            if (row.job_id, row.attempt) in present:
                by_attempt[row.job_id, row.attempt].append(row._mapping)
        for key, found in by_attempt.items():
            present[key].tasks = {(row["role"], row["idx"]): rows.read_task(row) for row in found}


def _can_be(*names: str) -> bool:
    """Return whether there can be such names: PostgreSQL takes no NUL, and fails on one."""
    return not any("\0" in name for name in names)


def _nobody_else(_connection: sa.Connection) -> None:
    """A database in our own folder has no other writer."""
