"""Choice of the jobs that must end so that another fits: by counting for one task, by trying for a gang."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from .node_index import FreeNodeResources
from .placement import Cluster
from .quota import Bound, QuotaAccounting
from .reservations import Reservation, ReservedPlace
from .resources import Amounts, Assignment, Demand
from .sort_key import SortKey

# Counts how many equal tasks have room, while what is free on some nodes changes and changes back.
#
# To find which jobs must end for a gang, they are lifted off the cluster and put back some dozens of times.
# Here only the nodes that have changed are counted anew, and the cluster's index is left as it is
# meanwhile.


class GangCount:
    """A gang of `wanted` tasks like `demand`, one that `Cluster.counts_exactly`.

    Say `changing` before something changes.
    """

    def __init__(self, cluster: Cluster, demand: Demand, wanted: int) -> None:
        self._uses, self._demand, self._wanted = cluster.uses, demand, wanted
        self._count = cluster.count_room(demand)
        #: by node, what of the count it has
        self._counted: dict[str, int] = {}
        self._changed: set[str] = set()

    def changing(self, nodes: Iterable[str]) -> None:
        """Know that something is about to be taken or given back on some nodes."""
        for node in nodes:
            if node in self._changed:
                continue
            if node not in self._counted:
                use = self._uses.get(node)
                if use is None:  # it is gone, and its jobs still run
                    continue
                self._counted[node] = copies_on(use, self._demand)
            self._changed.add(node)

    def fits(self) -> bool:
        """Return whether all tasks have room now."""
        for node in self._changed:
            now = copies_on(self._uses[node], self._demand)
            self._count += now - self._counted[node]
            self._counted[node] = now
        self._changed.clear()
        return self._count >= self._wanted


def copies_on(use: FreeNodeResources, demand: Demand) -> int:
    """Count how many tasks of a kind have room on a node; GPUs of each type are counted apart."""
    if not use.node.ready or use.cpus < 0 or use.memory_mb < 0 or use.storage_gb < 0:
        return 0
    most = []
    if demand.cpus:
        most.append(use.cpus // demand.cpus)
    if demand.memory_mb:
        most.append(use.memory_mb // demand.memory_mb)
    if demand.storage_gb:
        most.append(use.storage_gb // demand.storage_gb)
    if demand.gpus:
        types = (demand.gpu_type,) if demand.gpu_type else use.gpus
        most.append(sum([len(use.gpus.get(gpu_type, ())) // demand.gpus for gpu_type in types]))
    return min(most)


# What would fit if some jobs had ended: which of them must, found by trying.

#: In which order jobs will have ended; the last number is the order in which they got what they hold.
EndOrder = tuple[bool, bool, int, int, int]


@dataclass(slots=True, eq=False)
class JobHolding:
    """Allocation of a job. `since`: when it got it; `expected_end`: when it will have ended at the latest."""

    job_id: str
    user: str
    virtual_cluster: str
    preemptible: bool
    since: int
    expected_end: int | None = None
    #: its tasks are being stopped
    ending: bool = False
    #: … for another job's sake
    preempted: bool = False
    #: the sort key that a job of its own virtual cluster must stop to have its room; None: none does
    yields: SortKey | None = None
    #: where it is in the order of expected ends; None: it holds nothing
    end_order: EndOrder | None = None
    #: by place in the gang
    tasks: dict[int, tuple[Demand, Assignment, Amounts]] = field(default_factory=dict)

    @property
    def nodes(self) -> Iterable[str]:
        """Return the nodes of its tasks, each once."""
        return dict.fromkeys([assignment.node for _, assignment, _ in self.tasks.values()])

    @property
    def amounts(self) -> Amounts:
        """Add up what its tasks hold."""
        if len(self.tasks) == 1:
            return next(iter(self.tasks.values()))[2]
        # (equal tasks share their amounts)
        counts: dict[int, int] = {}
        kinds: dict[int, Amounts] = {}
        for _, _, amounts in self.tasks.values():
            kind = id(amounts)
            kinds[kind] = amounts
            counts[kind] = counts.get(kind, 0) + 1
        total: Counter[str] = Counter()
        for kind, amounts in kinds.items():
            for key, count in amounts.items():
                total[key] += count * counts[kind]
        return total


class PreemptionPlanner:
    """Lifts jobs off the cluster and its accounts, and puts them back exactly as they were.

    `before`: told of the nodes on which something is about to change.
    """

    def __init__(
        self,
        cluster: Cluster,
        quota_accounting: QuotaAccounting,
        before: Callable[[Iterable[str]], None] = lambda nodes: None,  # noqa: ARG005
    ) -> None:
        self._cluster = cluster
        self._quota_accounting = quota_accounting
        self._before = before
        #: what each job that was lifted holds altogether, and on each node
        self._held: dict[str, tuple[Amounts, Sequence[tuple[Demand, Assignment]]]] = {}

    def needed(
        self,
        fits: Callable[[], bool],
        ends: Sequence[JobHolding],
        found: Callable[[], object] | None = None,
    ) -> list[JobHolding] | None:
        """Find which of `ends` have to end before `fits`, the first of them preferred; None: all do not do.

        None of those found can be left out. `fits` must leave everything as it found it, and so must `found`,
        which is called once, while exactly those found are lifted, as they are when `fits` succeeds last.
        """
        lifted: list[JobHolding] = []
        step = 1
        try:
            while not fits():
                more = ends[len(lifted) : len(lifted) + step]
                if not more:
                    return None
                for holding in more:
                    self._lift(holding)
                    lifted.append(holding)
                step *= 2
            return self._without_needless(fits, lifted, found)
        finally:
            for holding in lifted:
                self._put_back(holding)

    def _without_needless(
        self, fits: Callable[[], bool], lifted: list[JobHolding], found: Callable[[], object] | None
    ) -> list[JobHolding]:
        """Keep what cannot be put back; the last come first. All are lifted again when it returns."""
        kept: list[JobHolding] = []
        stack = [lifted[:]]
        back: list[JobHolding] = []
        while stack:
            part = stack.pop()
            for holding in part:
                self._put_back(holding)
            if fits():
                back.extend(part)
                continue
            for holding in part:
                self._lift(holding)
            if len(part) == 1:
                kept.append(part[0])
            else:
                half = len(part) // 2
                stack.extend((part[:half], part[half:]))
        if found is not None:
            found()
        for holding in back:
            self._lift(holding)
        order = {id(holding): number for number, holding in enumerate(lifted)}
        return sorted(kept, key=lambda holding: order[id(holding)])

    def _lift(self, holding: JobHolding) -> None:
        amounts, parts = self._held_by(holding)
        self._before(holding.nodes)
        for demand, assignment in parts:
            self._cluster.release(demand, assignment)
        self._quota_accounting.unbook(holding.virtual_cluster, holding.user, amounts)

    def _put_back(self, holding: JobHolding) -> None:
        amounts, parts = self._held_by(holding)
        self._before(holding.nodes)
        for demand, assignment in parts:
            self._cluster.occupy(demand, assignment)
        self._quota_accounting.book(holding.virtual_cluster, holding.user, amounts)

    def _held_by(self, holding: JobHolding) -> tuple[Amounts, Sequence[tuple[Demand, Assignment]]]:
        known = self._held.get(holding.job_id)
        if known is None:
            known = self._held[holding.job_id] = holding.amounts, _by_node(holding)
        return known


def _by_node(holding: JobHolding) -> list[tuple[Demand, Assignment]]:
    """Return what a job holds, its tasks on one node as if they were one."""
    together: dict[str, list[tuple[Demand, Assignment]]] = {}
    for demand, assignment, _ in holding.tasks.values():
        together.setdefault(assignment.node, []).append((demand, assignment))
    return [parts[0] if len(parts) == 1 else _as_one(node, parts) for node, parts in together.items()]


def _as_one(node: str, parts: Sequence[tuple[Demand, Assignment]]) -> tuple[Demand, Assignment]:
    demands = [demand for demand, _ in parts]
    demand = Demand(
        sum([one.cpus for one in demands]),
        sum([one.memory_mb for one in demands]),
        sum([one.storage_gb for one in demands]),
        sum([one.gpus for one in demands]),
    )
    gpus = tuple([index for _, one in parts for index in one.gpus])
    ports = tuple([port for _, one in parts for ports in one.ports.values() for port in ports])
    return demand, Assignment(node, gpus, {"": ports})


# What a task may have of its virtual cluster's share, while it is counted which jobs might end.


@dataclass(slots=True)
class Allowance:
    """The share of a virtual cluster, and the quota of one of its users, up to a bound."""

    quota: QuotaAccounting
    cluster: str
    user: str
    asked: Amounts
    bound: Bound
    #: the jobs of the virtual cluster that are taken off the accounts
    _out: dict[str, JobHolding] = field(default_factory=dict)

    def gpu_types(self, demand: Demand, all_types: Collection[str]) -> Collection[str] | None:
        """Return on GPUs of which types the task may run; None: it goes beyond a limit."""
        if self.quota.violation(self.cluster, self.user, self.asked, self.bound) is not None:
            return None
        types = [demand.gpu_type] if demand.gpu_type else all_types
        room = self.quota.gpu_room(self.cluster, self.bound)
        return types if room is None else [of for of in types if room.get(of, 0) >= demand.gpus]

    def may_gain(self, ends: Iterable[JobHolding]) -> bool:
        """Return whether the end of one of some jobs leaves more of the share."""
        return any(holding.virtual_cluster == self.cluster for holding in ends)

    def count(self, holding: JobHolding, sign: int) -> bool:
        """Take a job off the accounts (sign 1), or put it back (-1); tell whether it has of the share."""
        if holding.virtual_cluster != self.cluster:
            return False
        if sign > 0:
            self._out[holding.job_id] = holding
            change = self.quota.unbook
        else:
            del self._out[holding.job_id]
            change = self.quota.book
        for _, _, amounts in holding.tasks.values():
            change(holding.virtual_cluster, holding.user, amounts)
        return True

    @contextmanager
    def restored(self) -> Iterator[None]:
        """Put everything back at the end."""
        try:
            yield
        finally:
            for holding in list(self._out.values()):
                self.count(holding, -1)


# Finds which jobs have to end before a single task fits, by counting what they would leave on their nodes.
#
# The preemption planner (preemption.py) finds the same by lifting jobs off the cluster and trying, which is
# needed where the tasks of a gang depend on each other. One task needs one node: jobs are counted out in
# the order of their ends until one of their nodes has room and the share of the virtual cluster allows it,
# and what is not needed for that is counted in again, the last first.

#: How well a task fits, by best fit's measure: less is better. The last number is the node's.
_Fit = tuple[int, int, int] | tuple[int, str, int]


@dataclass(frozen=True, slots=True)
class Soonest:
    """Jobs that have to end, the first of them first, and the place where the task fits then."""

    needed: Sequence[JobHolding]
    node: str
    gpu_type: str | None


class _Room:
    """Free resources of a node after some jobs end; the reservations in `first` take their part of them."""

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
