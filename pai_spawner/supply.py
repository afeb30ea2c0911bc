"""What there is and what is free, as the person who chooses a server may have it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pai_scheduler.rest.cluster import Amount, AvailableAmounts, NodeInfo, VirtualClusterInfo

_NOTHING: Amount = {"cpus": 0, "memoryMB": 0, "storageGB": 0, "gpus": {}}
#: what somebody has in a virtual cluster that is not open
NOTHING: AvailableAmounts = {
    "free": _NOTHING,
    "most": _NOTHING,
    "freeOnOne": _NOTHING,
    "mostOnOne": _NOTHING,
}


@dataclass(frozen=True, slots=True)
class VirtualClusterSupply:
    """A virtual cluster that is open to the person, and what of it their next server could have.

    Servers are not stopped for others, so they never borrow: it is what the virtual cluster has of its own.
    """

    name: str
    running: bool
    available: AvailableAmounts


@dataclass(frozen=True, slots=True)
class MachineSupply:
    """What one machine has free: memory in MB; `gpus`: (type, free, total).

    `state`: as of `NodeInfo`, or CLOSED where an administrator has closed a ready one.
    """

    name: str
    state: str
    free_cpus: int
    total_cpus: int
    free_memory_mb: int
    total_memory_mb: int
    gpus: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True, slots=True)
class Supply:
    """The cluster as a person choosing a server sees it. `simulated`: types of GPU that are only declared."""

    machines: tuple[MachineSupply, ...]
    gpu_types: tuple[str, ...]
    simulated: frozenset[str]
    virtual_clusters: Mapping[str, VirtualClusterSupply]

    def available_in(self, virtual_cluster: str) -> AvailableAmounts:
        """Return what a server could have in a virtual cluster; nothing where it is not open."""
        found = self.virtual_clusters.get(virtual_cluster)
        return NOTHING if found is None else found.available


def supply_of(
    nodes: Iterable[NodeInfo],
    virtual_clusters: Mapping[str, VirtualClusterInfo],
    available: Mapping[str, AvailableAmounts],
) -> Supply:
    """Put together what the scheduler tells of nodes, virtual clusters, and what somebody may have."""
    machines = list(nodes)
    gpus = [gpu for node in machines for gpu in node["gpus"]]
    return Supply(
        machines=tuple(map(_machine_supply, machines)),
        gpu_types=tuple(sorted({gpu_type for node in machines for gpu_type in node["total"]["gpus"]})),
        simulated=frozenset(gpu["type"] for gpu in gpus if gpu["simulated"]),
        virtual_clusters={
            name: VirtualClusterSupply(name, info["status"] == "RUNNING", available[name])
            for name, info in virtual_clusters.items()
            if name in available
        },
    )


def _machine_supply(node: NodeInfo) -> MachineSupply:
    total, used = node["total"], node["used"]
    return MachineSupply(
        node["name"],
        "CLOSED" if node["closed"] and node["state"] == "READY" else node["state"],
        total["cpus"] - used["cpus"],
        total["cpus"],
        total["memoryMB"] - used["memoryMB"],
        total["memoryMB"],
        tuple(
            (gpu_type, count - used["gpus"].get(gpu_type, 0), count)
            for gpu_type, count in sorted(total["gpus"].items())
        ),
    )
