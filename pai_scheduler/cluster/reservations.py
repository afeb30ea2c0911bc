"""Reservations for waiting jobs: a place is chosen, and what becomes free there is booked for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain

from .placement import Cluster, Counted
from .resources import Amounts, Assignment, Demand, fixed_ports


@dataclass(frozen=True, slots=True)
class ReservedPlace:
    """Node reserved for a task of a waiting job, and the type of its GPUs."""

    demand: Demand
    node: str
    gpu_type: str | None

    @property
    def typed_demand(self) -> Demand:
        """Return what the task will have: of the type of GPU that was chosen."""
        return self.demand if self.gpu_type is None else replace(self.demand, gpu_type=self.gpu_type)


@dataclass(slots=True, eq=False)
class Reservation:
    """One waiting job's places. `within`: it stays within its guaranteed share.

    `awaits`: the jobs that have to end before it fits; `amounts`: what it will hold.
    """

    job_id: str
    user: str
    virtual_cluster: str
    targets: Sequence[ReservedPlace]
    amounts: Amounts
    awaits: frozenset[str]
    within: bool
    #: the same for jobs of about the same size
    size: Hashable = None
    #: each once, in the order of its tasks
    nodes: Sequence[str] = field(init=False)
    #: what its tasks ask for, each kind once
    demands: Collection[Demand] = field(init=False)
    #: what is booked for it right now, by node
    kept: dict[str, list[tuple[Demand, Assignment]]] = field(default_factory=dict)
    #: how many of its tasks more would have room where something is booked for it
    counted: Counted = field(default_factory=dict)
    #: nodes on which nothing is lacking any more
    complete: set[str] = field(default_factory=set)
    #: how many look at things as if it were not there
    suspended: int = 0
    #: it was tried, and its places were not what was lacking: a limit is in the way
    beyond_limit: bool = False

    @property
    def is_complete(self) -> bool:
        """Return whether all of its places are free."""
        return len(self.complete) == len(self.nodes)

    def __post_init__(self) -> None:
        """Note the nodes of its places, and what they are for."""
        self.nodes = list(dict.fromkeys(target.node for target in self.targets))
        self.demands = {target.demand for target in self.targets}


@dataclass(slots=True)
class _Suspended:
    """Resources kept on a node for suspended reservations.

    `settled`: all was kept there that could be, as of then; `changes`: the node's, after it was let go.
    """

    settled: int
    changes: int = 0
    parts: list[tuple[Reservation, list[tuple[Demand, Assignment]], bool]] = field(default_factory=list)


class Reservations:
    """All reservations: those that stay within a guarantee come first, then the older before the younger.

    What is free of their places is booked on the cluster; `refresh` a node where something became free.
    """

    def __init__(self) -> None:
        self._reservations: dict[str, Reservation] = {}
        #: those of them that stay within their guarantee, and those that go beyond it
        self._within: dict[str, Reservation] = {}
        self._beyond: dict[str, Reservation] = {}
        self._on_node: dict[str, dict[str, Reservation]] = {}
        #: all is kept on a node that can be, as of how often something had been given back there: what was
        #: taken since was not kept for anybody, and leaves the same to those for whom something is
        self._settled: dict[str, int] = {}
        #: how many there are for jobs of one size in a virtual cluster
        self._sizes: Counter[tuple[str, Hashable]] = Counter()

    def __len__(self) -> int:
        return len(self._reservations)

    def __iter__(self) -> Iterator[Reservation]:
        return iter([*self._within.values(), *self._beyond.values()])

    def __contains__(self, job_id: str) -> bool:
        return job_id in self._reservations

    def get(self, job_id: str) -> Reservation | None:
        """Find the reservation of a job."""
        return self._reservations.get(job_id)

    def of_size(self, virtual_cluster: str, size: Hashable) -> int:
        """Count those for the jobs of one size in a virtual cluster."""
        return self._sizes[virtual_cluster, size]

    def kept(self) -> Mapping[str, Sequence[tuple[Demand, Assignment]]]:
        """Return all that is booked for reservations, by node."""
        kept: dict[str, list[tuple[Demand, Assignment]]] = {}
        for reservation in self._reservations.values():
            for node, parts in reservation.kept.items():
                kept.setdefault(node, []).extend(parts)
        return kept

    def within(self) -> list[Reservation]:
        """List those that stay within their guarantee, the older before the younger."""
        return list(self._within.values())

    def beyond(self) -> list[Reservation]:
        """List those that go beyond their guarantee, the older before the younger."""
        return list(self._beyond.values())

    def kept_beyond(self, node: str) -> Iterator[Demand]:
        """Return what is booked on a node for those that go beyond their guarantee, by type of GPU."""
        for reservation in self._on_node.get(node, {}).values() if self._beyond else ():
            if not reservation.within:
                yield from (part for part, _ in reservation.kept.get(node, ()))

    def add(self, cluster: Cluster, reservation: Reservation) -> None:
        """Take a reservation, and book what is free of its places and not kept for those before it."""
        self._reservations[reservation.job_id] = reservation
        self._sizes[reservation.virtual_cluster, reservation.size] += 1
        (self._within if reservation.within else self._beyond)[reservation.job_id] = reservation
        for node in reservation.nodes:
            there = self._on_node.setdefault(node, {})
            last = not reservation.within or all(one.within for one in there.values())
            there[reservation.job_id] = reservation
            if last and self._is_settled(cluster, node):
                _keep(cluster, reservation, node)
            else:
                self.refresh(cluster, node)

    def pop(self, cluster: Cluster, job_id: str) -> Reservation | None:
        """Drop a reservation; what was booked for it may be kept for others."""
        reservation = self._reservations.pop(job_id, None)
        if reservation is None:
            return None
        (self._within if reservation.within else self._beyond).pop(job_id, None)
        size = reservation.virtual_cluster, reservation.size
        self._sizes[size] -= 1
        if not self._sizes[size]:
            del self._sizes[size]
        for node in reservation.nodes:
            settled = self._is_settled(cluster, node)
            _let_go(cluster, reservation, node)
            del self._on_node[node][job_id]
            if not self._on_node[node]:
                del self._on_node[node]
                self._settled.pop(node, None)
            # (where nothing was kept for it, nothing more is for the others)
            if not (settled and self._is_settled(cluster, node)):
                self.refresh(cluster, node)
        return reservation

    def _is_settled(self, cluster: Cluster, node: str) -> bool:
        """Return whether all is kept on a node that can be, were those that are suspended not there."""
        use = cluster.uses.get(node)
        return use is not None and not cluster.shares_host_ports and self._settled.get(node) == use.returns

    def refresh(self, cluster: Cluster, node: str) -> None:
        """Book what is free on a node for those who have places there, first come first.

        Where all nodes are one machine, a port that is free is free for those on other nodes too.
        """
        if not cluster.shares_host_ports:
            if node in self._on_node:
                self._refresh_one(cluster, node)
            return
        there = {name: _ordered(reservations.values()) for name, reservations in self._on_node.items()}
        for name, reservations in there.items():
            for reservation in reservations:
                _let_go(cluster, reservation, name)
        for name, reservations in there.items():
            for reservation in reservations:
                if not reservation.suspended:
                    _keep(cluster, reservation, name)

    def _refresh_one(self, cluster: Cluster, node: str) -> None:
        """Book what is free on a node where no other's ports are in the way."""
        reservations = _ordered(self._on_node[node].values())
        suspended = False
        for reservation in reservations:
            _let_go(cluster, reservation, node)
        for reservation in reservations:
            if reservation.suspended:
                suspended = True
            else:
                _keep(cluster, reservation, node)
        use = cluster.uses.get(node)
        if suspended or use is None:
            self._settled.pop(node, None)
        else:
            self._settled[node] = use.returns

    @contextmanager
    def suspended(self, cluster: Cluster, some: Iterable[Reservation]) -> Iterator[None]:
        """Look at things as if nothing were kept for some; they keep their places in the order."""
        some = list(some)
        before = self._suspend(cluster, some)
        try:
            yield
        finally:
            for reservation in some:
                reservation.suspended -= 1
            nodes = (one.nodes for one in some if one.job_id in self._reservations)
            for node in dict.fromkeys(chain.from_iterable(nodes)):
                known = before.get(node)
                if known is None or not self._put_back(cluster, node, known):
                    self.refresh(cluster, node)

    def _suspend(self, cluster: Cluster, some: Sequence[Reservation]) -> dict[str, _Suspended]:
        """Let go what is kept for some; return by node, where all was kept that could be, what that was."""
        before: dict[str, _Suspended] = {}
        for reservation in some:
            reservation.suspended += 1
            for node, parts in list(reservation.kept.items()):
                use = cluster.uses[node]
                known = before.get(node)
                if known is None and self._is_settled(cluster, node):
                    known = before[node] = _Suspended(use.returns)
                complete = node in reservation.complete
                _let_go(cluster, reservation, node)
                if known is not None:
                    known.parts.append((reservation, parts, complete))
                    known.changes = use.changes
        return before

    def _put_back(self, cluster: Cluster, node: str, known: _Suspended) -> bool:
        """Keep the same as before where nothing else has changed: to look anew would find that."""
        use = cluster.uses.get(node)
        if use is None or use.changes != known.changes or self._settled.get(node) != known.settled:
            return False
        if any(one.suspended or one.job_id not in self._reservations for one, _, _ in known.parts):
            return False
        for reservation, parts, complete in known.parts:
            for part, assignment in parts:
                cluster.occupy(part, assignment)
            reservation.kept[node] = parts
            if complete:
                reservation.complete.add(node)
        self._settled[node] = use.returns
        return True

    @contextmanager
    def resumed(self, cluster: Cluster, some: Iterable[Reservation]) -> Iterator[Resumed]:
        """Within `suspended`: keep some things all the same, of what is free now."""
        resumed = Resumed(cluster, some)
        try:
            yield resumed
        finally:
            resumed.let_go_all()


