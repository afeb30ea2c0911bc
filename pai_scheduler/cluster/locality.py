"""Locality of a placed gang: its tasks brought near each other where that costs nothing, or spread.

Best fit (placement.py) has decided by then that the gang starts, and with GPUs of which types; neither is
changed here. Near is one node, else one rack. It costs nothing where as much is left for others by best fit's
own measure: of GPUs, as many blocks of every size; where the gang has tasks without GPUs, as many blocks of
cores too, and as many cores beside free GPUs.

In a virtual cluster that spreads, each task gets the emptiest node instead, also that of a job of one task.
What starts, and when, is the same as without: only where it runs is another matter.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .node_index import FreeNodeResources
from .placement import Cluster, hardest_first
from .resources import Assignment, Demand

#: Looks of one task at one node that one gang may take: some milliseconds.
_MOST_LOOKS = 4_000
#: Tasks of a gang that is spread: each passes over the nodes of those before it.
MOST_SPREAD = 1_000
#: Blocks of cores are counted in these sizes: powers of two.
_CORES = tuple(1 << n for n in range(1, 9))


@dataclass(slots=True)
class _Free:
    """Free resources of a node in a plan: memory in MB, storage in GB, GPUs by type."""

    node: str
    cpus: int
    memory_mb: int
    storage_gb: int
    gpus: dict[str, int]

    def has_room(self, demand: Demand, gpu_type: str | None) -> bool:
        return (
            demand.cpus <= self.cpus
            and demand.memory_mb <= self.memory_mb
            and demand.storage_gb <= self.storage_gb
            and (gpu_type is None or demand.gpus <= self.gpus.get(gpu_type, 0))
        )

    def add(self, demand: Demand, gpu_type: str | None, sign: int) -> None:
        """Give back (sign 1) or take (sign -1) what a task has."""
        self.cpus += sign * demand.cpus
        self.memory_mb += sign * demand.memory_mb
        self.storage_gb += sign * demand.storage_gb
        if gpu_type is not None:
            self.gpus[gpu_type] = self.gpus.get(gpu_type, 0) + sign * demand.gpus

    def fit(self, gpu_type: str | None) -> tuple[int, int]:
        """Return how well a task fits here, by best fit's measure: less is better."""
        return (sum(self.gpus.values()), self.cpus) if gpu_type is None else (self.gpus.get(gpu_type, 0), 0)


def rearrange(
    cluster: Cluster,
    gang: Sequence[Demand],
    placed: list[Assignment],
    barred: Collection[int] = (),
    *,
    emptiest: bool = False,
) -> list[Assignment]:
    """Return the places that a gang gets in the end, and book these instead of those it was given.

    `barred`: nodes, by number, on which nothing of it may be. `emptiest`: each task gets the emptiest node,
    the tasks of one gang different ones as far as there are such.
    """
    if emptiest:
        return _spread(cluster, gang, placed, barred, emptiest=True)
    if len(gang) < 2:
        return placed
    if any(demand.spread for demand in gang):
        return _spread(cluster, gang, placed, barred)
    nodes = {assignment.node for assignment in placed}
    if len(nodes) == 1:
        return placed
    found = _Nearer(cluster, gang, placed, barred).find()
    if found is None:
        return placed
    types = _types(cluster, placed)
    _release(cluster, gang, placed)
    moved = []
    for demand, assignment, gpu_type, node in zip(gang, placed, types, found, strict=True):
        moved.append(_book(cluster, node, demand, gpu_type, assignment))
    return moved


