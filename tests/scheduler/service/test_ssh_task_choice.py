"""Which task a login name means, for jobs in every state."""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.completion import stop_verdict
from pai_scheduler.core.model import Attempt, Job, State, Task
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import parse_job
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.ssh_authentication import choose, named, running
from pai_scheduler.ssh.login import readings
from tests.scheduler.making import make_config, make_role

#: where the tasks are
_HERE = Assignment("node", (), {})


def job_of(name: str, tasks: int = 1, *, user: str = "alice", order: int = 1, **fields: object) -> Job:
    """Make a job that runs."""
    job = Job(
        f"id-{name}", user, parse_job(make_config(make_role("w", tasks), name=name, **fields)), 1, order=order
    )
    job.attempt = Attempt(0, 1)
    for index in range(tasks):
        ref = TaskRef(job.id, 0, "w", index)
        job.attempt.tasks["w", index] = Task(ref, _HERE, State.RUNNING, started=1)
    job.state = State.RUNNING
    return job


def meant(login: str, *jobs: Job) -> str:
    """Return the task that is meant, or the refusal."""
    try:
        job, task = choose(readings(login), jobs, lambda _: None)
    except RequestError as error:
        return f"{error.status} {error.message}"
    return f"{job.name}/{task.ref.hostname}"


def test_the_newest_session_of_a_name_is_meant_and_a_jobs_own_name_comes_first() -> None:
    old = job_of("lab-1", order=1, extras={"session": {"server": "gpu"}})
    new = job_of("lab-2", order=2, extras={"session": {"server": "gpu"}})
    assert meant("alice+gpu", old, new) == "lab-2/w-0"
    assert meant("alice+gpu", new, old) == "lab-2/w-0"
    assert meant("alice+gpu", old, new, job_of("gpu")) == "gpu/w-0"


def test_a_job_without_a_session_is_no_notebook_server() -> None:
    assert named([job_of("one")], "notebook") is None
    default = job_of("one", extras={"session": {"server": ""}})
    assert named([default], "notebook") is default


def test_an_ended_job_is_not_there_even_while_its_tasks_are_being_stopped() -> None:
    job = job_of("one")
    job.verdict = stop_verdict("alice")
    assert meant("alice+one", job) == "404 No job one of user alice runs. There is none."
    assert meant("alice", job) == "404 No job of user alice runs."


def test_a_task_that_is_being_ended_is_not_entered() -> None:
    job = job_of("one", 2)
    assert job.attempt is not None
    job.attempt.tasks["w", 0].killing = True
    assert [task.ref.index for task in running(job)] == [1]
    assert meant("alice+one", job) == "one/w-1"


def test_a_held_task_is_entered() -> None:
    job = job_of("one")
    assert job.attempt is not None
    job.attempt.tasks["w", 0].held = 5
    assert meant("alice", job) == "one/w-0"


@pytest.mark.parametrize(
    "login", ["alice+one+w-00", "alice+one+W-0", "alice+one+w-1", "alice+one+x-0", "alice+one+w"]
)
def test_a_task_is_meant_by_its_exact_name_only(login: str) -> None:
    assert meant(login, job_of("one")).startswith("404 Job one has no task")


def test_a_waiting_job_is_said_to_wait() -> None:
    job = job_of("one")
    job.attempt, job.state = None, State.WAITING
    assert meant("alice+one", job) == "409 Job one does not run yet. Its tasks are being started."
    assert meant("alice+one+w-0", job) == "409 Job one does not run yet. Its tasks are being started."


def test_long_lists_are_cut() -> None:
    refusal = meant("alice+many", job_of("many", 100))
    assert refusal.endswith("alice+many+w-9 ….")
    refusal = meant("alice", *(job_of(f"job-{number}") for number in range(100)))
    assert refusal.endswith("alice+job-9 ….")


def test_nobody_elses_jobs_are_listed() -> None:
    assert "theirs" not in meant("alice+x", job_of("one"), job_of("theirs", user="bob"))