class Resumed:
    """Resources kept for reservations while free resources of their nodes change: call `let_go` first."""

    def __init__(self, cluster: Cluster, some: Iterable[Reservation]) -> None:
        self._cluster = cluster
        self._some = list(some)
        self._on_node: dict[str, list[Reservation]] = {}
        for reservation in self._some:
            for node in reservation.nodes:
                self._on_node.setdefault(node, []).append(reservation)
        #: where nothing is kept at the moment
        self._open: dict[str, None] = dict.fromkeys(self._on_node)

    def keep(self) -> None:
        """Keep what is free where nothing is kept."""
        if self._cluster.shares_host_ports and self._open:
            # (a port that is kept on one node is on all: who comes first gets it)
            for reservation in self._some:
                for node in reservation.nodes:
                    _keep(self._cluster, reservation, node)
        else:
            for node in self._open:
                for reservation in self._on_node[node]:
                    _keep(self._cluster, reservation, node)
        self._open.clear()

    def let_go(self, nodes: Iterable[str]) -> None:
        """Keep nothing on some nodes until `keep`."""
        if self._cluster.shares_host_ports:
            nodes = self._on_node
        for node in nodes:
            if node in self._on_node and node not in self._open:
                for reservation in self._on_node[node]:
                    _let_go(self._cluster, reservation, node)
                self._open[node] = None

    def let_go_all(self) -> None:
        """Keep nothing any more."""
        self.let_go(self._on_node)


