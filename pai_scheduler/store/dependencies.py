"""Which jobs wait for which: what goes on after a start, and what a person asks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

import sqlalchemy as sa

from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.model import State, SubState
from pai_scheduler.job.after import On

from . import rows
from .records import JobLink, JobLinks
from .tables import KEPT, dependencies, jobs
from .transactions import Database

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


def _link(row: sa.RowMapping) -> JobLink:
    state = None if row["state"] is None else State(row["state"])
    return JobLink(row["name"], state, On(row["wanted"]), row["holds"])
