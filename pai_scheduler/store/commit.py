"""Writing of what the core decided, within the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any

import sqlalchemy as sa

from pai_scheduler.cluster.fair_share import DecayedUsage, Sharer
from pai_scheduler.core.events import Notice
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import ACCESS, Job, JobEvent
from pai_scheduler.job.task import TaskRef

from . import rows
from .records import SubmittedText
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

#: Rows that SQLite gets at once, at most: after each statement its driver waits for its turn to run Python.
_ROWS = 64
_NOTICES = frozenset(notice.value for notice in Notice)
#: what never changes of a job; written again, its indexes would be too
_FIXED = frozenset({"id", "user_name", "name", "virtual_cluster", "created"})


def write_outcome(
    connection: sa.Connection,
    outcome: Outcome,
    configs: Mapping[str, Mapping[str, Any]],
    texts: Mapping[str, SubmittedText],
) -> list[TaskRef]:
    """Write all changes; `configs` has the job JSON of the new jobs by id, `texts` the kept texts. Gives the
    deleted jobs' tasks.
    """
    _write_jobs(connection, outcome.jobs.values(), configs, texts)
    changed = [rows.dependency_row(*key, dependency) for key, dependency in outcome.dependencies.items()]
    rows.upsert(connection, dependencies, changed)
    changed = [rows.attempt_row(job_id, attempt) for (job_id, _), attempt in outcome.attempts.items()]
    rows.upsert(connection, attempts, changed)
    rows.upsert(connection, tasks, [rows.task_row(task) for task in outcome.tasks.values()])
    entries = _untold(connection, _of_known_jobs(connection, outcome.job_events))
    _insert(connection, job_events, [rows.job_event_row(entry) for entry in entries])
    changed = [rows.virtual_cluster_row(name, cluster) for name, cluster in outcome.virtual_clusters.items()]
    rows.upsert(connection, virtual_clusters, changed)
    _write_usages(connection, outcome.usages)
    rows.upsert(connection, announcements, rows.announcement_rows(outcome.announcements))
    return _delete(connection, outcome.deleted)


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