def _ordered(reservations: Collection[Reservation]) -> Collection[Reservation]:
    # (a dictionary keeps the order in which they came)
    if len(reservations) < 2:
        return reservations
    return [
        *(one for one in reservations if one.within),
        *(one for one in reservations if not one.within),
    ]


def _keep(cluster: Cluster, reservation: Reservation, node: str) -> None:
    use = cluster.uses.get(node)
    if use is None or not use.node.ready:
        return
    kept, complete = [], True
    for target in reservation.targets:
        if target.node != node:
            continue
        demand, gpu_type = target.demand, target.gpu_type
        gpus = tuple(use.gpus.get(gpu_type, ())[: demand.gpus]) if gpu_type else ()
        ports = [port for port in fixed_ports(demand.ports) if port not in use.ports] if demand.ports else []
        cpus, memory_mb, storage_gb = demand.cpus, demand.memory_mb, demand.storage_gb
        if cpus > use.cpus or memory_mb > use.memory_mb or storage_gb > use.storage_gb:
            complete = False
            cpus = max(0, min(cpus, use.cpus))
            memory_mb = max(0, min(memory_mb, use.memory_mb))
            storage_gb = max(0, min(storage_gb, use.storage_gb))
        if len(gpus) != demand.gpus or len(ports) != sum(1 for _ in fixed_ports(demand.ports)):
            complete = False
        if not (cpus or memory_mb or storage_gb or gpus or ports):
            # (nothing is free that could be booked)
            continue
        part = Demand(cpus, memory_mb, storage_gb, len(gpus), gpu_type)
        assignment = Assignment(node, gpus, {"": tuple(ports)} if ports else {})
        cluster.occupy(part, assignment)
        kept.append((part, assignment))
    reservation.kept[node] = kept
    if complete:
        reservation.complete.add(node)


def _let_go(cluster: Cluster, reservation: Reservation, node: str) -> None:
    for part, assignment in reservation.kept.pop(node, ()):
        cluster.release(part, assignment)
    reservation.complete.discard(node)
