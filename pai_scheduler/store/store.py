"""Reads and writes what must survive. Blocking: the service calls it from its own threads."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any

import sqlalchemy as sa

from pai_scheduler.clock import ClockMark
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.fair_share import DecayedUsage, Sharer
from pai_scheduler.cluster.node import Closing
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Attempt, Job, State, SubState
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.public_key import PublicKey

from . import rows
from .commit import Outbox, write_outcome
from .database import StoreError
from .migrate import EmptyDatabaseError
from .records import (
    JobPosition,
    StoredDependencies,
    StoredHistory,
    StoredJobEvent,
    StoredMaintenance,
    StoredSchedules,
    SubmittedText,
)
from .rows import upsert
from .tables import (
    KEPT,
    attempts,
    clock_marks,
    closed_nodes,
    forgotten,
    installation,
    job_events,
    jobs,
    public_keys,
    tasks,
    usages,
    virtual_clusters,
)
from .transactions import DATABASE_FILE

__all__ = ["DATABASE_FILE", "EmptyDatabaseError", "Store", "StoreError"]

#: the row of `installation` with the database's own name
_NAME = "database"

#: ids in one `IN (…)`: below SQLite's limit of 32,766 variables
_CHUNK = 10_000
#: in which of them something may still happen to a job; a query for `!= ENDED` would use no index
_LIVE = [state.value for state in SubState if state is not SubState.ENDED]
#: rows that are in memory at once where there may be any number
_PAGE = 100
#: the same where the rows are short
_MANY = 1000


class Store(StoredDependencies, StoredSchedules, StoredMaintenance, Outbox, StoredHistory):
    """The persistent state: jobs, their attempts and tasks, job events, virtual clusters, cordoned nodes,
    maintenance, public keys, schedules."""

    # -- writing --------------------------------------------------------------------------------------------

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
            return write_outcome(connection, outcome, configs, texts or {})

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

    def close_node(self, node: str, closing: Closing) -> None:
        """Keep that a node is closed; one that is already, for this reason."""
        row = {"user_name": closing.by, "reason": closing.reason, "since": closing.since}
        with self._writing() as connection:
            upsert(connection, closed_nodes, [{"name": node, **row}])

    def open_node(self, node: str) -> None:
        """Forget that a node is closed, if it is."""
        with self._writing() as connection:
            connection.execute(closed_nodes.delete().where(closed_nodes.c.name == node))

    def remember_fingerprints(self, files: Mapping[str, str]) -> None:
        """Keep the fingerprints of files that belong to this database, by name."""
        with self._writing() as connection:
            changed = [{"name": name, "value": value} for name, value in files.items()]
            upsert(connection, installation, changed)

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
            # of those that only wait there may be a million: row by row, and no more than what differs
            query = sa.select(*rows.WAITING).where(rows.ONLY_WAITS).execution_options(yield_per=_MANY)
            waiting = [rows.read_waiting(row) for row in connection.execute(query)]
            others = sa.select(jobs).where(jobs.c.sub_state.in_(_LIVE), ~rows.ONLY_WAITS)
            return [*waiting, *self._with_attempts(connection, list(connection.execute(others)))]

    def virtual_clusters(self) -> dict[str, VirtualCluster | None]:
        """Return what administrators changed of the virtual clusters; None: deleted."""
        with self._reading() as connection:
            found = connection.execute(sa.select(virtual_clusters))
            return {row.name: rows.read_virtual_cluster(row._mapping) for row in found}

    def usages(self) -> dict[Sharer, DecayedUsage]:
        """Return what users had used of virtual clusters that they share by that."""
        with self._reading() as connection:
            found = connection.execute(sa.select(usages))
            return {
                (row.virtual_cluster, row.user_name): DecayedUsage(row.amount, row.as_of) for row in found
            }

    def closed_nodes(self) -> dict[str, Closing]:
        """Return why which nodes are closed, by name."""
        with self._reading() as connection:
            found = connection.execute(sa.select(closed_nodes))
            return {row.name: Closing(row.user_name, row.reason, row.since) for row in found}

    def clock_mark(self) -> tuple[ClockMark | None, int | None]:
        """Return where the clock was, and the latest time told of jobs that have not ended.

        None: nothing is kept; there is no such job.
        """
        told = sa.select(sa.func.max(job_events.c.time)).join(jobs, jobs.c.id == job_events.c.job_id)
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
        self,
        user: str | None = None,
        *,
        states: Collection[State] | None = None,
        after: JobPosition | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """List jobs that nobody has deleted, newest first, without their tasks.

        Those in one of `states` (None: in any); `limit` of them (None: all), those that come after a position
        in that order.
        """
        if user is not None and not _can_be(user):
            return []
        # not by the order in the queue, which changes when a job is moved there
        query = sa.select(jobs).where(KEPT).order_by(jobs.c.created.desc(), jobs.c.id.desc())
        query = query.limit(limit)
        if user is not None:
            query = query.where(jobs.c.user_name == user)
        if states is not None:
            query = query.where(jobs.c.state.in_([state.value for state in states]))
        if after is not None:
            query = query.where(sa.tuple_(jobs.c.created, jobs.c.id) < sa.tuple_(*after))
        with self._reading() as connection:
            # row by row: their job JSONs all at once may be gigabytes
            return [
                rows.read_job(row, None if row.attempt is None else Attempt(row.attempt, row.created))
                for row in connection.execute(query.execution_options(yield_per=_PAGE))
            ]

    def job(self, user: str, name: str) -> Job | None:
        """Find a job that nobody has deleted, with its last attempt and its tasks."""
        if not _can_be(user, name):
            return None
        with self._reading() as connection:
            query = sa.select(jobs).where(jobs.c.user_name == user, jobs.c.name == name, KEPT)
            found = connection.execute(query).first()
            return self._with_attempts(connection, [found])[0] if found else None

    def names(self) -> Iterator[tuple[str, str]]:
        """Return the users and names of all jobs that nobody has deleted, page by page."""
        query = sa.select(jobs.c.user_name, jobs.c.name).where(KEPT)
        with self._reading() as connection:
            for row in connection.execute(query.execution_options(yield_per=_MANY)):
                yield row.user_name, row.name

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

    def submitted_text(self, job_id: str) -> SubmittedText | None:
        """Return the text that a job was read from; None: its JSON says all, or it is gone."""
        with self._reading() as connection:
            query = sa.select(jobs.c.submitted, jobs.c.submitted_type).where(jobs.c.id == job_id)
            row = connection.execute(query).first()
        return None if row is None or row.submitted is None else SubmittedText(*row)

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

    def job_events(
        self, *, job_id: str | None = None, user: str | None = None, after: int = 0, limit: int = 10_000
    ) -> list[StoredJobEvent]:
        """Return job events after an id, oldest first: of a job, of a user's jobs, or of all."""
        query = (
            sa.select(job_events, jobs.c.user_name, jobs.c.name)
            .join(jobs, jobs.c.id == job_events.c.job_id)
            .where(job_events.c.id > after)
            .order_by(job_events.c.id)
            .limit(limit)
        )
        if job_id is not None:
            query = query.where(job_events.c.job_id == job_id)
        if user is not None:
            query = query.where(jobs.c.user_name == user)
        with self._reading() as connection:
            found = [row._mapping for row in connection.execute(query)]
        return [
            StoredJobEvent(row["id"], row["user_name"], row["name"], rows.read_job_event(row))
            for row in found
        ]

    def last_job_event(self) -> int:
        """Return the id of the newest job event; 0 where there is none."""
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.max(job_events.c.id))).scalar() or 0

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

    def _with_attempts(self, connection: sa.Connection, found: list[sa.Row[Any]]) -> list[Job]:
        present: dict[tuple[str, int], Attempt] = {}
        numbers = {row.id: row.attempt for row in found if row.attempt is not None}
        ids = list(numbers)
        for start in range(0, len(ids), _CHUNK):
            chunk = ids[start : start + _CHUNK]
            for row in connection.execute(sa.select(attempts).where(attempts.c.job_id.in_(chunk))):
                if row.number == numbers[row.job_id]:
                    present[row.job_id, row.number] = rows.read_attempt(row._mapping)
            self._add_tasks(connection, tasks.c.job_id.in_(chunk), present)
        return [rows.read_job(row, present.get((row.id, row.attempt))) for row in found]

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
