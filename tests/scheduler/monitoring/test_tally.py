"""What is held, and how many jobs there are, kept up to date with every commit."""

from __future__ import annotations

from pai_scheduler.cluster.resources import Assignment
from pai_scheduler.core.model import Job, State, SubState, Task
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring.meters import JobKind, PlacedResources, Tally
from tests.scheduler.making import make_node, make_role, make_spec

NODES = {"a": make_node("a", gpus={"P100": 2, "V100": 2})}


def make_job(job_id: str = "j", vc: str = "default") -> Job:
    return Job(job_id, "alice", make_spec(make_role(cpus=3, memory_mb=500, gpus=2), virtualCluster=vc), 0)


def make_task(job: Job, gpus: tuple[int, ...] = (2, 3)) -> Task:
    return Task(TaskRef(job.id, 0, "main", 0), Assignment("a", gpus))


def test_a_job_is_counted_once_in_the_state_it_is_in_now() -> None:
    tally, job = Tally(), make_job()
    tally.note_jobs([job, make_job("other", "vision")])
    assert +tally.jobs == {
        JobKind("default", "WAITING", "QUEUED"): 1,
        JobKind("vision", "WAITING", "QUEUED"): 1,
    }
    job.state, job.sub_state = State.RUNNING, SubState.RUNNING
    tally.note_jobs([job])
    tally.note_jobs([job])
    assert tally.jobs[JobKind("default", "RUNNING", "RUNNING")] == 1
    assert tally.jobs[JobKind("default", "WAITING", "QUEUED")] == 0
    job.state, job.sub_state = State.SUCCEEDED, SubState.ENDED
    tally.note_jobs([job])
    tally.note_jobs([job])
    assert +tally.jobs == {JobKind("vision", "WAITING", "QUEUED"): 1}


def test_a_task_holds_from_its_placement_to_its_end() -> None:
    tally, job = Tally(), make_job(vc="vision")
    task = make_task(job)
    tally.note_task(job, task, NODES)
    task.state = State.RUNNING
    tally.note_task(job, task, NODES)
    assert tally.holdings == {task.ref: PlacedResources("vision", 3, 500, 2, "V100")}
    assert (tally.cpus["vision"], tally.memory_mb["vision"]) == (3, 500)
    assert tally.gpus == {("vision", "V100"): 2}
    task.state = State.FAILED
    tally.note_task(job, task, NODES)
    tally.note_task(job, task, NODES)
    assert (tally.cpus["vision"], tally.memory_mb["vision"], tally.gpus["vision", "V100"]) == (0, 0, 0)
    assert tally.holdings == {}


def test_a_task_of_a_job_that_is_over_holds_nothing() -> None:
    tally, job = Tally(), make_job()
    task = make_task(job)
    tally.note_task(job, task, NODES)
    tally.note_task(None, task, NODES)
    assert tally.holdings == {}
    assert not +tally.gpus


def test_gpus_of_a_node_that_is_gone_are_held_all_the_same() -> None:
    tally, job = Tally(), make_job()
    tally.note_task(job, make_task(job), {})
    assert tally.gpus == {("default", "unknown"): 2}
