"""Finds which jobs have to end before a single task fits, by counting what they would leave on their nodes.

The preemption planner (preemption.py) finds the same by lifting jobs off the cluster and trying, which is
needed where the tasks of a gang depend on each other. One task needs one node: jobs are counted out in the
order of their ends until one of their nodes has room and the share of the virtual cluster allows it, and what
is not needed for that is counted in again, the last first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from .allowance import Allowance
from .demand import Assignment, Demand
from .free_resources import FreeNodeResources
from .placement import Cluster
from .preemption import JobHolding
from .reservations import Reservation, ReservedPlace

#: How well a task fits, by best fit's measure: less is better. The last number is the node's.
_Fit = tuple[int, int, int] | tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Soonest:
    """Which jobs have to end, the first of them first, and where the task has room then."""

    needed: Sequence[JobHolding]
    node: str
    gpu_type: str | None


class _Room:
    """What is free on a node, were some jobs to end; those who come `first` take their part of it."""

    __slots__ = ("cpus", "first", "gpus", "lifted", "memory_mb", "storage_gb", "use")

    def __init__(self, use: FreeNodeResources, first: Sequence[ReservedPlace] = ()) -> None:
        self.use = use
        self.first = first
        self.cpus, self.memory_mb, self.storage_gb = use.cpus, use.memory_mb, use.storage_gb
        self.gpus = {gpu_type: len(free) for gpu_type, free in use.gpus.items()}
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

    def fit(self, demand: Demand, types: Collection[str]) -> tuple[_Fit, str | None] | None:
        """Return how well a task fits on GPUs of some types, and of which; None: there is no room."""
        cpus, memory_mb, storage_gb, gpus = self.cpus, self.memory_mb, self.storage_gb, self.gpus
        if self.first:
            gpus = dict(gpus)
            for place in self.first:
                cpus -= max(0, min(place.demand.cpus, cpus))
                memory_mb -= max(0, min(place.demand.memory_mb, memory_mb))
                storage_gb -= max(0, min(place.demand.storage_gb, storage_gb))
                if place.gpu_type in gpus:
                    gpus[place.gpu_type] -= min(place.demand.gpus, gpus[place.gpu_type])
        if demand.cpus > cpus or demand.memory_mb > memory_mb or demand.storage_gb > storage_gb:
            return None
        if not demand.gpus:
            return (sum(gpus.values()), cpus, self.use.number), None
        enough = [(gpus[of], of) for of in types if gpus.get(of, 0) >= demand.gpus]
        if not enough:
            return None
        count, gpu_type = min(enough)
        return (count, gpu_type, self.use.number), gpu_type


class SoonestPlanner:
    """One question: the cluster, and what is kept there for others, which is looked at as free.

    `first`: whose places are respected all the same. `allowance`: what may be had of the share, for which the
    task's own virtual cluster's ends count too; None: whatever there is.
    `barred`: nodes, by number, on which the task must not be.
    """

    def __init__(
        self,
        cluster: Cluster,
        kept: Mapping[str, Iterable[tuple[Demand, Assignment]]],
        demand: Demand,
        first: Iterable[Reservation] = (),
        allowance: Allowance | None = None,
        barred: Collection[int] = (),
    ) -> None:
        self._cluster = cluster
        self._kept = kept
        self._demand = demand
        self._barred = barred
        self._first: dict[str, list[ReservedPlace]] = {}
        for reservation in first:
            for place in reservation.targets:
                self._first.setdefault(place.node, []).append(place)
        self._allowance = allowance
        #: on GPUs of which types it may run right now; None: a limit is in the way
        self._types: Collection[str] | None = self._may_have()
        self._rooms: dict[str, _Room] = {}
        #: there is room where nothing was counted out
        self._elsewhere = False
        #: the others that have room, and which of the jobs counted out are of its virtual cluster
        self._fitting: list[_Room] = []
        self._own: list[int] = []

    def find(self, ends: Sequence[JobHolding]) -> Soonest | None:
        """Find which of `ends` have to end, the first of them preferred; None: all of them do not do."""
        if self._allowance is None:
            return self._find(ends)
        if self._types is None and not self._allowance.may_gain(ends):
            return None
        with self._allowance.restored():
            return self._find(ends)

    def _find(self, ends: Sequence[JobHolding]) -> Soonest | None:
        for node in dict.fromkeys([*self._kept, *self._first]):
            self._room(node)
        self._look_everywhere()
        if self._has_room:
            return self._soonest([])
        lifted: list[JobHolding] = []
        for place, holding in enumerate(ends):
            lifted.append(holding)
            rooms = self._lift(place, holding)
            if self._changes_allowance(holding, 1):
                self._own.append(place)
                types = self._may_have()
                if types != self._types:
                    self._types = types
                    self._look_everywhere()
            if self._types is not None:
                known = self._fitting
                self._fitting = known + [one for one in rooms if one not in known and self._fits(one)]
                if self._has_room:
                    return self._without_needless(lifted)
        return None

    @property
    def _has_room(self) -> bool:
        return self._types is not None and (self._elsewhere or bool(self._fitting))

    def _look_everywhere(self) -> None:
        """Find all that has room by now."""
        if self._types is None:
            return
        self._fitting = [room for room in self._rooms.values() if self._fits(room)]
        self._elsewhere = self._beside() is not None

    def _beside(self) -> tuple[FreeNodeResources, str | None] | None:
        """Return what fits best of the nodes on which nothing was counted out."""
        numbers = {room.use.number for room in self._rooms.values()}.union(self._barred)
        return self._cluster.best_fit(self._demand, numbers, self._types or ())

    def _fits(self, room: _Room) -> bool:
        return room.fit(self._demand, self._types or ()) is not None

    def _may_have(self) -> Collection[str] | None:
        if self._allowance is not None:
            return self._allowance.gpu_types(self._demand, self._cluster.gpu_types)
        return [self._demand.gpu_type] if self._demand.gpu_type else self._cluster.gpu_types

    def _changes_allowance(self, holding: JobHolding, sign: int) -> bool:
        return self._allowance is not None and self._allowance.count(holding, sign)

    def _without_needless(self, lifted: Sequence[JobHolding]) -> Soonest:
        """Count in again what can be; without the last of them nothing fits, so that one is needed."""
        needed = [len(lifted) - 1]
        some = {place for room in self._fitting for place in room.lifted}.union(self._own)
        # (what was counted out on nodes without room does not matter, unless there is room without that)
        places = range(needed[0]) if self._elsewhere else sorted(some - set(needed))
        needed += [place for place in reversed(places) if not self._count_in(lifted[place])]
        return self._soonest([lifted[place] for place in sorted(needed)])

    def _count_in(self, holding: JobHolding) -> bool:
        """Count a job in again, where the task fits all the same; tell whether it does."""
        before = self._types, self._fitting, self._elsewhere
        self._count(holding, -1)
        if self._changes_allowance(holding, -1):
            self._types = self._may_have()
            if self._elsewhere and self._types is not None and self._types != before[0]:
                self._elsewhere = self._beside() is not None
        if self._types is not None:
            self._fitting = [room for room in self._fitting if self._fits(room)]
        if self._has_room:
            return True
        self._count(holding, 1)
        self._changes_allowance(holding, 1)
        self._types, self._fitting, self._elsewhere = before
        return False

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
            if use is None or not use.node.ready or use.number in self._barred:
                return None
            room = self._rooms[node] = _Room(use, self._first.get(node, ()))
            for demand, assignment in self._kept.get(node, ()):
                room.add(demand, assignment, 1)
        return room

    def _soonest(self, needed: Sequence[JobHolding]) -> Soonest:
        _, node, gpu_type = min(self._fits_known(), key=lambda one: one[0])
        return Soonest(needed, node, gpu_type)

    def _fits_known(self) -> Iterator[tuple[_Fit, str, str | None]]:
        beside = self._beside() if self._elsewhere else None
        others = [] if beside is None else [_Room(beside[0])]
        for room in [*self._fitting, *others]:
            fit = room.fit(self._demand, self._types or ())
            if fit is not None:
                yield fit[0], room.use.node.name, fit[1]
