"""What the cluster has and what of it is free: the numbers beside every choice of the options form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pai_scheduler.rest.models import NodeInfo, VirtualClusterInfo


@dataclass(frozen=True, slots=True)
class GpuSupply:
    """The GPUs of one type in the whole cluster; one server's GPUs must be on one node."""

    type: str
    free: int
    total: int
    #: the most that one node has, and the most that one node has free
    most_per_node: int
    most_free_per_node: int
    #: declared in the cluster file, not found in the machine
    simulated: bool


@dataclass(frozen=True, slots=True)
class VirtualClusterSupply:
    """A virtual cluster; capacities in per cent. `gpus`: how many of each type are guaranteed to it.

    Servers are not stopped for others, so they never borrow: what is guaranteed is all that they can have.
    """

    name: str
    used_per_cent: float
    waiting_jobs: int
    running: bool
    gpus: Mapping[str, int] = field(default_factory=dict)

    @property
    def guaranteed(self) -> str:
        """Write what is guaranteed: `1 × P100, 3 × TITANX`."""
        return ", ".join(f"{count} × {gpu_type}" for gpu_type, count in self.gpus.items())


@dataclass(frozen=True, slots=True)
class MachineSupply:
    """What one machine has free. `state`: as of `NodeInfo`; memory in MB; `gpus`: (type, free, total)."""

    name: str
    state: str
    free_cpus: int
    total_cpus: int
    free_memory_mb: int
    total_memory_mb: int
    gpus: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Supply:
    """The cluster as a person choosing a server sees it. Memory in MB."""

    machines: tuple[MachineSupply, ...]
    gpus: tuple[GpuSupply, ...]
    virtual_clusters: tuple[VirtualClusterSupply, ...]
    free_cpus: int
    total_cpus: int
    largest_node_cpus: int
    free_memory_mb: int
    total_memory_mb: int
    largest_node_memory_mb: int

    def gpu(self, gpu_type: str) -> GpuSupply | None:
        """Find a GPU type; None where the cluster has none of it."""
        return next((gpu for gpu in self.gpus if gpu.type == gpu_type), None)

    @property
    def most_gpus_per_node(self) -> int:
        """Return the largest number of GPUs of one type that any node has."""
        return max((gpu.most_per_node for gpu in self.gpus), default=0)


def supply_of(nodes: Iterable[NodeInfo], virtual_clusters: Mapping[str, VirtualClusterInfo]) -> Supply:
    """Sum up what the scheduler tells of its nodes and virtual clusters."""
    machines = list(nodes)
    gpus = tuple(_gpu_supply(gpu_type, machines) for gpu_type in _gpu_types(machines))
    return Supply(
        machines=tuple(map(_machine_supply, machines)),
        gpus=gpus,
        virtual_clusters=tuple(
            VirtualClusterSupply(
                name,
                info["usedCapacity"],
                info["numPendingJobs"],
                info["status"] == "RUNNING",
                {gpu.type: share(gpu.total, info["capacity"]) for gpu in gpus},
            )
            for name, info in virtual_clusters.items()
        ),
        free_cpus=sum(node["total"]["cpus"] - node["used"]["cpus"] for node in machines if _is_ready(node)),
        total_cpus=sum(node["total"]["cpus"] for node in machines),
        largest_node_cpus=max((node["total"]["cpus"] for node in machines), default=0),
        free_memory_mb=sum(
            node["total"]["memoryMB"] - node["used"]["memoryMB"] for node in machines if _is_ready(node)
        ),
        total_memory_mb=sum(node["total"]["memoryMB"] for node in machines),
        largest_node_memory_mb=max((node["total"]["memoryMB"] for node in machines), default=0),
    )


def share(total: int, per_cent: float) -> int:
    """Return so many per cent of a number, rounded down as the scheduler does."""
    return int(total * per_cent / 100 + 1e-9)


def _is_ready(node: NodeInfo) -> bool:
    """Return whether a node may get something new; what is free on another is of no use."""
    return node["state"] == "READY"


def _machine_supply(node: NodeInfo) -> MachineSupply:
    total, used = node["total"], node["used"]
    return MachineSupply(
        node["name"],
        node["state"],
        total["cpus"] - used["cpus"],
        total["cpus"],
        total["memoryMB"] - used["memoryMB"],
        total["memoryMB"],
        tuple(
            (gpu_type, count - used["gpus"].get(gpu_type, 0), count)
            for gpu_type, count in sorted(total["gpus"].items())
        ),
    )


def _gpu_types(nodes: Iterable[NodeInfo]) -> list[str]:
    return sorted({gpu_type for node in nodes for gpu_type in node["total"]["gpus"]})


def _gpu_supply(gpu_type: str, nodes: Iterable[NodeInfo]) -> GpuSupply:
    totals, free = [], []
    simulated = False
    for node in nodes:
        total = node["total"]["gpus"].get(gpu_type, 0)
        totals.append(total)
        free.append(total - node["used"]["gpus"].get(gpu_type, 0) if _is_ready(node) else 0)
        simulated |= any(gpu["simulated"] for gpu in node["gpus"] if gpu["type"] == gpu_type)
    return GpuSupply(gpu_type, sum(free), sum(totals), max(totals), max(free), simulated)
