"""What jobs ran when: read job by job, as they may be a million."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa

from pai_scheduler.job.spec import JobSpec

from . import rows
from .tables import attempts, jobs
from .transactions import Database

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
