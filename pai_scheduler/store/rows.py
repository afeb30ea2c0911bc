"""Between the domain's objects and the tables' rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.cluster.fair_share import DecayedUsage, Sharer
from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.dependencies import Dependency
from pai_scheduler.core.events import EndCause
from pai_scheduler.core.instructions import Announcement
from pai_scheduler.core.model import Attempt, Job, JobEvent, RetryCounts, State, SubState, Task, Verdict
from pai_scheduler.i18n import Message
from pai_scheduler.job.dependencies import On
from pai_scheduler.job.message_documents import message_document, read_message
from pai_scheduler.job.schedule import LastRun, Overlap, RunOutcome, Schedule
from pai_scheduler.job.spec import JobSpec, renamed
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import build_spec

from .records import LinkedJob, WaitingAnnouncement
from .tables import jobs

Row = sa.RowMapping

_INSERTS = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}

#: Characters of a job JSON whose spec is kept for the next time.
_SMALL = 16 * 1024
#: (`json.dumps` makes one for each value)
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_STATES = {state.value: state for state in State}
_SUB_STATES = {state.value: state for state in SubState}
_NO_RETRIES = "[0,0,0,0]"

#: what is true of a job that waits for its first attempt: all else of its row is as with every such job
ONLY_WAITS = sa.and_(
    jobs.c.sub_state == SubState.QUEUED.value,
    jobs.c.attempt.is_(None),
    jobs.c.not_before.is_(None),
    jobs.c.completed.is_(None),
    jobs.c.verdict.is_(None),
    jobs.c.state == State.WAITING.value,
    jobs.c.retries == _NO_RETRIES,
    sa.not_(jobs.c.doomed),
    jobs.c.attained == 0,
    jobs.c.uncounted == 0,
    jobs.c.eligible.is_(None),
)
#: the columns of it that differ
WAITING = (
    jobs.c.id,
    jobs.c.user_name,
    jobs.c.name,
    jobs.c.config,
    jobs.c.created,
    jobs.c.ord,
    jobs.c.priority,
    jobs.c.overtaken,
)


def job_row(job: Job) -> dict[str, Any]:
    """Return a job's row, without its config, which never changes."""
    return {
        "id": job.id,
        "user_name": job.user,
        "name": job.name,
        "virtual_cluster": job.spec.virtual_cluster,
        "created": job.created,
        "ord": job.order,
        "state": job.state.value,
        "sub_state": job.sub_state.value,
        "completed": job.completed,
        "attempt": job.attempt.number if job.attempt else None,
        "retries": _dump_retries(job.retries),
        "not_before": job.not_before,
        "verdict": _dump_verdict(job.verdict),
        "doomed": job.doomed,
        "priority": job.priority,
        "overtaken": job.overtaken,
        "attained": job.attained,
        "uncounted": job.uncounted,
        "eligible": job.eligible,
    }


def read_job(row: Sequence[Any], attempt: Attempt | None) -> Job:
    """Make a job of a row that begins with all columns of `jobs`, and of its last attempt."""
    # (by place: of a million at a start, a look for each column's name would be a third of the time)
    job_id, user, name, config, _, created, order, state, sub_state, completed, _, retries, *more = row
    not_before, verdict, doomed, priority, overtaken, attained, uncounted, eligible, *_ = more
    return Job(
        id=job_id,
        user=_one_text(user),
        spec=_spec(config, name),
        created=created,
        order=order,
        state=_STATES[state],
        sub_state=_SUB_STATES[sub_state],
        completed=completed,
        attempt=attempt,
        retries=RetryCounts() if retries == _NO_RETRIES else RetryCounts(*json.loads(retries)),
        not_before=not_before,
        verdict=_read_verdict(verdict),
        doomed=doomed,
        priority=priority,
        overtaken=overtaken,
        attained=attained,
        uncounted=uncounted,
        eligible=eligible,
    )


def read_waiting(row: Sequence[Any]) -> Job:
    """Make a job of `WAITING`, where the row is one that `ONLY_WAITS`."""
    job_id, user, name, config, created, order, priority, overtaken = row
    # (by place, as for a million every name would be looked at)
    return Job(job_id, _one_text(user), _spec(config, name), created, order, priority, None, overtaken)


