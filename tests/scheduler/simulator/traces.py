"""Makes traces for tests, each with as little said as matters: seconds, GPUs, who."""

from __future__ import annotations

from collections.abc import Sequence

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Node
from pai_scheduler.core.model import Attempt, Task
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.simulator.simulation import Replay, Replayed, replay
from pai_scheduler.simulator.traces import TraceJob, TraceRole
from tests.scheduler.making import make_node


def make_job(
    name: str,
    at: float,
    run: float,
    gpus: int = 1,
    *,
    tasks: int = 1,
    vc: str = "default",
    user: str = "alice",
    cpus: int = 0,
    memory_mb: int = 0,
    gpu_type: str | None = None,
    priority: int | None = None,
    most: int | None = None,
    preemptible: bool = True,
) -> TraceJob:
    role = TraceRole(tasks, gpus, cpus, memory_mb)
    return TraceJob(
        *(name, user, vc, round(1000 * at), round(1000 * run), (role,), gpu_type, priority, most, preemptible)
    )


def two_nodes() -> list[Node]:
    """Make two machines with two GPUs each."""
    return [make_node(name, gpus={"t": 2}) for name in ("a", "b")]


def fared(result: Replay) -> dict[str, Replayed]:
    return {one.job.name: one for one in result.jobs}


def seconds(result: Replay) -> dict[str, tuple[float, float]]:
    """Return when each job that ended had started and ended, in seconds."""
    return {
        one.job.name: (one.started / 1000, one.ended / 1000)
        for one in result.jobs
        if one.started is not None and one.ended is not None
    }


class Checker:
    """Counts by itself what every node holds, as attempts get and tasks give back: it knows no scheduler."""

    def __init__(self, nodes: Sequence[Node], jobs: Sequence[TraceJob]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._jobs = sorted(jobs, key=lambda job: job.submitted)
        self._gpus: dict[tuple[str, int], Task] = {}
        self._held: dict[str, tuple[Task, int, int]] = {}
        self.attempts = 0

    def __call__(self, _time: int, what: Attempt | Task) -> None:
        if isinstance(what, Attempt):
            self.attempts += 1
            self._take(what)
        else:
            self._give(what)

    def _take(self, attempt: Attempt) -> None:
        tasks = list(attempt.tasks.values())
        job = self._jobs[int(tasks[0].ref.job_id, 16) - 1]
        asked = [role for role in job.roles for _ in range(role.tasks)]
        assert len(tasks) == len(asked), "a gang is not whole"
        for task, role in zip(tasks, asked, strict=True):
            node = self._nodes[task.assignment.node]
            assert len(task.assignment.gpus) == role.gpus
            types = {node.gpus[index].type for index in task.assignment.gpus}
            assert len(types) <= 1
            assert job.gpu_type is None or types <= {job.gpu_type}
            for index in task.assignment.gpus:
                assert (node.name, index) not in self._gpus, "a GPU is given twice"
                self._gpus[node.name, index] = task
            self._held[task.ref.name] = (task, role.cpus, role.memory_mb)
        for node in {self._nodes[task.assignment.node] for task in tasks}:
            here = [held for held in self._held.values() if held[0].assignment.node == node.name]
            assert sum(cpus for _, cpus, _ in here) <= node.cpus
            assert sum(memory for _, _, memory in here) <= node.memory_mb

    def _give(self, task: Task) -> None:
        del self._held[task.ref.name]
        for index in task.assignment.gpus:
            assert self._gpus.pop((task.assignment.node, index)) is task

    def assert_nothing_is_held(self) -> None:
        assert not self._gpus
        assert not self._held


def run(
    jobs: Sequence[TraceJob],
    nodes: Sequence[Node] | None = None,
    clusters: Sequence[VirtualCluster] = (VirtualCluster("default", 100.0),),
    *,
    overtake_limit: int = 20,
    ends: bool = True,
    checkpoints: bool = False,
) -> Replay:
    """Replay jobs under the eyes of a checker."""
    machines = two_nodes() if nodes is None else nodes
    checker = Checker(machines, jobs)
    settings = CoreSettings(grace_seconds=0, overtake_limit=overtake_limit)
    result = replay(jobs, machines, clusters, settings, ends=ends, observe=checker, checkpoints=checkpoints)
    if ends:
        checker.assert_nothing_is_held()
    assert checker.attempts == sum((one.started is not None) + one.preemptions for one in result.jobs)
    return result
