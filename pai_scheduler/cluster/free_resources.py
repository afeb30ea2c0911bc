"""What is free on a node, and on the nodes of a rack together."""

from __future__ import annotations

from collections import defaultdict

from .demand import Assignment, Demand, fixed_ports
from .gpu_links import choose, groups_of
from .node import Node


class FreeNodeResources:
    """What is free on a node."""

    __slots__ = (
        *("changes", "cpus", "gpu_types", "gpus", "links"),
        *("memory_mb", "node", "number", "ports", "returns", "storage_gb"),
    )

    def __init__(self, node: Node, ports: set[int], number: int = 0) -> None:
        self.node = node
        #: its place in the order of the cluster
        self.number = number
        self.cpus = node.cpus
        self.memory_mb = node.memory_mb
        self.storage_gb = node.storage_gb
        self.gpu_types = {gpu.index: gpu.type for gpu in node.gpus}
        #: free indices by type, lowest first
        self.gpus: dict[str, list[int]] = defaultdict(list)
        for gpu in sorted(node.gpus, key=lambda gpu: gpu.index):
            self.gpus[gpu.type].append(gpu.index)
        #: which GPUs of a type are joined by fast links; empty where the node does not say
        self.links = (
            {gpu_type: groups_of(node.gpu_links, found) for gpu_type, found in self.gpus.items()}
            if node.gpu_links
            else {}
        )
        #: taken ports; one set for all nodes where they stand for one machine
        self.ports = ports
        #: how often something was taken or given back: what was counted here holds as long as it stays
        self.changes = 0
        #: … and how often something was given back
        self.returns = 0

    @property
    def free_gpus(self) -> int:
        """Count the free GPUs of all types."""
        return sum(map(len, self.gpus.values()))

    def has_room(self, demand: Demand) -> bool:
        """Return whether cores, memory, storage and fixed ports suffice; GPUs are looked at by type."""
        return (
            self.node.ready
            and demand.cpus <= self.cpus
            and demand.memory_mb <= self.memory_mb
            and demand.storage_gb <= self.storage_gb
            and not (self.ports and any(port in self.ports for port in fixed_ports(demand.ports)))
        )

    def could_take(self, demand: Demand) -> bool:
        """Return whether this node alone has room for a task, GPUs included."""
        if not self.has_room(demand):
            return False
        if not demand.gpus:
            return True
        types = (demand.gpu_type,) if demand.gpu_type else self.gpus
        return any(len(self.gpus.get(gpu_type, ())) >= demand.gpus for gpu_type in types)

    def choose_gpus(self, gpu_type: str | None, count: int) -> tuple[int, ...]:
        """Return which of the free GPUs of a type a task gets: so many are free. None: it gets none."""
        if gpu_type is None:
            return ()
        free = self.gpus[gpu_type]
        if not self.links or count == len(free):
            return tuple(free[:count])
        return choose(self.links[gpu_type], free, count)

    def take(self, demand: Demand, assignment: Assignment) -> None:
        """Book an assignment; what the node no longer has is not counted (it shrank under a running task)."""
        self.changes += 1
        self.cpus -= demand.cpus
        self.memory_mb -= demand.memory_mb
        self.storage_gb -= demand.storage_gb
        for index in assignment.gpus:
            free = self.gpus.get(self.gpu_types.get(index, ""), [])
            if index in free:
                free.remove(index)

    def give_back(self, demand: Demand, assignment: Assignment) -> None:
        """Undo `take`."""
        self.changes += 1
        self.returns += 1
        self.cpus += demand.cpus
        self.memory_mb += demand.memory_mb
        self.storage_gb += demand.storage_gb
        for index in assignment.gpus:
            if index in self.gpu_types:
                self.gpus[self.gpu_types[index]].append(index)
        if assignment.gpus:
            for free in self.gpus.values():
                free.sort()


class Rack:
    """The nodes near each other, and what is free on all of them together."""

    __slots__ = ("cpus", "gpus", "nodes")

    def __init__(self) -> None:
        self.nodes: list[str] = []
        self.gpus = 0
        self.cpus = 0