def dependency_row(job_id: str, place: int, dependency: Dependency) -> dict[str, Any]:
    """Return the row of one entry of a job's `extras.after`."""
    return {
        "job_id": job_id,
        "place": place,
        "target": dependency.job_id,
        "name": dependency.name,
        "wanted": dependency.on.value,
        "holds": dependency.holds,
    }


def read_dependency(row: Row) -> Dependency:
    """Make a dependency of its row."""
    return Dependency(row["target"], row["name"], On(row["wanted"]), row["holds"])


def virtual_cluster_row(name: str, cluster: VirtualCluster | None) -> dict[str, Any]:
    """Return a changed virtual cluster's row; None: it was deleted."""
    return {"name": name, "document": dump(asdict(cluster)) if cluster is not None else None}


def read_virtual_cluster(row: Row) -> VirtualCluster | None:
    """Return a changed virtual cluster; None where it was deleted."""
    if row["document"] is None:
        return None
    fields: dict[str, Any] = json.loads(row["document"])
    listed: dict[str, Any] = {key: tuple(value) for key, value in fields.items() if isinstance(value, list)}
    levels = fields.get("least_attained")
    if levels is not None:
        listed["least_attained"] = LeastAttained(**(levels | {"gpu_hours": tuple(levels["gpu_hours"])}))
    remaining = fields.get("shortest_remaining")
    if remaining is not None:
        listed["shortest_remaining"] = ShortestRemaining(**remaining)
    return VirtualCluster(**(fields | listed))


def usage_row(sharer: Sharer, usage: DecayedUsage) -> dict[str, Any]:
    """Return the row of what a user had used of a virtual cluster."""
    return {
        "virtual_cluster": sharer[0],
        "user_name": sharer[1],
        "amount": usage.amount,
        "as_of": usage.as_of,
    }


def attempt_row(job_id: str, attempt: Attempt) -> dict[str, Any]:
    """Return an attempt's row."""
    return {
        "job_id": job_id,
        "number": attempt.number,
        "created": attempt.created,
        "launched": attempt.launched,
        "completed": attempt.completed,
        "verdict": _dump_verdict(attempt.verdict),
        "ending_until": attempt.ending_until,
    }


def read_attempt(row: Row) -> Attempt:
    """Make an attempt of its row, its tasks to be added."""
    return Attempt(
        row["number"],
        row["created"],
        row["launched"],
        row["completed"],
        _read_verdict(row["verdict"]),
        row["ending_until"],
    )


def task_row(task: Task) -> dict[str, Any]:
    """Return a task's row."""
    assignment = task.assignment
    return {
        "job_id": task.ref.job_id,
        "attempt": task.ref.attempt,
        "role": task.ref.role,
        "idx": task.ref.index,
        "assignment": dump([assignment.node, assignment.gpus, dict(assignment.ports)]),
        "state": task.state.value,
        "started": task.started,
        "ended": task.ended,
        "exit_code": task.exit_code,
        "address": task.address,
        "container_id": task.container_id,
        "killing": task.killing,
        "reason": dump_message(task.reason),
        "held": task.held,
        "held_cause": task.held_cause,
    }


def read_task(row: Row) -> Task:
    """Make a task of its row."""
    node, gpus, ports = json.loads(row["assignment"])
    return Task(
        ref=TaskRef(row["job_id"], row["attempt"], row["role"], row["idx"]),
        assignment=Assignment(node, tuple(gpus), {label: tuple(numbers) for label, numbers in ports.items()}),
        state=State(row["state"]),
        started=row["started"],
        ended=row["ended"],
        exit_code=row["exit_code"],
        address=row["address"],
        container_id=row["container_id"],
        killing=row["killing"],
        reason=read_stored_message(row["reason"]),
        held=row["held"],
        held_cause=EndCause(row["held_cause"]) if row["held_cause"] else None,
    )


def job_event_row(entry: JobEvent) -> dict[str, Any]:
    """Return a job event's row."""
    return {
        "job_id": entry.job_id,
        "time": entry.time,
        "type": entry.type,
        "message": dump_message(entry.message),
        "attempt": entry.attempt,
        "role": entry.role,
        "idx": entry.index,
        "data": dump(dict(entry.data)) if entry.data else "{}",
    }


