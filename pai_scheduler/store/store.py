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
from pai_scheduler.cluster.node import Closing, Maintenance
from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.instructions import Announcement
from pai_scheduler.core.model import Attempt, Job, JobEvent, State, SubState
from pai_scheduler.job.schedule import Schedule
from pai_scheduler.job.task import TaskRef
from pai_scheduler.ssh.public_key import PublicKey

from . import rows
from .database import StoreError
from .migrate import EmptyDatabaseError
from .records import (
    EndedRun,
    JobLinks,
    JobPosition,
    RecordedJob,
    StoredJobEvent,
    SubmittedText,
    WaitingAnnouncement,
)
from .rows import upsert
from .tables import (
    KEPT,
    announcements,
    attempts,
    clock_marks,
    closed_nodes,
    dependencies,
    forgotten,
    installation,
    job_events,
    jobs,
    maintenance,
    public_keys,
    schedules,
    tasks,
    usages,
    virtual_clusters,
)
from .transactions import DATABASE_FILE, Database

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
#: of a schedule without its job
_HEADS = [column for column in schedules.c if column.name != "config"]


class Store(Database):
    """The persistent state: jobs, their attempts and tasks, job events, virtual clusters, cordoned nodes,
    maintenance, public keys, schedules, announcements."""

    # -- writing --------------------------------------------------------------------------------------------

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
            latest = connection.execute(told.where(jobs.c.sub_state.in_(_LIVE))).scalar()
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

    # -- which jobs wait for which ------------------------------------------------------------------------

    def waited_for(self) -> dict[str, list[Dependency]]:
        """Return the dependencies of every job that still waits for others, by its id."""
        query = (
            sa.select(dependencies)
            .join(jobs, jobs.c.id == dependencies.c.job_id)
            .where(jobs.c.sub_state == SubState.DEPENDENCY_WAIT.value)
            .order_by(dependencies.c.job_id, dependencies.c.place)
        )
        found: dict[str, list[Dependency]] = defaultdict(list)
        with self._reading() as connection:
            for row in connection.execute(query):
                found[row.job_id].append(rows.read_dependency(row._mapping))
        return found

    def job_ids(self, user: str, names: Collection[str]) -> dict[str, str]:
        """Return the ids of a user's jobs by name, those that there are and nobody has deleted."""
        # (PostgreSQL takes no NUL)
        asked = [name for name in names if "\0" not in name]
        query = sa.select(jobs.c.name, jobs.c.id).where(
            jobs.c.user_name == user, jobs.c.name.in_(asked), KEPT
        )
        with self._reading() as connection:
            return {row.name: row.id for row in connection.execute(query)}

    def ended_states(self, job_ids: Collection[str]) -> dict[str, State]:
        """Return how jobs came out, by id; without those that have not ended, or are deleted."""
        query = sa.select(jobs.c.id, jobs.c.state).where(jobs.c.sub_state == SubState.ENDED.value)
        asked, found = list(job_ids), {}
        with self._reading() as connection:
            for begin in range(0, len(asked), _CHUNK):
                chunk = query.where(jobs.c.id.in_(asked[begin : begin + _CHUNK]))
                found.update({row.id: State(row.state) for row in connection.execute(chunk)})
        return found

    def links(self, job_id: str, most: int) -> JobLinks:
        """Return what a job waits or has waited for, and at most so many of those that do so for it."""
        columns = (dependencies.c.wanted, dependencies.c.holds, jobs.c.state)
        mine = (
            sa.select(dependencies.c.name, *columns)
            .outerjoin(jobs, sa.and_(jobs.c.id == dependencies.c.target, KEPT))
            .where(dependencies.c.job_id == job_id)
            .order_by(dependencies.c.place)
        )
        theirs = (
            sa.select(jobs.c.name, *columns)
            .join(jobs, sa.and_(jobs.c.id == dependencies.c.job_id, KEPT))
            .where(dependencies.c.target == job_id)
        )
        first = theirs.order_by(jobs.c.created, jobs.c.id, dependencies.c.place).limit(most)
        with self._reading() as connection:
            waits_for = [rows.read_link(row) for row in connection.execute(mine).mappings()]
            dependents = [rows.read_link(row) for row in connection.execute(first).mappings()]
            count = len(dependents)
            if count == most:
                counted = sa.select(sa.func.count()).select_from(theirs.subquery())
                count = connection.execute(counted).scalar_one()
        return JobLinks(waits_for, dependents, count)

    # -- schedules ----------------------------------------------------------------------------------------

    def put_schedule(self, schedule: Schedule, config: Mapping[str, Any], most: int) -> bool:
        """Keep a schedule with its job JSON, instead of one that its user has by this name.

        False: there is none, and the user has `most` others already.
        """
        of_user = schedules.c.user_name == schedule.user
        with self._writing() as connection:
            names = connection.execute(sa.select(schedules.c.name).where(of_user)).scalars().all()
            if schedule.name not in names and len(names) >= most:
                return False
            text = json.dumps(config, ensure_ascii=False, separators=(",", ":"))
            upsert(connection, schedules, [{**rows.schedule_row(schedule), "config": text}])
        return True

    def change_schedule(self, schedule: Schedule) -> None:
        """Keep what has changed of a schedule but its job; nothing where it is gone."""
        with self._writing() as connection:
            update = schedules.update().where(*_schedule(schedule.user, schedule.name))
            connection.execute(update, rows.schedule_row(schedule))

    def remove_schedule(self, user: str, name: str) -> bool:
        """Forget a schedule; False where there is none."""
        with self._writing() as connection:
            return connection.execute(schedules.delete().where(*_schedule(user, name))).rowcount > 0

    def schedules(self, user: str) -> list[Schedule]:
        """List the schedules of a user by name."""
        if "\0" in user:
            return []
        query = sa.select(*_HEADS).where(schedules.c.user_name == user).order_by(schedules.c.name)
        with self._reading() as connection:
            return [rows.read_schedule(row._mapping) for row in connection.execute(query)]

    def schedule(self, user: str, name: str) -> tuple[Schedule, dict[str, Any]] | None:
        """Find a schedule, with its job JSON."""
        if "\0" in user + name:
            return None
        with self._reading() as connection:
            row = connection.execute(sa.select(schedules).where(*_schedule(user, name))).first()
        return None if row is None else (rows.read_schedule(row._mapping), json.loads(row.config))

    def due_schedules(self, now: int) -> list[tuple[str, str]]:
        """List the users and names of the schedules that are due, the longest due first."""
        query = sa.select(schedules.c.user_name, schedules.c.name).where(schedules.c.next_time <= now)
        with self._reading() as connection:
            found = connection.execute(query.order_by(schedules.c.next_time, schedules.c.user_name))
            return [(row.user_name, row.name) for row in found]

    def next_due(self) -> int | None:
        """Return when the next of all schedules is due (ms since the epoch); None: none ever is."""
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.min(schedules.c.next_time))).scalar()

    # -- planned maintenance ------------------------------------------------------------------------------

    def put_maintenance(self, window: Maintenance) -> None:
        """Keep what is planned, instead of what there is by this name."""
        row = {
            "name": window.name,
            "nodes": json.dumps(window.nodes, ensure_ascii=False),
            "begin_time": window.begin,
            "end_time": window.end,
            "reason": window.reason,
            "user_name": window.by,
        }
        with self._writing() as connection:
            upsert(connection, maintenance, [row])

    def remove_maintenance(self, name: str) -> None:
        """Forget what is planned by a name, if anything is."""
        with self._writing() as connection:
            connection.execute(maintenance.delete().where(maintenance.c.name == name))

    def maintenance(self) -> list[Maintenance]:
        """List what is planned, also what is over, the first to begin first."""
        query = sa.select(maintenance).order_by(maintenance.c.begin_time, maintenance.c.name)
        with self._reading() as connection:
            return [
                Maintenance(
                    row.name,
                    tuple(json.loads(row.nodes)),
                    row.begin_time,
                    row.end_time,
                    row.reason,
                    row.user_name,
                )
                for row in connection.execute(query)
            ]

    # -- what is still to be told outside -----------------------------------------------------------------

    def due_announcements(self, now: int, limit: int) -> list[WaitingAnnouncement]:
        """List those that are due: first what was never tried, and of these the oldest."""
        query = sa.select(announcements).where(announcements.c.due <= now)
        query = query.order_by(announcements.c.tries, announcements.c.due).limit(limit)
        with self._reading() as connection:
            return [rows.read_announcement(row._mapping) for row in connection.execute(query)]

    def next_announcement(self) -> int | None:
        """Return when the next one is due (ms since the epoch); None: there is none."""
        with self._reading() as connection:
            return connection.execute(sa.select(sa.func.min(announcements.c.due))).scalar()

    def announce_all(self, now: int) -> None:
        """Have all be due: what kept them from being told may be over."""
        with self._writing() as connection:
            connection.execute(announcements.update().where(announcements.c.due > now).values(due=now))

    def put_off(self, announcement: Announcement, tries: int, due: int) -> None:
        """Keep that one was tried so often in vain, and is to be tried again then."""
        with self._writing() as connection:
            connection.execute(_one(announcements.update(), announcement).values(tries=tries, due=due))

    def settle(self, announcement: Announcement, entry: JobEvent | None = None) -> None:
        """Forget one that is told, or given up; with what is told of that, where its job is still there."""
        with self._writing() as connection:
            connection.execute(_one(announcements.delete(), announcement))
            known = sa.select(jobs.c.id).where(jobs.c.id == announcement.job_id)
            if entry is not None and connection.execute(known).first() is not None:
                connection.execute(job_events.insert(), rows.job_event_row(entry))

    # -- what ran when ------------------------------------------------------------------------------------

    def recorded_jobs(self, begin: int | None = None, end: int | None = None) -> Iterator[RecordedJob]:
        """Return the jobs submitted from `begin` (ms since the epoch; None: any) until before `end`."""
        mine = sa.and_(attempts.c.job_id == jobs.c.id, attempts.c.number == jobs.c.attempt)
        times = (attempts.c.created.label("placed"), attempts.c.completed.label("ended"))
        query = sa.select(jobs, *times).select_from(jobs.outerjoin(attempts, mine))
        if begin is not None:
            query = query.where(jobs.c.created >= begin)
        if end is not None:
            query = query.where(jobs.c.created < end)
        query = query.order_by(jobs.c.created, jobs.c.id).execution_options(yield_per=_MANY)
        with self._reading() as connection:
            for row in connection.execute(query):
                job = rows.read_job(row, None)
                yield RecordedJob(
                    job.name,
                    job.user,
                    job.spec,
                    job.eligible_since,
                    job.present_priority,
                    row.placed,
                    row.ended,
                )

    def last_ended_runs(self, most: int) -> list[EndedRun]:
        """Return at most so many of the jobs submitted last that ran and have ended, the oldest first."""
        mine = sa.and_(attempts.c.job_id == jobs.c.id, attempts.c.number == jobs.c.attempt)
        ran = (attempts.c.completed - attempts.c.created).label("ran_ms")
        query = (
            sa.select(jobs, ran)
            .select_from(jobs.join(attempts, mine))
            .where(jobs.c.completed.is_not(None), attempts.c.launched.is_not(None))
            .where(attempts.c.completed.is_not(None))
            .order_by(jobs.c.created.desc())
            .limit(most)
        )
        with self._reading() as connection:
            found = [(rows.read_job(row, None), row.ran_ms) for row in connection.execute(query)]
        return [EndedRun(job.user, job.spec, ran_ms) for job, ran_ms in reversed(found)]

    # -- within -------------------------------------------------------------------------------------------

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


def _schedule(user: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return schedules.c.user_name == user, schedules.c.name == name


def _one(statement: Any, announcement: Announcement) -> Any:
    which = (announcements.c.job_id == announcement.job_id, announcements.c.channel == announcement.channel)
    return statement.where(*which)
