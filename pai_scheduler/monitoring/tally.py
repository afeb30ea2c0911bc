"""Keeps count, with every commit, of what a scrape asks for: so a scrape costs nothing per job or task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pai_scheduler.cluster.node import Node
from pai_scheduler.core.model import Job, State, SubState, Task
from pai_scheduler.job.task import TaskRef


class JobKind(NamedTuple):
    """Key by which jobs are counted."""

    virtual_cluster: str
    state: str
    sub_state: str


class PlacedResources(NamedTuple):
    """Allocation of a placed task; memory in MB, GPUs of one type."""

    virtual_cluster: str
    cpus: int
    memory_mb: int
    gpus: int
    gpu_type: str


class Tally:
    """The jobs that are not over, by state, and what their tasks hold."""

    def __init__(self) -> None:
        self.jobs: Counter[JobKind] = Counter()
        self.holdings: dict[TaskRef, PlacedResources] = {}
        self.cpus: Counter[str] = Counter()
        self.memory_mb: Counter[str] = Counter()
        #: by virtual cluster and type
        self.gpus: Counter[tuple[str, str]] = Counter()
        self._kinds: dict[str, JobKind] = {}
        #: one object for all jobs of a kind: there may be a million
        self._known: dict[tuple[str, State, SubState], JobKind] = {}

    def note_jobs(self, jobs: Iterable[Job]) -> None:
        """Count jobs as they are now."""
        for job in jobs:
            before = self._kinds.pop(job.id, None)
            if before is not None:
                self.jobs[before] -= 1
            if job.sub_state is not SubState.ENDED:
                key = job.spec.virtual_cluster, job.state, job.sub_state
                kind = self._known.get(key)
                if kind is None:
                    kind = self._known[key] = JobKind(key[0], job.state.value, job.sub_state.value)
                self._kinds[job.id] = kind
                self.jobs[kind] += 1

    def note_task(self, job: Job | None, task: Task, nodes: Mapping[str, Node]) -> None:
        """Count what a task of `job` holds now; None: the job is over."""
        over = job is None or task.state.ended
        before = self.holdings.get(task.ref)
        if before is not None and over:
            del self.holdings[task.ref]
            self._count(before, -1)
        # what a task was given stays as it is until its end
        elif before is None and job is not None and not over:
            holding = self.holdings[task.ref] = _holding(job, task, nodes)
            self._count(holding, 1)

    def _count(self, holding: PlacedResources, sign: int) -> None:
        self.cpus[holding.virtual_cluster] += sign * holding.cpus
        self.memory_mb[holding.virtual_cluster] += sign * holding.memory_mb
        if holding.gpus:
            self.gpus[holding.virtual_cluster, holding.gpu_type] += sign * holding.gpus


def _holding(job: Job, task: Task, nodes: Mapping[str, Node]) -> PlacedResources:
    role = job.spec.role(task.ref.role)
    node, given = nodes.get(task.assignment.node), task.assignment.gpus
    types = {gpu.index: gpu.type for gpu in node.gpus} if node is not None and given else {}
    return PlacedResources(
        job.spec.virtual_cluster,
        role.cpu_number,
        role.memory_mb,
        len(given),
        types.get(given[0], "unknown") if given else "",
    )