class _Nearer:
    """The search for one gang: what is free without it, and what best fit leaves."""

    def __init__(
        self,
        cluster: Cluster,
        gang: Sequence[Demand],
        placed: Sequence[Assignment],
        barred: Collection[int],
    ) -> None:
        self.cluster, self.gang, self.placed, self.barred = cluster, gang, placed, barred
        self.types = _types(cluster, placed)
        self.order = hardest_first(gang)
        #: the nodes that best fit chose, without what the gang has there
        self.own: dict[str, _Free] = {}
        for demand, assignment, gpu_type in zip(gang, placed, self.types, strict=True):
            if assignment.node not in self.own:
                self.own[assignment.node] = _free(cluster.uses[assignment.node])
            self.own[assignment.node].add(demand, gpu_type, 1)
        self.looks = _MOST_LOOKS

    def find(self) -> list[str] | None:
        """Return a node for each task; None: it stays as it is."""
        for group in self._groups():
            self.looks -= len(group) * len(self.gang)
            if self.looks < 0:
                return None
            chosen = self._fill([self._without_gang(name) for name in group])
            if chosen is not None:
                return chosen
        return None

    def _groups(self) -> Iterator[Sequence[str]]:
        """Return groups of nodes that may do, in the order in which they are tried."""
        gpus, cpus = sum(demand.gpus for demand in self.gang), sum(demand.cpus for demand in self.gang)
        for name, free in self.own.items():
            if sum(free.gpus.values()) >= gpus and free.cpus >= cpus:
                yield (name,)
        racks = self.cluster.racks
        if not racks:
            return
        here: Counter[str] = Counter()
        given_back: dict[str, list[int]] = defaultdict(lambda: [0, 0])
        for demand, assignment in zip(self.gang, self.placed, strict=True):
            name = self.cluster.uses[assignment.node].node.rack
            here[name] += 1
            given_back[name][0] += demand.gpus
            given_back[name][1] += demand.cpus
        if len(here) == 1 and "" not in here:
            return
        found = []
        for name, rack in racks.items():
            more = given_back.get(name, (0, 0))
            if rack.gpus + more[0] >= gpus and rack.cpus + more[1] >= cpus:
                found.append((-here[name], rack.gpus, rack.cpus, name))
        for *_, name in sorted(found):
            uses = map(self.cluster.uses.__getitem__, racks[name].nodes)
            yield [use.node.name for use in uses if use.node.ready and use.number not in self.barred]

    def _without_gang(self, name: str) -> _Free:
        own = self.own.get(name)
        return _free(self.cluster.uses[name]) if own is None else _copy(own)

    def _fill(self, group: Sequence[_Free]) -> list[str] | None:
        """Place the gang within a group of nodes, best fit; None: no room, or less is left for others."""
        chosen: dict[int, _Free] = {}
        for i in self.order:
            demand, gpu_type = self.gang[i], self.types[i]
            room = (free for free in group if free.has_room(demand, gpu_type))
            best = min(room, key=lambda free: free.fit(gpu_type), default=None)
            if best is None:
                return None
            best.add(demand, gpu_type, -1)
            chosen[i] = best
        after = {free.node: free for free in chosen.values()}
        nodes = after.keys() | self.own.keys()
        best_fit = self._left(_free(self.cluster.uses[name]) for name in nodes)
        nearer = self._left(after.get(name) or self.own[name] for name in nodes)
        if any(less < much for less, much in zip(nearer, best_fit, strict=True)):
            return None
        return [chosen[i].node for i in range(len(self.gang))]

    def _left(self, nodes: Iterable[_Free]) -> list[int]:
        """Count what is left for others; more of each is better."""
        nodes, counts = list(nodes), []
        largest = max(len(self.cluster.uses[free.node].node.gpus) for free in [*nodes, *self.own.values()])
        for gpu_type in {kind for kind in self.types if kind is not None}:
            free = [node.gpus.get(gpu_type, 0) for node in nodes]
            counts += [sum(n // size for n in free) for size in range(2, largest + 1)]
        if None in self.types:
            counts += [sum(node.cpus // size for node in nodes) for size in _CORES]
            beside = [(sum(node.gpus.values()), node.cpus) for node in nodes]
            counts += [sum(cpus for gpus, cpus in beside if gpus >= size) for size in range(1, largest + 1)]
        return counts


def _spread(
    cluster: Cluster,
    gang: Sequence[Demand],
    placed: list[Assignment],
    barred: Collection[int],
    *,
    emptiest: bool = False,
) -> list[Assignment]:
    """Give the tasks of each role nodes of their own as far as there are such; all that fits, fits still."""
    before = _different(gang, placed)
    if (before == len(gang) and not emptiest) or len(gang) > MOST_SPREAD:
        return placed
    types = _types(cluster, placed)
    _release(cluster, gang, placed)
    used: dict[str, set[str]] = defaultdict(set)
    found: dict[int, Assignment] = {}
    for i in hardest_first(gang):
        demand, gpu_type = gang[i], types[i]
        here = used[demand.spread]
        use = cluster.first_with_room(demand, gpu_type, here, barred, emptiest=emptiest)
        if use is None and here:
            # every node with room has one: another round
            here.clear()
            use = cluster.first_with_room(demand, gpu_type, here, barred, emptiest=emptiest)
        if use is None:
            break
        here.add(use.node.name)
        found[i] = _book(cluster, use.node.name, demand, gpu_type, placed[i])
    spread = [found[i] for i in sorted(found)]
    if len(spread) == len(gang) and _different(gang, spread) >= before:
        return spread
    for i, assignment in found.items():
        cluster.release(gang[i], assignment)
    for demand, assignment in zip(gang, placed, strict=True):
        cluster.occupy(demand, assignment)
    return placed


def _different(gang: Sequence[Demand], placed: Sequence[Assignment]) -> int:
    """Count the nodes of each role, all roles together."""
    return len({(demand.spread, place.node) for demand, place in zip(gang, placed, strict=True)})


def _types(cluster: Cluster, placed: Sequence[Assignment]) -> list[str | None]:
    return [cluster.uses[one.node].gpu_types[one.gpus[0]] if one.gpus else None for one in placed]


def _release(cluster: Cluster, gang: Sequence[Demand], placed: Sequence[Assignment]) -> None:
    for demand, assignment in zip(gang, placed, strict=True):
        cluster.release(demand, assignment)


def _book(
    cluster: Cluster, node: str, demand: Demand, gpu_type: str | None, instead_of: Assignment
) -> Assignment:
    """Book a node for a task, with the ports that it had on another (which are no node's own)."""
    gpus = cluster.uses[node].choose_gpus(gpu_type, demand.gpus)
    assignment = Assignment(node, gpus, instead_of.ports)
    cluster.occupy(demand, assignment)
    return assignment


def _free(use: FreeNodeResources) -> _Free:
    gpus = {gpu_type: len(free) for gpu_type, free in use.gpus.items()}
    return _Free(use.node.name, use.cpus, use.memory_mb, use.storage_gb, gpus)


def _copy(free: _Free) -> _Free:
    return _Free(free.node, free.cpus, free.memory_mb, free.storage_gb, dict(free.gpus))
