"""The scheduler's metrics that are not counted but looked up when Prometheus asks: what there is now."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import DiskSpace, Node, NodeState
from pai_scheduler.engine.protocol import Usage
from pai_scheduler.job.task import TaskRef

from .tally import Tally

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
