"""Index of nodes by their free resources, so that the best fit is found without a look at every node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from operator import gt

from sortedcontainers import SortedDict

from .node import Node, choose, groups_of
from .resources import Assignment, Demand, fixed_ports

# What is free on a node, and on the nodes of a rack together.


class FreeNodeResources:
    """Free resources of a node."""

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


# Nodes by what is free on them, so that the best fit is found without a look at every node.
#
# A node's number is its place in the order of the cluster. Of nodes that fit equally well the first is
# taken: a decision depends on what is free, and not on how it came to be free.

#: What is free beside GPUs, or asked for: cores, memory in MB, storage in GB.
Size = tuple[int, int, int]

_NOTHING: Size = (-1, -1, -1)


class NumberSet:
    """Numbers that come and go; the first of them is known.

    A heap keeps the order. What has left stays in it until it comes to the front, or is most of it.
    """

    __slots__ = ("_heap", "_members")

    def __init__(self) -> None:
        self._members: set[int] = set()
        self._heap: list[int] = []

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[int]:
        return iter(self._members)

    def add(self, number: int) -> None:
        """Take a number in."""
        self._members.add(number)
        heappush(self._heap, number)
        if len(self._heap) > 2 * len(self._members) + 8:
            self._heap = list(self._members)
            heapify(self._heap)

    def remove(self, number: int) -> None:
        """Let a number go; KeyError where it is not there."""
        self._members.remove(number)

    def first(self, but: Collection[int] = ()) -> int | None:
        """Return the lowest number that is not one of `but`."""
        passed = []
        found = None
        while self._heap:
            number = self._heap[0]
            if number in self._members:
                if number not in but:
                    found = number
                    break
                passed.append(number)
            heappop(self._heap)
        for number in passed:
            heappush(self._heap, number)
        return found


class SizedNodes:
    """Nodes with as many GPUs free, by what else is free."""

    __slots__ = ("_by_size", "_most")

    def __init__(self) -> None:
        self._by_size: dict[Size, NumberSet] = {}
        #: no node has more; a search that finds none makes it exact
        self._most = _NOTHING

    def __bool__(self) -> bool:
        return bool(self._by_size)

    def add(self, size: Size, number: int) -> None:
        """Take a node in."""
        nodes = self._by_size.get(size)
        if nodes is None:
            nodes = self._by_size[size] = NumberSet()
            self._most = _larger(self._most, size)
        nodes.add(number)

    def remove(self, size: Size, number: int) -> None:
        """Let a node go."""
        nodes = self._by_size[size]
        nodes.remove(number)
        if not nodes:
            del self._by_size[size]

    def first(self, asked: Size, but: Collection[int] = ()) -> int | None:
        """Return the first node that has room and is none of `but`."""
        if any(map(gt, asked, self._most)):
            return None
        cpus, memory_mb, storage_gb = asked
        best = None
        for size, nodes in self._by_size.items():
            if cpus <= size[0] and memory_mb <= size[1] and storage_gb <= size[2]:
                number = nodes.first(but)
                if number is not None and (best is None or number < best):
                    best = number
        if best is None:
            self._most = _NOTHING
            for size in self._by_size:
                self._most = _larger(self._most, size)
        return best

    def emptiest(self, asked: Size, but: Collection[int] = ()) -> int | None:
        """Return the node that has room and most memory free, then cores, and is none of `but`."""
        if any(map(gt, asked, self._most)):
            return None
        best: tuple[int, int, int] | None = None
        for size, nodes in self._by_size.items():
            if any(map(gt, asked, size)) or (best is not None and (size[1], size[0]) < best[:2]):
                continue
            number = nodes.first(but)
            if number is not None and (best is None or (size[1], size[0], -number) > best):
                best = size[1], size[0], -number
        return None if best is None else -best[2]

    def numbers(self, asked: Size) -> Iterator[int]:
        """Return the nodes that have room."""
        for size, nodes in self._by_size.items():
            if not any(map(gt, asked, size)):
                yield from nodes

    def copies(self, asked: Size, gpus: int | None, wanted: int) -> int:
        """Count how many equal tasks these nodes hold, at most `wanted`.

        `gpus`: for how many of them each node has GPUs; None: they need none.
        """
        if any(map(gt, asked, self._most)):
            return 0
        found = 0
        for size, nodes in self._by_size.items():
            if any(map(gt, asked, size)):
                continue
            each = min([have // much for have, much in zip(size, asked, strict=True) if much], default=wanted)
            found += len(nodes) * (each if gpus is None else min(each, gpus))
            if found >= wanted:
                return wanted
        return found


class NodeIndex:
    """Nodes by free GPUs: of one type for tasks with GPUs, of all types and by cores for tasks without."""

    def __init__(self, gpu_types: Iterable[str]) -> None:
        self._by_gpus: dict[str, dict[int, SizedNodes]] = {gpu_type: {} for gpu_type in gpu_types}
        #: where a task without GPUs does least harm is first
        self._by_room: SortedDict[tuple[int, int], SizedNodes] = SortedDict()

    def add(self, number: int, size: Size, gpus: Collection[tuple[str, int]]) -> None:
        """Take a node in. `gpus`: how many of each type are free, none of them 0."""
        for gpu_type, count in gpus:
            by_count = self._by_gpus[gpu_type]
            if count not in by_count:
                by_count[count] = SizedNodes()
            by_count[count].add(size, number)
        room = sum(count for _, count in gpus), size[0]
        nodes = self._by_room.get(room)
        if nodes is None:
            nodes = self._by_room[room] = SizedNodes()
        nodes.add(size, number)

    def remove(self, number: int, size: Size, gpus: Collection[tuple[str, int]]) -> None:
        """Let a node go; it is found by what it was taken in with."""
        for gpu_type, count in gpus:
            by_count = self._by_gpus[gpu_type]
            by_count[count].remove(size, number)
            if not by_count[count]:
                del by_count[count]
        room = sum(count for _, count in gpus), size[0]
        self._by_room[room].remove(size, number)
        if not self._by_room[room]:
            del self._by_room[room]

    def without_gpus(self, asked: Size, but: Collection[int] = ()) -> int | None:
        """Return the node where a task without GPUs fits best: the fewest GPUs free, then the fewest cores.

        None of `but`; None where none has room.
        """
        for (_, cpus), nodes in self._by_room.items():
            if cpus >= asked[0]:
                number: int | None = nodes.first(asked, but)
                if number is not None:
                    return number
        return None

    def with_gpus(
        self, asked: Size, gpus: int, gpu_types: Iterable[str], but: Collection[int] = ()
    ) -> tuple[int, str] | None:
        """Return the node, and the type of its GPUs, where a task fits best: the fewest of the type free."""
        for count, gpu_type in sorted(self._enough(gpus, gpu_types)):
            number = self._by_gpus[gpu_type][count].first(asked, but)
            if number is not None:
                return number, gpu_type
        return None

    def emptiest_without_gpus(self, asked: Size, but: Collection[int] = ()) -> int | None:
        """Return the node with most cores free, then memory, of those with the fewest GPUs free.

        So tasks without GPUs are spread, and keep away from free GPUs all the same.
        """
        at = 0
        while at < len(self._by_room):
            gpus = self._by_room.peekitem(at)[0][0]
            for room in self._by_room.irange((gpus, asked[0]), (gpus + 1,), (True, False), reverse=True):
                number: int | None = self._by_room[room].emptiest(asked, but)
                if number is not None:
                    return number
            at = self._by_room.bisect_left((gpus + 1,))
        return None

    def emptiest_with_gpus(
        self, asked: Size, gpus: int, gpu_types: Iterable[str], but: Collection[int] = ()
    ) -> tuple[int, str] | None:
        """Return the node with most GPUs of a type free, then memory, then cores, and the type."""
        for count, gpu_type in sorted(self._enough(gpus, gpu_types), key=lambda found: (-found[0], found[1])):
            number = self._by_gpus[gpu_type][count].emptiest(asked, but)
            if number is not None:
                return number, gpu_type
        return None

    def may_hold(self, asked: Size, gpus: int, most: Mapping[str, int], wanted: int) -> bool:
        """Return whether there may be room for so many equal tasks; where it is False, there is none."""
        return self.copies(asked, gpus, most, wanted) >= wanted

    def copies(self, asked: Size, gpus: int, most: Mapping[str, int], wanted: int) -> int:
        """Count how many equal tasks may have room, at most `wanted`.

        `most`: how many of them may use GPUs of each type. What a node has is counted for each type apart.
        """
        left = wanted
        if not gpus:
            for (_, cpus), nodes in self._by_room.items():
                if cpus >= asked[0]:
                    left -= nodes.copies(asked, None, left)
                    if left <= 0:
                        return wanted
            return wanted - left
        for gpu_type, limit in most.items():
            here = limit = min(limit, left)
            for count, nodes in self._by_gpus.get(gpu_type, {}).items():
                if count >= gpus and here > 0:
                    here -= nodes.copies(asked, count // gpus, here)
            left -= limit - here
            if left <= 0:
                return wanted
        return wanted - left

    def with_room(self, asked: Size, gpus: int, gpu_types: Iterable[str]) -> Iterator[int]:
        """Return the nodes that have room for a task, in no order, some of them twice."""
        if not gpus:
            for (_, cpus), nodes in self._by_room.items():
                if cpus >= asked[0]:
                    yield from nodes.numbers(asked)
        else:
            for count, gpu_type in self._enough(gpus, gpu_types):
                yield from self._by_gpus[gpu_type][count].numbers(asked)

    def _enough(self, gpus: int, gpu_types: Iterable[str]) -> Iterator[tuple[int, str]]:
        for gpu_type in gpu_types:
            for count in self._by_gpus.get(gpu_type, ()):
                if count >= gpus:
                    yield count, gpu_type


def _larger(one: Size, other: Size) -> Size:
    return max(one[0], other[0]), max(one[1], other[1]), max(one[2], other[2])
