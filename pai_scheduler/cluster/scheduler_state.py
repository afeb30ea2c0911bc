"""The scheduling state: queue, allocations and reservations, and questions to them.

A job is a gang here. Whatever changes is told by its method; `dispatcher.py` decides what follows.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

import msgspec

from .allocations import Borrowing, Holdings
from .definition import DEFAULT_MAINTENANCE_NOTICE_SECONDS, DEFAULT_OVERTAKE_LIMIT, VirtualCluster
from .fair_share import UsageAccounting, weight
from .node import Barring, Node
from .placement import Cluster
from .preemption import JobHolding, PreemptionPlanner
from .queue import Queue
from .queue_index import FreeRoom
from .quota import Bound, QuotaAccounting, QuotaViolation
from .reservations import Reservation, Reservations
from .resources import Amounts, Assignment, Demand, of_gang, of_task
from .sort_key import KeyedJob, SortKey


@dataclass(frozen=True, slots=True)
class Shape:
    """Resources that a job asks for, and the limits that apply to it.

    `user`: whose quota or key counts; None where there is none.

    `run_ms`: its time limit, where maintenance is planned; None: it has none, or nothing is planned.
    `size` is the same for jobs of about the same size: the same GPUs, less than twice the cores and memory.
    """

    gang: tuple[Demand, ...]
    preemptible: bool
    user: str | None
    asked: Amounts = field(compare=False, hash=False)
    size: Hashable = field(compare=False, hash=False)
    run_ms: int | None = None
    #: what `__hash__` gives: a gang may be long
    _hash: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Hash it, once."""
        object.__setattr__(self, "_hash", hash((self.gang, self.preemptible, self.user, self.run_ms)))

    def __hash__(self) -> int:
        return self._hash


class Waiting(msgspec.Struct, frozen=True, gc=False):
    """Whose a waiting job is, and for how long it may run; None: without a limit."""

    user: str
    virtual_cluster: str
    run_ms: int | None


