"""Finds which jobs have to end before a single task fits, by counting what they would leave on their nodes.

The preemption planner (preemption.py) finds the same by lifting jobs off the cluster and trying, which is
needed where the tasks of a gang or the limits of a virtual cluster depend on each other. One task needs one
node: jobs are counted out in the order of their ends until one of their nodes has room, and what is not
needed for that is counted in again, the last first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .demand import Assignment, Demand
from .free_resources import FreeNodeResources
from .placement import Cluster
from .preemption import JobHolding

#: How well a task fits, by best fit's measure: less is better. The last number is the node's.
_Fit = tuple[int, int, int] | tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Soonest:
    """Which jobs have to end, the first of them first, and where the task has room then."""

    needed: Sequence[JobHolding]
    node: str
    gpu_type: str | None


class _Room:
    """What is free on a node, were some jobs to end."""

    __slots__ = ("cpus", "gpus", "lifted", "memory_mb", "storage_gb", "use")

    def __init__(self, use: FreeNodeResources) -> None:
        self.use = use
        self.cpus, self.memory_mb, self.storage_gb = use.cpus, use.memory_mb, use.storage_gb
        self.gpus = Counter({gpu_type: len(free) for gpu_type, free in use.gpus.items()})
        #: the places in the order of ends of those that were counted out here
        self.lifted: list[int] = []

    def add(self, demand: Demand, assignment: Assignment, sign: int) -> None:
        """Count a task out (sign 1), or in again (sign -1)."""
        self.cpus += sign * demand.cpus
        self.memory_mb += sign * demand.memory_mb
        self.storage_gb += sign * demand.storage_gb
        for index in assignment.gpus:
            gpu_type = self.use.gpu_types.get(index)
            if gpu_type is not None:
                self.gpus[gpu_type] += sign

    def fit(self, demand: Demand) -> tuple[_Fit, str | None] | None:
        """Return how well a task fits, and on GPUs of which type; None: there is no room."""
        if (
            demand.cpus > self.cpus
            or demand.memory_mb > self.memory_mb
            or demand.storage_gb > self.storage_gb
        ):
            return None
        if not demand.gpus:
            return (sum(self.gpus.values()), self.cpus, self.use.number), None
        types = (demand.gpu_type,) if demand.gpu_type else self.gpus
        enough = [(self.gpus[of], of) for of in types if self.gpus[of] >= demand.gpus]
        if not enough:
            return None
        count, gpu_type = min(enough)
        return (count, gpu_type, self.use.number), gpu_type


class SoonestPlanner:
    """One question: the cluster, and what is kept there for others, which is looked at as free."""

    def __init__(
        self, cluster: Cluster, kept: Mapping[str, Iterable[tuple[Demand, Assignment]]], demand: Demand
    ) -> None:
        self._cluster = cluster
        self._kept = kept
        self._demand = demand
        self._rooms: dict[str, _Room] = {}

    def find(self, ends: Sequence[JobHolding]) -> Soonest | None:
        """Find which of `ends` have to end, the first of them preferred; None: all of them do not do."""
        rooms = [room for room in map(self._room, self._kept) if room is not None]
        best = self._best(rooms)
        elsewhere = self._cluster.best_fit(self._demand, beside={room.use.number for room in rooms})
        if elsewhere is not None:
            other = self._best([_Room(elsewhere[0])])
            best = other if best is None else min(best, other or best)
        if best is not None:
            return self._soonest([], best)
        lifted: list[JobHolding] = []
        for place, holding in enumerate(ends):
            lifted.append(holding)
            fitting = [room for room in self._lift(place, holding) if room.fit(self._demand) is not None]
            if fitting:
                return self._without_needless(lifted, fitting)
        return None

    def _without_needless(self, lifted: Sequence[JobHolding], fitting: list[_Room]) -> Soonest | None:
        """Count in again what can be; without the last of them nothing fits, so that one is needed."""
        needed = [len(lifted) - 1]
        places = {place for room in fitting for place in room.lifted} - {needed[0]}
        for place in sorted(places, reverse=True):
            self._count(lifted[place], -1)
            left = [room for room in fitting if room.fit(self._demand) is not None]
            if left:
                fitting = left
            else:
                self._count(lifted[place], 1)
                needed.append(place)
        best = self._best(fitting)
        return best and self._soonest([lifted[place] for place in sorted(needed)], best)

    def _lift(self, place: int, holding: JobHolding) -> list[_Room]:
        """Count a job out; return the rooms that became larger."""
        rooms = [room for room in map(self._room, holding.nodes) if room is not None]
        for room in rooms:
            room.lifted.append(place)
        self._count(holding, 1)
        return rooms

    def _count(self, holding: JobHolding, sign: int) -> None:
        for demand, assignment, _ in holding.tasks.values():
            room = self._rooms.get(assignment.node)
            if room is not None:
                room.add(demand, assignment, sign)

    def _room(self, node: str) -> _Room | None:
        """Return what is free on a node that may get something; None where there is no such."""
        room = self._rooms.get(node)
        if room is None:
            use = self._cluster.uses.get(node)
            if use is None or not use.node.ready:
                return None
            room = self._rooms[node] = _Room(use)
            for demand, assignment in self._kept.get(node, ()):
                room.add(demand, assignment, 1)
        return room

    def _best(self, rooms: Iterable[_Room]) -> tuple[_Fit, str, str | None] | None:
        fits = [(fit[0], room.use.node.name, fit[1]) for room in rooms if (fit := room.fit(self._demand))]
        return min(fits, key=lambda one: one[0], default=None)

    def _soonest(self, needed: Sequence[JobHolding], best: tuple[_Fit, str, str | None]) -> Soonest:
        return Soonest(needed, best[1], best[2])
