"""Records beside jobs: events, maintenance, history, schedules, dependencies."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa

from pai_scheduler.cluster.node import Maintenance
from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.model import JobEvent, State, SubState
from pai_scheduler.job.dependencies import On
from pai_scheduler.job.schedule import LastRun, Overlap, RunOutcome, Schedule
from pai_scheduler.job.spec import JobSpec

from . import rows
from .rows import upsert
from .tables import KEPT, attempts, dependencies, jobs, maintenance, schedules
from .transactions import Database

# What the store lists: job events with their ids, places in the list of jobs, links between jobs.


@dataclass(frozen=True, slots=True)
class StoredJobEvent:
    """A job event with its id and whose job it is about."""

    id: int
    user: str
    job: str
    entry: JobEvent


class SubmittedText(NamedTuple):
    """A job as it was sent, comments and layout included, and its media type."""

    text: str
    media_type: str


class JobPosition(NamedTuple):
    """The position of a job in the list of jobs: newest first, those of one ms by id; never changes."""

    created: int
    id: str


@dataclass(frozen=True, slots=True)
class LinkedJob:
    """A job that another waits for, or that waits for it: its name and its state now; None: it is deleted.

    `on`: how the one that is waited for must end; `holds`: whether it did; None: it has not ended.
    """

    name: str
    state: State | None
    on: On
    holds: bool | None


@dataclass(frozen=True, slots=True)
class JobLinks:
    """The dependencies of a job in declared order, and the first of its `dependent_count` dependents."""

    dependencies: Sequence[LinkedJob] = ()
    dependents: Sequence[LinkedJob] = ()
    dependent_count: int = 0


# Reads and writes the maintenance that administrators have planned.


class StoredMaintenance(Database):
    """The part of the store that has the maintenance."""

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


# What jobs ran when: read job by job, as they may be a million.

#: rows that are in memory at once
_PAGE = 1000


@dataclass(frozen=True, slots=True)
class RecordedJob:
    """A job and its last attempt. Times are ms since the epoch; `placed`: when it got its resources.

    `created`: when it was submitted; of one that waited for other jobs, when they had ended as it asks.

    `placed` is None where it never got any, `ended` where it still has them.
    """

    name: str
    user: str
    spec: JobSpec
    created: int
    priority: int
    placed: int | None
    ended: int | None


@dataclass(frozen=True, slots=True)
class EndedRun:
    """A job that has ended, and for how long (ms) its last attempt had its resources."""

    user: str
    spec: JobSpec
    ran_ms: int


class StoredHistory(Database):
    """Reads what was submitted in a while, and how long it had its resources."""

    def recorded_jobs(self, begin: int | None = None, end: int | None = None) -> Iterator[RecordedJob]:
        """Return the jobs submitted from `begin` (ms since the epoch; None: any) until before `end`."""
        mine = sa.and_(attempts.c.job_id == jobs.c.id, attempts.c.number == jobs.c.attempt)
        times = (attempts.c.created.label("placed"), attempts.c.completed.label("ended"))
        query = sa.select(jobs, *times).select_from(jobs.outerjoin(attempts, mine))
        if begin is not None:
            query = query.where(jobs.c.created >= begin)
        if end is not None:
            query = query.where(jobs.c.created < end)
        query = query.order_by(jobs.c.created, jobs.c.id).execution_options(yield_per=_PAGE)
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


# Reads and writes the schedules: what is to run again and again, and what came of it last.

_WITHOUT_CONFIG = [column for column in schedules.c if column.name != "config"]


class StoredSchedules(Database):
    """The part of the store that has the schedules."""

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
            upsert(connection, schedules, [{**_row(schedule), "config": text}])
        return True

    def change_schedule(self, schedule: Schedule) -> None:
        """Keep what has changed of a schedule but its job; nothing where it is gone."""
        with self._writing() as connection:
            update = schedules.update().where(*_which(schedule.user, schedule.name))
            connection.execute(update, _row(schedule))

    def remove_schedule(self, user: str, name: str) -> bool:
        """Forget a schedule; False where there is none."""
        with self._writing() as connection:
            return connection.execute(schedules.delete().where(*_which(user, name))).rowcount > 0

    def schedules(self, user: str) -> list[Schedule]:
        """List the schedules of a user by name."""
        if "\0" in user:
            return []
        query = sa.select(*_WITHOUT_CONFIG).where(schedules.c.user_name == user).order_by(schedules.c.name)
        with self._reading() as connection:
            return [_read(row._mapping) for row in connection.execute(query)]

    def schedule(self, user: str, name: str) -> tuple[Schedule, dict[str, Any]] | None:
        """Find a schedule, with its job JSON."""
        if "\0" in user + name:
            return None
        with self._reading() as connection:
            row = connection.execute(sa.select(schedules).where(*_which(user, name))).first()
        return None if row is None else (_read(row._mapping), json.loads(row.config))

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


def _which(user: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return schedules.c.user_name == user, schedules.c.name == name


def _row(schedule: Schedule) -> dict[str, Any]:
    last = schedule.last
    return {
        "user_name": schedule.user,
        "name": schedule.name,
        "cron": schedule.cron,
        "zone": schedule.zone,
        "overlap": schedule.overlap.value,
        "paused": schedule.paused,
        "created": schedule.created,
        "next_time": schedule.next,
        "last_job": last and last.job,
        "last_time": last and last.time,
        "last_outcome": last and last.outcome.value,
        "last_message": last and rows.dump_message(last.message),
    }


def _read(row: sa.RowMapping) -> Schedule:
    last = None
    if row["last_job"] is not None:
        message = rows.read_stored_message(row["last_message"])
        last = LastRun(row["last_job"], row["last_time"], RunOutcome(row["last_outcome"]), message)
    return Schedule(
        row["user_name"],
        row["name"],
        row["cron"],
        row["zone"],
        Overlap(row["overlap"]),
        row["paused"],
        row["created"],
        row["next_time"],
        last,
    )


# Which jobs wait for which: what goes on after a start, and what a person asks.

#: ids in one `IN (…)`: below SQLite's limit of 32,766 variables
_CHUNK = 10_000


class StoredDependencies(Database):
    """Reads the dependencies of jobs; they are written with what the core decides."""

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
            waits_for = [_link(row) for row in connection.execute(mine).mappings()]
            dependents = [_link(row) for row in connection.execute(first).mappings()]
            count = len(dependents)
            if count == most:
                counted = sa.select(sa.func.count()).select_from(theirs.subquery())
                count = connection.execute(counted).scalar_one()
        return JobLinks(waits_for, dependents, count)


def _link(row: sa.RowMapping) -> LinkedJob:
    state = None if row["state"] is None else State(row["state"])
    return LinkedJob(row["name"], state, On(row["wanted"]), row["holds"])