class SchedulerState:
    """The cluster, its shares, the queue, and what every job holds or has a reservation on.

    Memory is kept for waiting and holding jobs only. Times are ms since the epoch and only compared.
    """

    def __init__(
        self,
        cluster: Cluster,
        clusters: Iterable[VirtualCluster],
        overtake_limit: int = DEFAULT_OVERTAKE_LIMIT,
        maintenance_notice_ms: int = 1000 * DEFAULT_MAINTENANCE_NOTICE_SECONDS,
    ) -> None:
        self.cluster = cluster
        clusters = tuple(clusters)
        self.quota_accounting = QuotaAccounting(cluster.nodes, clusters)
        #: what users have used, where they share by that
        self.usage = UsageAccounting(clusters)
        self.overtake_limit = overtake_limit
        self.queue: Queue[Shape] = Queue(lambda shape: set(shape.gang), overtake_limit)
        self.holdings = Holdings()
        self.reservations = Reservations()
        self._borrowing = Borrowing()
        self.waiting: dict[str, Waiting] = {}
        self._nodes: Mapping[str, Node] = {node.name: node for node in cluster.nodes}
        #: the same nodes with nothing on them, made when somebody asks
        self._empty: Cluster | None = None
        #: where something became free since the last decisions: on which nodes, of whose shares
        self.freed_nodes: set[str] = set()
        #: what is free there, and as of when: how much had changed, and how many nodes they were
        self._rooms: tuple[tuple[Cluster, int, int], list[FreeRoom]] | None = None
        self.freed_clusters: set[str] = set()
        #: something has changed for the jobs that have reservations: there, or anywhere
        self.stirred = self.stirred_all = False
        #: of which virtual clusters and shapes the jobs are for which nothing is kept any more
        self.reservations_ended: list[tuple[str, Shape]] = []
        #: counts what changes the answer to what would start: what is free, who waits, what ends when
        self.version = 0
        #: what does not fit even when everything has ended, as long as nodes and shares stay as they are
        self.hopeless: set[tuple[str, Shape]] = set()
        #: which time it is: maintenance that is near keeps jobs away
        self.now = 0
        self._notice_ms = maintenance_notice_ms
        self.barring = self._make_barring()

    # -- what happens -----------------------------------------------------------------------------------

    def wait(
        self,
        job_id: str,
        user: str,
        virtual_cluster: str,
        gang: Sequence[Demand],
        sort_key: SortKey,
        *,
        preemptible: bool = True,
        overtaken: int = 0,
        run_ms: int | None = None,
    ) -> None:
        """Put a job in line. `run_ms`: its time limit; None: it has none."""
        self.version += 1
        self.waiting[job_id] = Waiting(user, virtual_cluster, run_ms)
        shape = self.shape(user, virtual_cluster, gang, preemptible, run_ms)
        self._line_up(job_id, shape, sort_key, overtaken)
        if self.stops_its_own(virtual_cluster):
            # (others of its shape may be of higher levels, for which nobody is stopped)
            self.queue.reopen_line(virtual_cluster, shape)

    def wait_many(
        self,
        user: str,
        virtual_cluster: str,
        gang: Sequence[Demand],
        jobs: Sequence[KeyedJob],
        *,
        preemptible: bool,
        overtaken: Mapping[str, int],
        run_ms: int | None,
    ) -> None:
        """Do what `wait` does for jobs of a user that ask for the same: at a start there may be a million.

        `overtaken`: how often that happened to those to whom it did.
        """
        self.version += 1
        self.waiting.update(
            dict.fromkeys((job_id for _, job_id in jobs), Waiting(user, virtual_cluster, run_ms))
        )
        shape = self.shape(user, virtual_cluster, gang, preemptible, run_ms)
        sharer = user if self.usage.shares(virtual_cluster) else None
        self.queue.add_many(virtual_cluster, shape, jobs, overtaken, sharer)
        if self.stops_its_own(virtual_cluster):
            self.queue.reopen_line(virtual_cluster, shape)

    def yields(self, job_id: str, to: SortKey | None) -> None:
        """Know that a job is stopped for those whose sort key stops this one; None: for nobody."""
        holding = self.holdings.get(job_id)
        if holding is not None and holding.yields != to:
            self.version += 1
            holding.yields = to
            name = holding.virtual_cluster
            self.queue.reopen(lambda line: line.virtual_cluster == name)
            if to is None or holding.ending:
                return
            # who awaits its end by a reservation need not any longer, where it may stop it by now
            for reservation in list(self.reservations):
                waits = reservation.virtual_cluster == name and job_id in reservation.awaits
                if waits and self.queue.sort_key(reservation.job_id).stops(to):
                    self.drop_reservation(reservation.job_id)

    def settle(self) -> None:
        """Take all changes as looked at: who cannot start now cannot before the next."""
        self.stirred = self.stirred_all = False
        self.freed_nodes.clear()
        self._rooms = None
        self.freed_clusters.clear()

    def stops_its_own(self, virtual_cluster: str) -> bool:
        """Return whether jobs of a virtual cluster may stop others of it, as service decides."""
        cluster = self.quota_accounting.clusters.get(virtual_cluster)
        return cluster is not None and cluster.service_order is not None

    def leave(self, job_id: str) -> None:
        """Take a job out of line, where it is."""
        if self.waiting.pop(job_id, None) is None:
            return
        self.version += 1
        self.drop_reservation(job_id)
        self.queue.remove(job_id)

    def resort(self, job_id: str, sort_key: SortKey) -> None:
        """Give a waiting job another sort key."""
        self.version += 1
        shape = self.queue.shape(job_id)
        overtaken = self.queue.overtaken(job_id)
        self.drop_reservation(job_id)
        self.queue.remove(job_id)
        self._line_up(job_id, shape, sort_key, overtaken)
        self.queue.reopen()

    def _line_up(self, job_id: str, shape: Shape, sort_key: SortKey, overtaken: int) -> None:
        waiting = self.waiting[job_id]
        shares = self.usage.shares(waiting.virtual_cluster)
        user = waiting.user if shares else None
        self.queue.add(job_id, waiting.virtual_cluster, shape, sort_key, overtaken, user)

    def follow_usage(self, now: int) -> None:
        """Before decisions: sort users by what they have used by now."""
        for (virtual_cluster, user), user_key in self.usage.user_keys(now):
            if self.queue.set_user_key(virtual_cluster, user, user_key):
                self.version += 1

    def begin(self, holding: JobHolding, tasks: Iterable[tuple[Demand, Assignment]], now: int) -> None:
        """Book a job that starts, but for its room, which is taken: its user has used more."""
        for place, (demand, assignment) in enumerate(tasks):
            amounts = of_task(demand, assignment, self._nodes)
            holding.tasks[place] = (demand, assignment, amounts)
            self.quota_accounting.book(holding.virtual_cluster, holding.user, amounts)
        self._add(holding)
        sharer = holding.virtual_cluster, holding.user
        self.usage.took(sharer, sum(weight(demand) for demand, _, _ in holding.tasks.values()), now)
        if self.usage.shares(holding.virtual_cluster):
            self.queue.set_user_key(*sharer, self.usage.user_key(sharer, now))

    def hold(
        self,
        job_id: str,
        user: str,
        virtual_cluster: str,
        tasks: Mapping[int, tuple[Demand, Assignment]],
        since: int,
        *,
        preemptible: bool = True,
        ending: bool = False,
        preempted: bool = False,
    ) -> None:
        """Book what a job holds already; `tasks` by their place in its gang."""
        self.version += 1
        holding = JobHolding(
            job_id, user, virtual_cluster, preemptible, since, ending=ending, preempted=preempted
        )
        for place, (demand, assignment) in tasks.items():
            holding.tasks[place] = (demand, assignment, of_task(demand, assignment, self._nodes))
            self.cluster.occupy(demand, assignment)
            self.quota_accounting.book(virtual_cluster, user, holding.tasks[place][2])
            self.usage.book((virtual_cluster, user), weight(demand))
        if holding.tasks:
            self._add(holding)

    def release(self, job_id: str, place: int, now: int = 0) -> None:
        """A task of a job is over: what it held is free. `now` counts where users share by what they use."""
        self.version += 1
        holding = self.holdings[job_id]
        demand, assignment, amounts = holding.tasks.pop(place)
        self.cluster.release(demand, assignment)
        self.quota_accounting.unbook(holding.virtual_cluster, holding.user, amounts)
        self.usage.took((holding.virtual_cluster, holding.user), -weight(demand), now)
        self._borrowing.change(holding, self._guarantee(holding.virtual_cluster))
        if not holding.tasks:
            self.holdings.remove(job_id)
        self.stirred = True
        self.freed_nodes.add(assignment.node)
        self.freed_clusters.add(holding.virtual_cluster)
        self.reopen(holding.virtual_cluster)
        self.reservations.refresh(self.cluster, assignment.node)

    def reopen(self, virtual_cluster: str) -> None:
        """Less counts against a virtual cluster's limits, and something is free: open who may start now.

        Who waits for room only is found by what is free on the nodes that are noted.
        """
        self.queue.reopen_limited(virtual_cluster)
        quota = self.quota_accounting
        if any(quota.is_over_guarantee(name) for name in self.holdings.virtual_clusters):
            # with what is free, and what borrowing jobs hold beside it, there may be room
            self.queue.reopen(lambda line: line.within)
        if self.cluster.shares_host_ports:
            self.queue.reopen(lambda line: any(demand.has_fixed_ports for demand in line.demands))

    def give_other_ports(self, job_id: str, taken: Collection[int]) -> dict[int, Assignment] | None:
        """Other programs have those ports: choose others for a job's tasks, where these had chosen ones.

        Gives what changed, by the tasks' places in the gang; None where too few ports are left.
        """
        changed: dict[int, Assignment] = {}
        tasks = self.holdings[job_id].tasks
        for place, (demand, assignment, amounts) in tasks.items():
            if not any(port in taken for ports in assignment.ports.values() for port in ports):
                continue
            other = self.cluster.give_other_ports(demand, assignment, taken)
            if other is None:
                return None
            if other != assignment:
                tasks[place] = demand, other, amounts
                changed[place] = other
        return changed

    def ending(self, job_id: str, until: int | None = None) -> None:
        """Know that a job's tasks are being stopped, and will have ended at `until` (ms) at the latest."""
        holding = self.holdings.get(job_id)
        if holding is not None:
            self.version += 1
            self.holdings.end(holding, until)
            self._borrowing.change(holding, self._guarantee(holding.virtual_cluster))

    def expect(self, job_id: str, end: int | None) -> None:
        """Know by when a job will have ended at the latest; None: nobody knows."""
        holding = self.holdings.get(job_id)
        if holding is not None:
            self.version += 1
            self.holdings.expect(holding, end)

    def set_nodes(self, nodes: Sequence[Node]) -> None:
        """Nodes came, went, or changed."""
        self._drop_reservations()
        self.cluster, self._empty = self.cluster.emptied(nodes), None
        self._nodes = {node.name: node for node in nodes}
        for holding in self.holdings.values():
            for demand, assignment, _ in holding.tasks.values():
                self.cluster.occupy(demand, assignment)
        self.quota_accounting.set_nodes(nodes)
        planned, self.barring = bool(self.barring), self._make_barring()
        if planned or self.barring:
            self._reshape()
        self._start_over()

    def set_clusters(self, clusters: Iterable[VirtualCluster], now: int = 0) -> None:
        """Shares or quotas changed, at `now`."""
        clusters = tuple(clusters)
        self.quota_accounting.set_clusters(clusters)
        self.usage.set_clusters(clusters, now)
        self._reshape()
        self._start_over()

    def _reshape(self) -> None:
        """Put each job in the line where it belongs, as the criteria for equal jobs may have changed."""
        for job_id, waiting in self.waiting.items():
            # a quota, or fair share, make lines of their own for each user, maintenance for each time limit
            shape, sort_key, overtaken = (
                self.queue.shape(job_id),
                self.queue.own_sort_key(job_id),
                self.queue.overtaken(job_id),
            )
            new = self.shape(
                waiting.user, waiting.virtual_cluster, shape.gang, shape.preemptible, waiting.run_ms
            )
            shares = self.usage.shares(waiting.virtual_cluster)
            if new != shape or shares is not (self.queue.line(job_id).user is not None):
                self.drop_reservation(job_id)
                self.queue.remove(job_id)
                self._line_up(job_id, new, sort_key, overtaken)

    def _make_barring(self) -> Barring:
        uses = self.cluster.uses.values()
        planned = ((use.number, use.node.maintenance) for use in uses if use.node.maintenance)
        return Barring(planned, self._notice_ms)

    # -- questions --------------------------------------------------------------------------------------

    def whose(self, job_id: str) -> tuple[str, str]:
        """Return the user and the virtual cluster of a waiting job."""
        waiting = self.waiting[job_id]
        return waiting.user, waiting.virtual_cluster

    def fits(
        self, user: str, cluster: str, shape: Shape, bound: Bound, *, beside_reservations: bool = True
    ) -> QuotaViolation | bool:
        """Return whether a gang fits now, beside what is kept for others; else the limit it goes beyond."""
        out = (
            self.reservations
            if not beside_reservations
            else self.reservations_beyond()
            if bound is Bound.GUARANTEE
            else ()
        )
        with self.reservations.suspended(self.cluster, out):
            placed = self.try_to_place(user, cluster, shape, bound)
            if isinstance(placed, list):
                self.unplace(shape, placed)
        return placed if isinstance(placed, QuotaViolation) else placed is not None

    def barred(self, shape: Shape, now: int | None = None) -> frozenset[int]:
        """Return the nodes, by number, on which maintenance comes too soon for a job of this shape.

        `now` (ms since the epoch): when it would start; None: at the time that is known.
        """
        return self.barring.numbers(self.now if now is None else now, shape.run_ms)

    def ever_fits(self, cluster: str, shape: Shape, bound: Bound) -> bool:
        """Return whether a gang would fit if nobody held anything."""
        room = self.quota_accounting.gpu_room(cluster, bound, empty=True)
        if self._empty is None:
            self._empty = self.cluster.emptied()
        self._empty.allow_searches()
        placed = self._empty.place(shape.gang, room)
        for demand, assignment in zip(shape.gang, placed or (), strict=False):
            self._empty.release(demand, assignment)
        return placed is not None

    @contextmanager
    def without_reservation(self, job_id: str | None) -> Iterator[None]:
        """Look at things as if nothing were kept for a job itself, nor for those behind it."""
        reservations = list(self.reservations)
        place = next(
            (i for i, reservation in enumerate(reservations) if reservation.job_id == job_id),
            len(reservations),
        )
        behind = reservations[place:]
        for reservation in behind:
            self.unbook(reservation)
        try:
            with self.reservations.suspended(self.cluster, behind):
                yield
        finally:
            for reservation in behind:
                self.book(reservation)

    @contextmanager
    def without_reservations(self) -> Iterator[None]:
        """Look at what is really free, kept or not."""
        with self.reservations.suspended(self.cluster, self.reservations):
            yield

    def awaits(self, job_id: str) -> list[JobHolding] | None:
        """Return the jobs that have to end before a waiting one fits; None: it would not fit even then.

        Of all possibilities the one that is expected first; what is kept for others is not looked at.
        """
        reservation = self.reservations.get(job_id)
        if reservation is not None:
            return [self.holdings[other] for other in sorted(reservation.awaits) if other in self.holdings]
        user, cluster = self.whose(job_id)
        shape = self.queue.shape(job_id)
        bound = Bound.MAXIMUM if shape.preemptible else Bound.GUARANTEE

        def look() -> bool:
            return self.fits(user, cluster, shape, bound, beside_reservations=False) is True

        with self.without_reservations():
            return PreemptionPlanner(self.cluster, self.quota_accounting).needed(
                look, self.holdings.by_expected_end()
            )

    def borrowing_elsewhere(self, cluster: str) -> list[JobHolding]:
        """List the jobs of all other virtual clusters that borrow, youngest first."""
        found = [
            holding
            for name in self.holdings.virtual_clusters
            if name != cluster and self.quota_accounting.is_over_guarantee(name)
            for holding in self.borrowing(name)
        ]
        # (the id only makes the order of equals the same every time)
        return sorted(found, key=lambda holding: (-holding.since, holding.job_id))

    def would_preempt(self, user: str, cluster: str, shape: Shape) -> list[JobHolding]:
        """List the jobs whose end a gang within its guarantee awaits, some of them stopped for it.

        Empty: that would not do, or nobody need be stopped.
        """

        def look() -> bool:
            return self.fits(user, cluster, shape, Bound.GUARANTEE) is True

        ends = [*self.holdings.ending, *self.borrowing_elsewhere(cluster)]
        needed = PreemptionPlanner(self.cluster, self.quota_accounting).needed(look, ends)
        return needed if needed and not all(holding.ending for holding in needed) else []

    def borrowing(self, cluster: str) -> list[JobHolding]:
        """List the jobs of a virtual cluster that hold what goes beyond its guarantee, oldest first.

        What must not be preempted counts first, then the older before the younger; ending ones do not count.
        """
        limits = self._guarantee(cluster)
        return [] if limits is None else self._borrowing.over(cluster, limits)

    # -- within -----------------------------------------------------------------------------------------

    def _add(self, holding: JobHolding) -> None:
        self.holdings.add(holding)
        self._borrowing.add(holding, self._guarantee(holding.virtual_cluster))

    def _guarantee(self, cluster: str) -> Amounts | None:
        return self.quota_accounting.limits(cluster, Bound.GUARANTEE)

    def shape(
        self,
        user: str,
        cluster: str,
        gang: Sequence[Demand],
        preemptible: bool,
        run_ms: int | None = None,
    ) -> Shape:
        """Return what makes jobs equal to the queue."""
        known = self.quota_accounting.clusters.get(cluster)
        limited = known is not None and (known.gpus_per_user is not None or known.fair_share_hours > 0)
        return _shape(tuple(gang), preemptible, user if limited else None, run_ms if self.barring else None)

    def try_to_place(
        self, user: str, cluster: str, shape: Shape, bound: Bound
    ) -> list[Assignment] | QuotaViolation | None:
        """Place a gang (booked on the cluster only); else the limit it goes beyond, None: no room."""
        violation = self.quota_accounting.violation(cluster, user, shape.asked, bound)
        if violation is not None:
            return violation
        room = self.quota_accounting.gpu_room(cluster, bound)
        return self.cluster.place(shape.gang, room, barred=self.barred(shape))

    def unplace(self, shape: Shape, placed: Sequence[Assignment]) -> None:
        """Take back what `try_to_place` has booked."""
        for demand, assignment in zip(shape.gang, placed, strict=True):
            self.cluster.release(demand, assignment)

    def book(self, reservation: Reservation) -> None:
        """Count a reservation as used of its virtual cluster's shares."""
        self.quota_accounting.book(reservation.virtual_cluster, reservation.user, reservation.amounts)

    def unbook(self, reservation: Reservation) -> None:
        """Do not count it any longer."""
        self.quota_accounting.unbook(reservation.virtual_cluster, reservation.user, reservation.amounts)

    def drop_reservation(self, job_id: str) -> bool:
        """Keep nothing for a job any longer; tell whether something was kept."""
        reservation = self.reservations.pop(self.cluster, job_id)
        if reservation is None:
            return False
        self.version += 1
        self.unbook(reservation)
        self.stirred = self.stirred_all = True
        self.queue.take_back(job_id)
        self.reservation_ended(reservation, self.queue.shape(job_id))
        return True

    def reservation_ended(self, reservation: Reservation, shape: Shape) -> None:
        """Record the end of a reservation: others may have its resources, as soon as that is looked at."""
        self.reservations_ended.append((reservation.virtual_cluster, shape))
        self.freed_nodes.update(reservation.nodes)

    def _drop_reservations(self) -> None:
        for reservation in self.reservations:
            self.drop_reservation(reservation.job_id)

    def reservations_beyond(self) -> list[Reservation]:
        """List what is kept for jobs beyond their guarantees, and not looked past now."""
        return [reservation for reservation in self.reservations.beyond() if not reservation.suspended]

    def freed_rooms(self) -> list[FreeRoom]:
        """Return what is free by now where something became free: also what those have who may have to wait.

        A job within its guarantee gets what is kept for one beyond its own.
        """
        as_of = self.cluster, self.cluster.changes, len(self.freed_nodes)
        if self._rooms is not None and self._rooms[0] == as_of:
            return self._rooms[1]
        rooms: list[FreeRoom] = []
        for name in self.freed_nodes:
            use = self.cluster.uses.get(name)
            if use is None or not use.node.ready:
                continue
            cpus, memory_mb, storage_gb = use.cpus, use.memory_mb, use.storage_gb
            gpus = {gpu_type: len(free) for gpu_type, free in use.gpus.items() if free}
            for part in self.reservations.kept_beyond(name):
                cpus, memory_mb, storage_gb = (
                    cpus + part.cpus,
                    memory_mb + part.memory_mb,
                    storage_gb + part.storage_gb,
                )
                if part.gpu_type is not None:
                    gpus[part.gpu_type] = gpus.get(part.gpu_type, 0) + part.gpus
            rooms.append(FreeRoom(cpus, memory_mb, storage_gb, gpus))
        self._rooms = as_of, rooms
        return rooms

    def _start_over(self) -> None:
        self.version += 1
        self.hopeless.clear()
        self._borrowing.forget()
        self._drop_reservations()
        self.stirred = self.stirred_all = True
        self.queue.reopen()


@lru_cache(maxsize=512)
def _shape(gang: tuple[Demand, ...], preemptible: bool, user: str | None, run_ms: int | None) -> Shape:
    return Shape(gang, preemptible, user, of_gang(gang), _size(gang), run_ms)


def _size(gang: Sequence[Demand]) -> Hashable:
    sizes = {(one.gpu_type, one.gpus, one.cpus.bit_length(), one.memory_mb.bit_length()) for one in gang}
    return len(gang), frozenset(sizes)
