"""Finds nodes for a gang: all of its tasks or none, best fit, each GPU to one task only.

Best fit by GPUs first (the node whose free GPUs of the type are fewest but enough), so that large
blocks stay whole; tasks without GPUs go where the fewest GPUs are free, then the fewest cores. Where that
finds no room for a gang of different tasks, an exact search has a second look (bin_packing.py).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import groupby
from types import MappingProxyType

from pai_scheduler.job.spec import PortRequest

from .bin_packing import ExactSearch, NodeRoom, Place, best_fit_may_err, enough_gpus, room_for, room_of
from .node import Node
from .node_index import FreeNodeResources, NodeIndex, Rack, Size
from .resources import Assignment, Demand, fixed_ports

#: Ports that the scheduler chooses, the first ones first: enough for the largest job, and below Linux's
#: ephemeral range, which starts at 32768.
PORT_RANGE = (*range(20000, 32768), *range(10000, 20000))

#: more than there can be of anything
_NO_LIMIT = 1 << 62

#: What is free on a node: beside GPUs, and how many GPUs of each type of which there are any.
_Free = tuple[Size, tuple[tuple[str, int], ...]]


#: By node and kind of task in a gang: at which of the node's changes it was counted, and the count.
Counted = dict[tuple[str, int], tuple[int, int]]


class Cluster:
    """The nodes and what is free on them.

    With `shares_host_ports` all nodes stand for one machine, and no two tasks get the same port. `first_port`
    is how far into the range the choice begins, so that two schedulers of one machine seldom meet.
    """

    def __init__(
        self, nodes: Iterable[Node], *, shares_host_ports: bool = False, first_port: int = 0
    ) -> None:
        self.shares_host_ports = shares_host_ports
        self._ports: set[int] = set()
        self._next_port = first_port % len(PORT_RANGE)
        self._uses: dict[str, FreeNodeResources] = {}
        #: a sum of hashes: as long as it is the same, the same is free
        self._state = 0
        self._second_look = ExactSearch()
        #: how often something was released, and the tasks that have found no room since the last time
        self._released = self._refused_at = 0
        #: how often anything was booked or released
        self.changes = 0
        self._refused: set[Demand] = set()
        self._racks: dict[str, Rack] = {}
        for number, node in enumerate(nodes):
            if node.rack:
                self._racks.setdefault(node.rack, Rack()).nodes.append(node.name)
            self._uses[node.name] = FreeNodeResources(node, self._ports, number)
        #: the types of GPU that there are
        self.gpu_types = sorted({gpu.type for use in self._uses.values() for gpu in use.node.gpus})
        #: no node has GPUs of two types
        self._types_are_apart = all(len(use.gpus) < 2 for use in self._uses.values())
        self._free_gpus: Counter[str] = Counter()
        self._index = NodeIndex(self.gpu_types)
        #: by number, what each node is in the index with; `_changed`: it may have more or less by now
        self._filed: dict[int, _Free] = {}
        self._changed: set[FreeNodeResources] = set(self._uses.values())
        self._numbered = {use.number: use for use in self._uses.values()}

    @property
    def uses(self) -> Mapping[str, FreeNodeResources]:
        """Return what is free, by node name."""
        return self._uses

    @property
    def nodes(self) -> list[Node]:
        """List the nodes."""
        return [use.node for use in self._uses.values()]

    @property
    def racks(self) -> Mapping[str, Rack]:
        """Return the racks by the names that nodes give; nodes that give none are in none."""
        self._file()
        return self._racks

    def emptied(self, nodes: Iterable[Node] | None = None) -> Cluster:
        """Return the same cluster (or one of other nodes) with nothing running on it."""
        return Cluster(
            self.nodes if nodes is None else nodes,
            shares_host_ports=self.shares_host_ports,
            first_port=self._next_port,
        )

    def place(
        self,
        gang: Sequence[Demand],
        gpu_room: Mapping[str, int] | None = None,
        *,
        closely: bool = True,
        barred: frozenset[int] = frozenset(),
    ) -> list[Assignment] | None:
        """Find and book nodes for all demands; None, and nothing booked, where one does not fit.

        `gpu_room`: how many GPUs of each type may be taken at most; None: as many as there are. `closely`:
        where best fit finds no room, the exact search is asked, which uses up steps that decisions need.
        `barred`: nodes, by number, on which nothing of it may be.
        """
        needs_room_only = len(gang) == 1 and gpu_room is None and self.needs_room_only(gang[0])
        if needs_room_only and self._refused_at == self._released and gang[0] in self._refused:
            return None
        kept = self._ports_of(gang)
        if kept is None or (barred and len(barred) >= len(self._uses)):
            return None
        if len(gang) > 1 and not self.may_hold(gang, gpu_room):
            return None
        placed = self._place_best_fit(gang, gpu_room, kept, barred)
        err = closely and placed is None and best_fit_may_err(gang, gpu_room)
        if err and self._has_gpus_for(gang, gpu_room):
            rooms = partial(self._rooms_for, gang, barred)
            state = hash((self._state, barred)) if barred else self._state
            places = self._second_look.arrange(state, rooms, gang, gpu_room)
            placed = None if places is None else self._take(gang, places, kept)
        if placed is None and needs_room_only and not barred:
            self._remember_refusal(gang[0])
        return placed

    def needs_room_only(self, demand: Demand) -> bool:
        """Return whether a task has all it needs where there is room: no other's ports are in its way."""
        return not demand.ports or (not self.shares_host_ports and _own_ports(demand) is not None)

    def _remember_refusal(self, demand: Demand) -> None:
        """A task found no room: nor will it as long as nothing is released."""
        if self._refused_at != self._released:
            self._refused.clear()
            self._refused_at = self._released
        self._refused.add(demand)

    def allow_searches(self) -> None:
        """Something happened: gangs for which best fit finds no room may be looked at again more closely."""
        self._second_look.allow_more()

    @cached_property
    def empty_rooms(self) -> Sequence[NodeRoom]:
        """Return what each ready node has with nothing running on it."""
        return [room_of(use.node) for use in self._uses.values() if use.node.ready]

    def rooms(self) -> list[NodeRoom]:
        """Count what is free on each ready node."""
        return [_room(use) for use in self._uses.values() if use.node.ready]

    def _rooms_for(self, gang: Sequence[Demand], barred: Collection[int]) -> list[NodeRoom]:
        """Count what is free on each node that has room for a task of a gang."""
        self._file()
        numbers: set[int] = set()
        for demand, _ in _kinds(gang):
            types = [demand.gpu_type] if demand.gpu_type else self.gpu_types
            numbers.update(self._index.with_room(_size(demand), demand.gpus, types))
        return [_room(self._numbered[number]) for number in sorted(numbers.difference(barred))]

    def may_hold(
        self,
        gang: Sequence[Demand],
        gpu_room: Mapping[str, int] | None = None,
        kept: Mapping[str, Sequence[tuple[Demand, Assignment]]] = MappingProxyType({}),
        counted: Counted | None = None,
    ) -> bool:
        """Return whether the tasks of each kind may have room by themselves; where not, the gang has none.

        That is counted, which costs less than to book task by task and to give all back. `kept`: what is
        booked, by node, and looked at as free; `counted` keeps what that comes to for the next look, where it
        is the same gang and `kept` changes with its nodes only.
        """
        if len(gang) == 1:
            return self._may_hold_one(gang[0], gpu_room, kept)
        self._file()
        counted = {} if counted is None else counted
        for kind, (demand, wanted) in enumerate(_kinds(gang)):
            if not any((*_size(demand), demand.gpus)):
                continue  # who asks for nothing has room anywhere
            most: Mapping[str, int] = {}
            if demand.gpus:
                types = [demand.gpu_type] if demand.gpu_type else self.gpu_types
                room = gpu_room or {}
                most = {of: wanted if gpu_room is None else room.get(of, 0) // demand.gpus for of in types}
            for name, parts in kept.items():
                if wanted <= 0:
                    break
                use = self._uses[name]
                known = counted.get((name, kind))
                if known is None or known[0] != use.changes:
                    known = counted[name, kind] = use.changes, _more_copies(use, parts, demand)
                wanted -= known[1]
            if wanted > 0 and not self._index.may_hold(_size(demand), demand.gpus, most, wanted):
                return False
        return True

    def counts_exactly(self, gang: Sequence[Demand]) -> bool:
        """Return whether a gang has room wherever `may_hold` finds it possible, with GPUs without limit.

        So it is with equal tasks: which nodes they are on does not matter, unless a node has GPUs of two
        types, each of which is counted with all of its cores.
        """
        first = gang[0]
        return (
            gang.count(first) == len(gang)
            and not self.shares_host_ports
            and any((*_size(first), first.gpus))
            and self.needs_room_only(first)
            and (self._types_are_apart or not first.gpus or first.gpu_type is not None)
        )

    def count_room(self, demand: Demand) -> int:
        """Count how many tasks of a kind, each of which asks for something, have room by themselves."""
        self._file()
        types = [demand.gpu_type] if demand.gpu_type else self.gpu_types
        return self._index.copies(_size(demand), demand.gpus, dict.fromkeys(types, _NO_LIMIT), _NO_LIMIT)

    def _may_hold_one(
        self,
        demand: Demand,
        gpu_room: Mapping[str, int] | None,
        kept: Mapping[str, Sequence[tuple[Demand, Assignment]]],
    ) -> bool:
        """Do what `may_hold` does for a job of one task."""
        for name, parts in kept.items():
            if _has_room_without(self._uses[name], parts, demand):
                return True
        self._file()
        asked = _size(demand)
        if not demand.gpus:
            return self._index.without_gpus(asked) is not None
        types = [demand.gpu_type] if demand.gpu_type else self.gpu_types
        if gpu_room is not None:
            types = [of for of in types if gpu_room.get(of, 0) >= demand.gpus]
        return self._index.with_gpus(asked, demand.gpus, types) is not None

    def _ports_of(self, gang: Sequence[Demand]) -> set[int] | None:
        """Return the ports of one machine that a gang names; None where it cannot have them."""
        kept: set[int] = set()
        if self.shares_host_ports:
            for demand in gang:
                for port in fixed_ports(demand.ports):
                    if port in kept or port in self._ports:
                        return None
                    kept.add(port)
        return kept

    def _has_gpus_for(self, gang: Sequence[Demand], gpu_room: Mapping[str, int] | None) -> bool:
        self._file()
        free: Mapping[str, int] = self._free_gpus
        if gpu_room is not None:
            free = {gpu_type: min(count, gpu_room.get(gpu_type, 0)) for gpu_type, count in free.items()}
        return enough_gpus(gang, free)

    def _place_best_fit(
        self,
        gang: Sequence[Demand],
        gpu_room: Mapping[str, int] | None,
        kept: set[int],
        barred: Collection[int],
    ) -> list[Assignment] | None:
        placed: dict[int, Assignment] = {}
        room = None if gpu_room is None else dict(gpu_room)
        for i in hardest_first(gang):
            assignment = self._place_one(gang[i], room, kept, barred)
            if assignment is None:
                for j, booked in placed.items():
                    self.release(gang[j], booked)
                return None
            placed[i] = assignment
        return [placed[i] for i in range(len(gang))]

    def _take(
        self, gang: Sequence[Demand], places: Sequence[Place], kept: set[int]
    ) -> list[Assignment] | None:
        """Book places that have room; None, and nothing booked, where too few ports are left to choose."""
        placed: list[Assignment] = []
        for demand, (node, gpu_type) in zip(gang, places, strict=True):
            assignment = self._assign(self._uses[node], gpu_type, demand, kept)
            if assignment is None:
                for booked, one in zip(gang, placed, strict=False):
                    self.release(booked, one)
                return None
            placed.append(assignment)
        return placed

    def fits(self, gang: Sequence[Demand], gpu_room: Mapping[str, int] | None = None) -> bool:
        """Return whether `place` would succeed; nothing is booked."""
        placed = self.place(gang, gpu_room)
        if placed is None:
            return False
        for demand, assignment in zip(gang, placed, strict=True):
            self.release(demand, assignment)
        return True

    def occupy(self, demand: Demand, assignment: Assignment) -> None:
        """Book what runs already (after a restart); of a node that is gone, only the ports count."""
        self.changes += 1
        if self.shares_host_ports:
            self._ports.update(_numbers(assignment))
        use = self._uses.get(assignment.node)
        if use is not None:
            use.take(demand, assignment)
            self._changed.add(use)

    def release(self, demand: Demand, assignment: Assignment) -> None:
        """Release what a task had."""
        self._released += 1
        self.changes += 1
        if self.shares_host_ports:
            self._ports.difference_update(_numbers(assignment))
        use = self._uses.get(assignment.node)
        if use is not None:
            use.give_back(demand, assignment)
            self._changed.add(use)

    def give_other_ports(
        self, demand: Demand, assignment: Assignment, taken: Collection[int]
    ) -> Assignment | None:
        """Book other ports for those of a task that were chosen and are in `taken`, where no other is.

        Ports that the user named stay. None, and nothing changed, where too few are left to choose.
        """
        chosen = {request.label for request in demand.ports if not request.begin_at}
        ports = dict(assignment.ports)
        given: set[int] = set()
        position = self._next_port
        for label in chosen & ports.keys():
            numbers = list(ports[label])
            for place, number in enumerate(numbers):
                if number not in taken:
                    continue
                for _ in range(len(PORT_RANGE)):
                    port = PORT_RANGE[position % len(PORT_RANGE)]
                    position += 1
                    if port not in taken and port not in given and port not in self._ports:
                        break
                else:
                    return None
                given.add(port)
                numbers[place] = port
            ports[label] = tuple(numbers)
        self._next_port = position % len(PORT_RANGE)
        other = replace(assignment, ports=ports)
        self._ports.difference_update(_numbers(assignment))
        self._ports.update(_numbers(other))
        return other

    def _place_one(
        self, demand: Demand, gpu_room: dict[str, int] | None, kept: set[int], barred: Collection[int]
    ) -> Assignment | None:
        types = [demand.gpu_type] if demand.gpu_type else self.gpu_types
        if gpu_room is not None:
            types = [of for of in types if gpu_room.get(of, 0) >= demand.gpus]
        found = self._best_fit(demand, types, barred)
        if found is None:
            return None
        # (ports are no node's own: where one node lacks them, all do)
        assignment = self._assign(*found, demand, kept)
        if assignment is not None and gpu_room is not None and found[1] is not None:
            gpu_room[found[1]] -= demand.gpus
        return assignment

    def _assign(
        self, use: FreeNodeResources, gpu_type: str | None, demand: Demand, kept: set[int]
    ) -> Assignment | None:
        """Book a task on a node that has room for it; None where too few ports are left to choose."""
        ports = self._choose_ports(use, demand, kept)
        if ports is None:
            return None
        assignment = Assignment(use.node.name, use.choose_gpus(gpu_type, demand.gpus), ports)
        self.occupy(demand, assignment)
        return assignment

    def _best_fit(
        self, demand: Demand, types: Iterable[str], beside: Collection[int]
    ) -> tuple[FreeNodeResources, str | None] | None:
        """Return the node that fits best, none of those `beside`, and the type of GPU to take there."""
        if self._ports and any(port in self._ports for port in fixed_ports(demand.ports)):
            return None
        self._file()
        asked = _size(demand)
        if not demand.gpus:
            number = self._index.without_gpus(asked, beside)
            return None if number is None else (self._numbered[number], None)
        found = self._index.with_gpus(asked, demand.gpus, types, beside)
        return None if found is None else (self._numbered[found[0]], found[1])

    def best_fit(
        self, demand: Demand, beside: Collection[int], gpu_types: Iterable[str]
    ) -> tuple[FreeNodeResources, str | None] | None:
        """Return the node that fits a task best, none of those `beside` by number, and the GPU type there."""
        return self._best_fit(demand, gpu_types, beside)

    def first_with_room(
        self,
        demand: Demand,
        gpu_type: str | None,
        beside: Collection[str],
        barred: Collection[int] = (),
        *,
        emptiest: bool = False,
    ) -> FreeNodeResources | None:
        """Return the node that fits a task best, or the `emptiest` one with room; its GPUs are of one type.

        None of those `beside`, by name, nor of those `barred`, by number.
        """
        numbers = {self._uses[name].number for name in beside}.union(barred)
        if emptiest:
            return self._emptiest(demand, gpu_type, numbers)
        found = self._best_fit(demand, [gpu_type] if gpu_type else self.gpu_types, numbers)
        return None if found is None else found[0]

    def _emptiest(
        self, demand: Demand, gpu_type: str | None, beside: Collection[int]
    ) -> FreeNodeResources | None:
        self._file()
        if not demand.gpus:
            number = self._index.emptiest_without_gpus(_size(demand), beside)
        else:
            types = [gpu_type] if gpu_type else self.gpu_types
            found = self._index.emptiest_with_gpus(_size(demand), demand.gpus, types, beside)
            number = None if found is None else found[0]
        return None if number is None else self._numbered[number]

    def _choose_ports(
        self, use: FreeNodeResources, demand: Demand, kept: set[int]
    ) -> Mapping[str, tuple[int, ...]] | None:
        """Choose the ports: fixed ones as asked, others in turn, so that one just freed rests a while.

        None of those `kept` for other tasks of the gang is chosen.
        """
        if not self.shares_host_ports:
            return _own_ports(demand)
        found = _choose(demand.ports, self._next_port, use.ports, kept)
        if found is None:
            return None
        chosen, self._next_port = found
        return chosen

    def _file(self) -> None:
        """Bring the index up to date, and all that is counted: only what is asked for has to be."""
        for use in self._changed:
            before, now = self._filed.get(use.number), _free(use)
            if now == before:
                continue
            if before is not None:
                self._count(use, before, -1)
                if use.node.ready:
                    self._index.remove(use.number, *before)
            self._count(use, now, 1)
            if use.node.ready:
                self._index.add(use.number, *now)
            self._filed[use.number] = now
        self._changed.clear()

    def _count(self, use: FreeNodeResources, free: _Free, sign: int) -> None:
        self._state += sign * hash((use.number, free))
        for gpu_type, count in free[1]:
            self._free_gpus[gpu_type] += sign * count
        if use.node.rack:
            rack = self._racks[use.node.rack]
            rack.gpus += sign * sum(count for _, count in free[1])
            rack.cpus += sign * free[0][0]


def hardest_first(gang: Sequence[Demand]) -> list[int]:
    """Return the order in which the tasks of a gang choose, by their places in it."""
    return sorted(range(len(gang)), key=lambda i: (-gang[i].gpus, -gang[i].cpus, -gang[i].memory_mb))


def _choose(
    requests: Sequence[PortRequest], position: int, others: Collection[int], kept: Collection[int]
) -> tuple[Mapping[str, tuple[int, ...]], int] | None:
    """Choose ports from a place in the range on, no other's; return also the place behind them."""
    chosen: dict[str, tuple[int, ...]] = {}
    taken = set(fixed_ports(requests))
    for request in requests:
        if request.begin_at:
            chosen[request.label] = tuple(range(request.begin_at, request.begin_at + request.count))
            continue
        found: list[int] = []
        for _ in range(len(PORT_RANGE)):
            if len(found) == request.count:
                break
            port = PORT_RANGE[position % len(PORT_RANGE)]
            position += 1
            if port not in taken and port not in kept and port not in others:
                found.append(port)
                taken.add(port)
        if len(found) < request.count:
            return None
        chosen[request.label] = tuple(found)
    return chosen, position % len(PORT_RANGE)


@lru_cache(maxsize=8192)
def _own_ports(demand: Demand) -> Mapping[str, tuple[int, ...]] | None:
    """Choose the ports of a task that has all of them for itself: always the same."""
    found = _choose(demand.ports, 0, (), ())
    return None if found is None else found[0]


def _size(demand: Demand) -> Size:
    return demand.cpus, demand.memory_mb, demand.storage_gb


def _kinds(gang: Sequence[Demand]) -> list[tuple[Demand, int]]:
    """Count equal tasks that follow one another, as those of a role do."""
    return [(demand, sum(1 for _ in equal)) for demand, equal in groupby(gang)]


def _more_copies(use: FreeNodeResources, parts: Iterable[tuple[Demand, Assignment]], demand: Demand) -> int:
    """Count how many tasks of a kind more a node would hold without what is booked in `parts`."""
    free = _room(use)
    gpus = Counter(free.gpus)
    cpus, memory_mb, storage_gb = free.cpus, free.memory_mb, free.storage_gb
    for part, assignment in parts:
        cpus, memory_mb, storage_gb = (
            cpus + part.cpus,
            memory_mb + part.memory_mb,
            storage_gb + part.storage_gb,
        )
        for index in assignment.gpus:
            gpus[use.gpu_types.get(index, "")] += 1
    more = room_for(demand, NodeRoom(use.node.name, cpus, memory_mb, storage_gb, gpus))
    return max(0, more - room_for(demand, free))


def _has_room_without(
    use: FreeNodeResources, parts: Iterable[tuple[Demand, Assignment]], demand: Demand
) -> bool:
    """Return whether a node would have room for a task without what is booked in `parts`."""
    cpus, memory_mb, storage_gb = use.cpus, use.memory_mb, use.storage_gb
    more: dict[str, int] = {}
    for part, assignment in parts:
        cpus += part.cpus
        memory_mb += part.memory_mb
        storage_gb += part.storage_gb
        for index in assignment.gpus:
            gpu_type = use.gpu_types.get(index, "")
            more[gpu_type] = more.get(gpu_type, 0) + 1
    if demand.cpus > cpus or demand.memory_mb > memory_mb or demand.storage_gb > storage_gb:
        return False
    if not demand.gpus:
        return True
    types = (demand.gpu_type,) if demand.gpu_type else use.gpus
    return any(len(use.gpus.get(of, ())) + more.get(of, 0) >= demand.gpus for of in types)


def _room(use: FreeNodeResources) -> NodeRoom:
    gpus = {gpu_type: len(free) for gpu_type, free in use.gpus.items() if free}
    return NodeRoom(use.node.name, use.cpus, use.memory_mb, use.storage_gb, gpus)


def _free(use: FreeNodeResources) -> _Free:
    gpus = tuple([(gpu_type, len(free)) for gpu_type, free in use.gpus.items() if free])
    return (use.cpus, use.memory_mb, use.storage_gb), gpus


def _numbers(assignment: Assignment) -> Iterator[int]:
    for ports in assignment.ports.values():
        yield from ports