def read_job_event(row: Row) -> JobEvent:
    """Make a job event of its row."""
    message = read_stored_message(row["message"])
    return JobEvent(
        row["job_id"],
        row["time"],
        row["type"],
        message if message is not None else Message(""),
        row["attempt"],
        row["role"],
        row["idx"],
        json.loads(row["data"]),
    )


def _spec(config: str, name: str) -> JobSpec:
    # large ones would make the cache as large as their number times 8 MiB
    if len(config) > _SMALL:
        return _build(config)
    # those that differ in their names only share what is made of the rest (a name needs no escapes)
    before, named, after = config.partition(f'"jobName":"{name}"')
    if not named or named in after:
        return _small_spec(config)
    return renamed(_small_spec(f'{before}"jobName":""{after}'), name)


def _build(config: str) -> JobSpec:
    return build_spec(json.loads(config))


_small_spec = lru_cache(maxsize=4096)(_build)


@lru_cache(maxsize=4096)
def _one_text(text: str) -> str:
    """Return the same object for the same text: many jobs have few users."""
    return text


def dump(value: object) -> str:
    """Write a value as JSON."""
    return _JSON.encode(value)


def dump_message(message: Message | None) -> str | None:
    """Write a message so that it can be told in any language later."""
    return None if message is None else dump(message_document(message))


def read_stored_message(text: str | None) -> Message | None:
    """Read what `dump_message` wrote."""
    return None if text is None else read_message(json.loads(text))


def _dump_retries(retries: RetryCounts) -> str:
    counts = [retries.user, retries.platform, retries.resource, retries.streak]
    return dump(counts) if any(counts) else _NO_RETRIES


def _dump_verdict(verdict: Verdict | None) -> str | None:
    if verdict is None:
        return None
    reason = message_document(verdict.reason)
    return dump([verdict.state.value, verdict.exit_code, verdict.exit_row, verdict.trigger, reason])


def _read_verdict(text: str | None) -> Verdict | None:
    if text is None:
        return None
    state, exit_code, exit_row, trigger, reason = json.loads(text)
    return Verdict(
        State(state), exit_code, exit_row, tuple(trigger) if trigger else None, read_message(reason)
    )


def upsert(connection: sa.Connection, table: sa.Table, changed: list[dict[str, Any]]) -> None:
    """Insert rows, or replace those that have the same keys."""
    if not changed:
        return
    make: Any = _INSERTS[connection.dialect.name]
    insert = make(table)
    keys = [column.name for column in table.primary_key]
    others = {name: insert.excluded[name] for name in changed[0] if name not in keys}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=others), changed)


def schedule_row(schedule: Schedule) -> dict[str, Any]:
    """Return the row of a schedule, without its job."""
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
        "last_message": last and dump_message(last.message),
    }


def read_schedule(row: Row) -> Schedule:
    """Make a schedule of its row."""
    last = None
    if row["last_job"] is not None:
        message = read_stored_message(row["last_message"])
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


def read_link(row: Row) -> LinkedJob:
    """Make the link to a job of a row of a dependency and that job's state."""
    state = None if row["state"] is None else State(row["state"])
    return LinkedJob(row["name"], state, On(row["wanted"]), row["holds"])


def announcement_rows(new: Iterable[Announcement]) -> list[dict[str, Any]]:
    """Return the rows of new announcements: due at once."""
    return [
        {
            "job_id": one.job_id,
            "channel": one.channel,
            "user_name": one.user,
            "target": one.target,
            "document": json.dumps(one.document, ensure_ascii=False),
            "time": one.time,
            "tries": 0,
            "due": one.time,
        }
        for one in new
    ]


def read_announcement(row: Row) -> WaitingAnnouncement:
    """Make an announcement of its row."""
    announcement = Announcement(
        row["job_id"],
        row["channel"],
        row["user_name"],
        row["target"],
        row["time"],
        json.loads(row["document"]),
    )
    return WaitingAnnouncement(announcement, row["tries"], row["due"])
