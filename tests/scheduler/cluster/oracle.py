"""Whether a gang has room, by trying every arrangement: slow, simple, apart from what it checks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pai_scheduler.cluster.placement import PORT_RANGE, Cluster
from pai_scheduler.cluster.resources import Demand


@dataclass
class Free:
    """What is free on a node."""

    cpus: int
    memory_mb: int
    storage_gb: int = 1000
    gpus: dict[str, int] = field(default_factory=dict)

    def holds(self, demand: Demand) -> bool:
        """Return whether a task has room here alone."""
        return self.holds_without_gpus(demand) and (
            not demand.gpus
            or any(
                count >= demand.gpus
                for gpu_type, count in self.gpus.items()
                if demand.gpu_type in (None, gpu_type)
            )
        )

    def holds_without_gpus(self, demand: Demand) -> bool:
        return (
            demand.cpus <= self.cpus
            and demand.memory_mb <= self.memory_mb
            and demand.storage_gb <= self.storage_gb
        )

    def change(self, demand: Demand, gpu_type: str | None, sign: int) -> None:
        self.cpus += sign * demand.cpus
        self.memory_mb += sign * demand.memory_mb
        self.storage_gb += sign * demand.storage_gb
        if gpu_type is not None:
            self.gpus[gpu_type] += sign * demand.gpus


def free_now(cluster: Cluster) -> dict[str, Free]:
    """Count what is free on the ready nodes of a cluster."""
    return {
        name: Free(
            use.cpus, use.memory_mb, use.storage_gb, {kind: len(free) for kind, free in use.gpus.items()}
        )
        for name, use in cluster.uses.items()
        if use.node.ready
    }


def free_when_empty(cluster: Cluster) -> dict[str, Free]:
    """Count what the ready nodes of a cluster have."""
    return {
        node.name: Free(node.cpus, node.memory_mb, node.storage_gb, dict(node.gpu_counts))
        for node in cluster.nodes
        if node.ready
    }


def fits(
    free: Mapping[str, Free],
    gang: Sequence[Demand],
    *,
    gpu_room: Mapping[str, int] | None = None,
    taken_ports: set[int] | None = None,
) -> bool:
    """Return whether some arrangement of all demands exists.

    `gpu_room`: at most so many GPUs of each type are used, of others none. `taken_ports`: all nodes share
    one machine's ports, and these are taken; None: every task has its own.
    """
    if taken_ports is not None and not ports_fit(gang, taken_ports):
        return False
    no_limit = gpu_room is None
    room = dict(gpu_room or {})
    used = [Free(node.cpus, node.memory_mb, node.storage_gb, dict(node.gpus)) for node in free.values()]
    places = [(node, gpu_type) for node in used for gpu_type in (None, *node.gpus)]
    # equal tasks are interchangeable, so each has its place after that of the one before it
    ordered = sorted(gang, key=repr)

    def place_from(position: int, first: int) -> bool:
        if position == len(ordered):
            return True
        demand = ordered[position]
        if position and ordered[position - 1] != demand:
            first = 0
        for index in range(first, len(places)):
            node, gpu_type = places[index]
            if (gpu_type is not None) != bool(demand.gpus) or not node.holds_without_gpus(demand):
                continue
            if gpu_type is not None and (
                demand.gpu_type not in (None, gpu_type)
                or node.gpus[gpu_type] < demand.gpus
                or not (no_limit or room.get(gpu_type, 0) >= demand.gpus)
            ):
                continue
            node.change(demand, gpu_type, -1)
            if gpu_type in room:
                room[gpu_type] -= demand.gpus
            found = place_from(position + 1, index)
            node.change(demand, gpu_type, +1)
            if gpu_type in room:
                room[gpu_type] += demand.gpus
            if found:
                return True
        return False

    return place_from(0, 0)


def ports_fit(gang: Sequence[Demand], taken: set[int]) -> bool:
    """Return whether one machine has the ports of all tasks: fixed ones free, each named once; the rest."""
    fixed = fixed_ports_of(gang)
    chosen = sum(request.count for demand in gang for request in demand.ports if not request.begin_at)
    return (
        len(set(fixed)) == len(fixed)
        and not taken.intersection(fixed)
        and chosen <= len(set(PORT_RANGE) - taken - set(fixed))
    )


def fixed_ports_of(gang: Sequence[Demand]) -> list[int]:
    """List every port that the tasks name, as often as it is named."""
    return [
        port
        for demand in gang
        for request in demand.ports
        if request.begin_at
        for port in range(request.begin_at, request.begin_at + request.count)
    ]
