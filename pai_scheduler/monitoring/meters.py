"""Everything that measures, in one place for the service: counters, tally, recorder, what is looked up."""

from __future__ import annotations

import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pai_scheduler import logging_config
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import DiskSpace, Node, NodeState
from pai_scheduler.core.events import Event
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, State, SubState, Task
from pai_scheduler.core.state_machine import Core
from pai_scheduler.engine.protocol import Engine, Usage
from pai_scheduler.job.task import TaskRef

from .monitor import Monitor
from .recorder import Recorder

# Keeps count, with every commit, of what a scrape asks for: so a scrape costs nothing per job or task.


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


# The scheduler's metrics that are not counted but looked up when Prometheus asks: what there is now.


_MIB = 2**20


@dataclass(frozen=True, slots=True)
class ServiceFacts:
    """Snapshot of the service's current state."""

    nodes: Sequence[Node]
    virtual_clusters: Iterable[VirtualCluster]
    tally: Tally
    #: of the running tasks, as they were measured last
    usages: Mapping[TaskRef, Usage | None]
    #: failed calls of the engine, by call
    engine_errors: Mapping[str, int]
    #: commits that the database refused
    store_errors: int
    #: by node; of those of which it is known
    disks: Mapping[str, DiskSpace]


class Present(Collector):
    """Shows the facts; asked in the service's own loop, so that they belong together."""

    def __init__(self, facts: Callable[[], ServiceFacts]) -> None:
        self._facts = facts

    def describe(self) -> Iterable[Metric]:
        """Leave the names to the first scrape: there is nothing to look up yet."""
        return ()

    def collect(self) -> Iterator[Metric]:
        """Return all metrics."""
        facts = self._facts()
        yield from _jobs(facts.tally)
        yield from _resources(facts.nodes, facts.tally)
        yield from _disks(facts.disks)
        yield from _shares(facts.virtual_clusters)
        yield from _used(facts.usages, facts.tally)
        errors = CounterMetricFamily(
            "pai_engine_errors", "Calls of the engine that failed, by call.", labels=["call"]
        )
        for call, count in sorted(facts.engine_errors.items()):
            errors.add_metric([call], count)
        yield errors
        yield CounterMetricFamily(
            "pai_store_errors", "Groups of events that the database did not take.", facts.store_errors
        )


def _jobs(tally: Tally) -> Iterator[Metric]:
    jobs = GaugeMetricFamily(
        "pai_jobs",
        "Jobs that are not over.",
        labels=["virtual_cluster", "state", "sub_state"],
    )
    for kind, count in tally.jobs.items():
        jobs.add_metric(list(kind), count)
    yield jobs


def _resources(nodes: Sequence[Node], tally: Tally) -> Iterator[Metric]:
    states = Counter(node.state for node in nodes)
    found = GaugeMetricFamily("pai_nodes", "Machines, by state.", labels=["state"])
    for state in NodeState:
        found.add_metric([state.lower()], states[state])
    yield found
    yield GaugeMetricFamily(
        "pai_nodes_closed",
        "Machines that an administrator has closed for new tasks.",
        sum(node.closing is not None for node in nodes),
    )
    yield GaugeMetricFamily("pai_cpus", "Cores of all nodes.", sum(node.cpus for node in nodes))
    yield _by_cluster("pai_cpus_used", "Cores that tasks hold.", tally.cpus)
    yield GaugeMetricFamily(
        "pai_memory_bytes", "Memory of all nodes.", _MIB * sum(node.memory_mb for node in nodes)
    )
    held = {name: _MIB * size for name, size in tally.memory_mb.items()}
    yield _by_cluster("pai_memory_used_bytes", "Memory that tasks hold.", held)
    gpus = GaugeMetricFamily("pai_gpus", "GPUs of all nodes, simulated ones too.", labels=["gpu_type"])
    for gpu_type, count in Counter(gpu.type for node in nodes for gpu in node.gpus).items():
        gpus.add_metric([gpu_type], count)
    yield gpus
    used = GaugeMetricFamily("pai_gpus_used", "GPUs that tasks hold.", labels=["virtual_cluster", "gpu_type"])
    for (cluster, gpu_type), count in tally.gpus.items():
        used.add_metric([cluster, gpu_type], count)
    yield used


def _disks(disks: Mapping[str, DiskSpace]) -> Iterator[Metric]:
    free = GaugeMetricFamily(
        "pai_node_disk_free_bytes", "What is free on the disk that tasks fill on a node.", labels=["node"]
    )
    size = GaugeMetricFamily(
        "pai_node_disk_bytes", "How large the disk is that tasks fill on a node.", labels=["node"]
    )
    for name, disk in disks.items():
        free.add_metric([name], _MIB * disk.free_mb)
        size.add_metric([name], _MIB * disk.total_mb)
    yield free
    yield size


def _shares(clusters: Iterable[VirtualCluster]) -> Iterator[Metric]:
    guaranteed = GaugeMetricFamily(
        "pai_virtual_cluster_guaranteed_ratio",
        "The share of the cluster that a virtual cluster has for itself, 0 to 1.",
        labels=["virtual_cluster"],
    )
    most = GaugeMetricFamily(
        "pai_virtual_cluster_max_ratio",
        "The share of the cluster that a virtual cluster may have with what it borrows, 0 to 1.",
        labels=["virtual_cluster"],
    )
    for cluster in clusters:
        guaranteed.add_metric([cluster.name], cluster.capacity / 100)
        most.add_metric([cluster.name], cluster.max_capacity / 100)
    yield guaranteed
    yield most


