"""Jobs with attempts and events, as the tests of the store put them into it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Attempt, Job, JobEvent, Task
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import parse_job
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config

Configs = dict[str, Mapping[str, Any]]


def make_job(
    job_id: str, *, user: str = "alice", order: int = 1, **fields: Any
) -> tuple[Job, Mapping[str, Any]]:
    config = make_config(name=fields.pop("name", job_id), **fields)
    return Job(job_id, user, parse_job(config), created=1000 + order, order=order), config


def add(store: Store, *ids: str, **fields: Any) -> list[Job]:
    outcome, configs = Outcome(), Configs()
    for order, job_id in enumerate(ids, store.last_order() + 1):
        job, configs[job_id] = make_job(job_id, order=order, **fields)
        outcome.jobs[job_id] = job
    store.commit(outcome, configs)
    return list(outcome.jobs.values())


def give_attempt(outcome: Outcome, job: Job, number: int = 0, tasks: int = 2) -> Attempt:
    attempt = job.attempt = Attempt(number, 2000)
    for index in range(tasks):
        task = Task(
            TaskRef(job.id, number, "main", index), Assignment("a", (index,), {"http": (20000 + index,)})
        )
        attempt.tasks["main", index] = task
        outcome.tasks[task.ref] = task
    outcome.jobs[job.id] = job
    outcome.attempts[job.id, number] = attempt
    return attempt


def tell(job_id: str, *words: str) -> list[JobEvent]:
    return [JobEvent(job_id, 1, word, msg("It is told.")) for word in words]