def _used(usages: Mapping[TaskRef, Usage | None], tally: Tally) -> Iterator[Metric]:
    cores: defaultdict[str, float] = defaultdict(float)
    sizes: defaultdict[str, float] = defaultdict(float)
    busy: defaultdict[str, float] = defaultdict(float)
    for ref, usage in usages.items():
        holding = tally.holdings.get(ref)
        if holding is None or usage is None:
            continue
        name = holding.virtual_cluster
        cores[name] += usage.cpu_percent / 100
        sizes[name] += usage.memory_mb * _MIB
        if usage.gpu_percent is not None:
            busy[name] += usage.gpu_percent / 100 * holding.gpus
    yield _by_cluster("pai_cpus_busy", "Cores that tasks keep busy, as measured last.", cores)
    yield _by_cluster("pai_memory_busy_bytes", "Memory that tasks fill, as measured last.", sizes)
    yield _by_cluster(
        "pai_gpus_busy", "GPUs that tasks keep busy, as measured last; none for simulated ones.", busy
    )


def _by_cluster(name: str, text: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["virtual_cluster"])
    for cluster, value in values.items():
        family.add_metric([cluster], value)
    return family


class HasVirtualClusters(Protocol):
    """The virtual clusters by name, as they are now."""

    @property
    def virtual_clusters(self) -> Mapping[str, VirtualCluster]: ...  # noqa: D102


class CountsFailures(Protocol):
    """Counter of the writes that the database refused."""

    @property
    def failures(self) -> int: ...  # noqa: D102


class DurableCommit(Protocol):
    """Commit as `Meters` reads it: `core` has the jobs that `outcome` has not; how long both took."""

    @property
    def outcome(self) -> Outcome: ...  # noqa: D102
    @property
    def events(self) -> Sequence[Event]: ...  # noqa: D102
    @property
    def core(self) -> Core: ...  # noqa: D102
    @property
    def handled_seconds(self) -> float: ...  # noqa: D102
    @property
    def commit_seconds(self) -> float: ...  # noqa: D102


class Meters:
    """Told what becomes durable; `engine_errors` counts the failed calls by call, `writer` the database's."""

    def __init__(
        self,
        engine: Engine,
        cluster: HasVirtualClusters,
        engine_errors: Mapping[str, int],
        writer: CountsFailures,
    ) -> None:
        self.monitor = Monitor(engine.name, list(cluster.virtual_clusters))
        self.recorder = Recorder(engine, self._not_measured)
        self._tally = Tally()
        self._nodes: dict[str, Node] = {}
        self._engine = engine
        self._cluster, self._engine_errors, self._writer = cluster, engine_errors, writer
        self._unmeasured = 0
        self.monitor.watch(Present(self._facts))

    def start(self, jobs: Collection[Job], nodes: Sequence[Node]) -> None:
        """Take up what there is when the service starts, and begin to measure."""
        self.note_nodes(nodes)
        self._tally.note_jobs(jobs)
        for job in jobs:
            for task in job.attempt.tasks.values() if job.attempt else ():
                self._note_task(job, task)
        self.recorder.start()

    async def close(self) -> None:
        """Stop measuring."""
        await self.recorder.close()

    def note_nodes(self, nodes: Sequence[Node]) -> None:
        """Take the nodes as they are now."""
        self._nodes = {node.name: node for node in nodes}

    def gpus(self) -> tuple[int, int]:
        """Count the GPUs that tasks hold, and all there are."""
        return sum(self._tally.gpus.values()), sum(len(node.gpus) for node in self._nodes.values())

    def committed(self, committed: DurableCommit) -> None:
        """Count what has just become durable."""
        outcome, find = committed.outcome, committed.core.jobs.get
        self.monitor.committed(outcome, committed.events, find)
        self.monitor.wrote(len(committed.events), committed.handled_seconds, committed.commit_seconds)
        if logging_config.JOB_EVENTS.isEnabledFor(logging.DEBUG):
            for entry in outcome.job_events:
                logging_config.log_job_event(entry, outcome.jobs.get(entry.job_id) or find(entry.job_id))
        self._tally.note_jobs(outcome.jobs.values())
        for task in outcome.tasks.values():
            job_id = task.ref.job_id
            self._note_task(outcome.jobs.get(job_id) or find(job_id), task)

    def _note_task(self, job: Job | None, task: Task) -> None:
        self._tally.note_task(job, task, self._nodes)
        if task.state is State.RUNNING:
            self.recorder.begin(task.ref)
        elif task.state.ended:
            self.recorder.end(task.ref)

    def _not_measured(self) -> None:
        self._unmeasured += 1

    def _facts(self) -> ServiceFacts:
        return ServiceFacts(
            tuple(self._nodes.values()),
            self._cluster.virtual_clusters.values(),
            self._tally,
            self.recorder.latest,
            {**self._engine_errors, "usage": self._unmeasured},
            self._writer.failures,
            {name: disk for name in self._nodes if (disk := self._engine.disk(name)) is not None},
        )
