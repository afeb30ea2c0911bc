"""The scheduling cycle: who starts, who is stopped for whom, for whom resources are reserved.

A look at the queue has two rounds: first those who stay within the guaranteed share of their virtual cluster,
then those who may borrow. For a job within its guarantee that finds no room, the youngest borrowing jobs of
other virtual clusters are stopped: as many as are needed, none if all of them would not do. A job that was
overtaken too often, or for which others are being stopped, has a reservation: places are chosen where it
fits, and what becomes free there is kept for it (EASY backfilling, Lifka 1995, without known run times).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence, Set
from contextlib import ExitStack
from dataclasses import dataclass
from typing import NamedTuple

from sortedcontainers import SortedDict

from .locality import rearrange
from .placement import Cluster
from .preemption import Allowance, GangCount, JobHolding, PreemptionPlanner, SoonestPlanner
from .queue import ShapeQueue, Standing
from .queue_index import StartedJob
from .quota import Bound, QuotaViolation
from .reservations import Reservation, ReservedPlace
from .resources import ANY_GPU, Assignment, Demand, of_gang
from .scheduler_state import SchedulerState, Shape
from .sort_key import KeyedJob, level_of


@dataclass(frozen=True, slots=True)
class Start:
    """A job has its resources: one assignment per task, in the order of its gang."""

    job_id: str
    assignments: Sequence[Assignment]
    borrows: bool


@dataclass(frozen=True, slots=True)
class Preempt:
    """Jobs are to be stopped, for another's sake: borrowing ones, or ones of its own virtual cluster."""

    victims: Sequence[str]
    beneficiary: str


Decision = Start | Preempt


class _Plan(NamedTuple):
    """Planned places of a job's tasks, and the jobs that have to end for that."""

    places: Sequence[ReservedPlace]
    needed: Sequence[JobHolding]


#: Of which virtual cluster a job is, and how large.
_Size = tuple[str, Hashable]

#: For how many jobs of one size resources are kept at a time: what is kept stands idle until they start, and
#: those behind get theirs in turn.
MOST_RESERVATIONS = 4


class _FreedRoom:
    """Cache of the demands that fit on nodes with freed resources, valid as long as nothing changes there."""

    __slots__ = ("_as_of", "_cluster", "_freed", "_known")

    def __init__(self, cluster: Cluster, freed: Set[str]) -> None:
        self._cluster = cluster
        self._freed = freed
        self._as_of = -1, -1
        self._known: dict[Demand, bool] = {}

    def could_take(self, demand: Demand) -> bool:
        """Return whether one of the nodes alone has room for a task."""
        as_of = self._cluster.changes, len(self._freed)
        if as_of != self._as_of:
            self._as_of = as_of
            self._known.clear()
        known = self._known.get(demand)
        if known is None:
            freed = filter(None, map(self._cluster.uses.get, self._freed))
            known = self._known[demand] = any(use.could_take(demand) for use in freed)
        return known


class Dispatcher:
    """Makes the decisions, each of them once."""

    def __init__(self, state: SchedulerState) -> None:
        self.state = state
        # (these are the same as long as the state is; its cluster is not)
        self._queue, self._reservations = state.queue, state.reservations
        self._holdings, self._quota = state.holdings, state.quota_accounting
        #: what has started in this look
        self._started: list[StartedJob] = []
        #: lines of which the first job is due to have a reservation, and others of its size have theirs first
        self._turned_away: dict[_Size, SortedDict[KeyedJob, ShapeQueue[Shape]]] = {}

    def decide(self, now: int) -> list[Decision]:
        """Return what is to be done now, and take it as done: starts are booked, victims are ending."""
        decisions: list[Decision] = []
        self.state.now = now
        if self.state.barring:
            self._drop_those_barred()
        if not self.state.stirred and not self._queue.anything_open:
            return decisions
        self.state.cluster.allow_searches()
        again = True
        while again:
            again = self._look(now, decisions)
        self.state.settle()
        return decisions

    def _drop_those_barred(self) -> None:
        """Keep nothing where maintenance has come too near for whom it is kept: it may be kept elsewhere."""
        for reservation in self._reservations:
            barred = self.state.barred(self._queue.shape(reservation.job_id))
            if barred and any(self.state.cluster.uses[node].number in barred for node in reservation.nodes):
                self.state.drop_reservation(reservation.job_id)

    def _look(self, now: int, decisions: list[Decision]) -> bool:
        """Look through reservations and queue once; tell whether another look may find more."""
        self._started.clear()
        self._serve_reservations(now, decisions, within=True)
        self._reopen_after_reservations()
        with ExitStack() as borrowing:
            for job_id in self._queue.candidates(self.state.freed_rooms):
                self._first_round(job_id, now, decisions, borrowing)
        self._serve_reservations(now, decisions, within=False)
        for job_id in self._queue.deferred():
            self._second_round(job_id, now, decisions)
        for line in self._queue.overtook(self._started):
            self._reopen_due(line)
        return self._reopen_after_reservations() or self._queue.anything_open

    def _first_round(self, job_id: str, now: int, decisions: list[Decision], borrowing: ExitStack) -> None:
        """Try a job within its guarantee; `borrowing` takes others' reservations beyond theirs away."""
        shape = self._queue.shape(job_id)
        found = self._place(job_id, Bound.GUARANTEE)
        if found is None and (beyond := self.state.reservations_beyond()):
            borrowing.enter_context(self._reservations.suspended(self.state.cluster, beyond))
            found = self._place(job_id, Bound.GUARANTEE)
        if isinstance(found, list):
            self._start(job_id, found, now, decisions, borrows=False)
        elif isinstance(found, QuotaViolation):
            if shape.preemptible and found.user is None:
                self._queue.set(job_id, Standing.DEFERRED, within=False)
            elif not (
                self.state.stops_its_own(self.state.waiting[job_id].virtual_cluster)
                and self._preempt(job_id, decisions)
            ):
                self._give_way(job_id, Standing.OVER_LIMIT, within=False)
        elif shape.preemptible and ANY_GPU in shape.asked and self._is_limited(job_id):
            # there may be room on GPUs of a type of which the guarantee is used up: nobody is stopped then
            self._queue.set(job_id, Standing.DEFERRED, within=True)
        elif not self._preempt(job_id, decisions):
            # (as others of its virtual cluster start and end, it goes beyond its guarantee and comes back)
            standing = Standing.BLOCKED if self._is_limited(job_id) else Standing.NO_ROOM
            self._give_way(job_id, standing, within=True)

    def _second_round(self, job_id: str, now: int, decisions: list[Decision]) -> None:
        found = self._place(job_id, Bound.MAXIMUM)
        within = self._queue.is_within(job_id)
        if isinstance(found, list):
            self._start(job_id, found, now, decisions, borrows=True)
        elif not (
            self._preempt(job_id, decisions)
            if within
            else self.state.stops_its_own(self.state.waiting[job_id].virtual_cluster)
            and self._preempt(job_id, decisions, Bound.MAXIMUM)
        ):
            standing = Standing.OVER_LIMIT if isinstance(found, QuotaViolation) else Standing.BLOCKED
            self._give_way(job_id, standing, within=within)

    def _give_way(self, job_id: str, standing: Standing, *, within: bool) -> None:
        """A job cannot start: it is not tried again until something changes, or things are kept for it."""
        if not (self._is_due(job_id) and self._may_reserve(job_id) and self._reserve(job_id)):
            self._queue.set(job_id, standing, within=within)

    def _spreads(self, virtual_cluster: str) -> bool:
        known = self._quota.clusters.get(virtual_cluster)
        return known is not None and known.spreads

    def _is_limited(self, job_id: str) -> bool:
        return not self._quota.is_unlimited(self.state.waiting[job_id].virtual_cluster, Bound.GUARANTEE)

    def _start(
        self,
        job_id: str,
        assignments: list[Assignment],
        now: int,
        decisions: list[Decision],
        *,
        borrows: bool,
    ) -> None:
        self.state.version += 1
        waiting, shape = self.state.waiting.pop(job_id), self._queue.shape(job_id)
        sort_key = self._queue.sort_key(job_id)
        self._started.append(StartedJob(waiting.virtual_cluster, sort_key, not borrows))
        self._queue.remove(job_id)
        barred = self.state.barred(shape)
        best_fit, spreads = assignments, self._spreads(waiting.virtual_cluster)
        assignments = rearrange(self.state.cluster, shape.gang, assignments, barred, emptiest=spreads)
        if assignments is not best_fit:
            # also where only some of it has left
            for node in dict.fromkeys(assignment.node for assignment in best_fit):
                self._reservations.refresh(self.state.cluster, node)
        holding = JobHolding(job_id, waiting.user, waiting.virtual_cluster, shape.preemptible, now)
        self.state.begin(holding, zip(shape.gang, assignments, strict=True), now)
        decisions.append(Start(job_id, assignments, borrows))

    def _place(self, job_id: str, bound: Bound) -> list[Assignment] | QuotaViolation | None:
        """Place a waiting job (booked on the cluster only); else the limit it goes beyond, None: no room."""
        waiting = self.state.waiting[job_id]
        return self.state.try_to_place(
            waiting.user, waiting.virtual_cluster, self._queue.shape(job_id), bound
        )

    # -- what is kept for those who cannot start --------------------------------------------------------

    def _preempt(self, job_id: str, decisions: list[Decision], bound: Bound = Bound.GUARANTEE) -> bool:
        """Stop borrowing jobs of other virtual clusters for a job within its guarantee, where that helps.

        Before them those of its own virtual cluster that yield to it; beyond its guarantee only these.

        What is ending anyway comes first: where that will do, nobody else is stopped.
        """
        cluster = self.state.waiting[job_id].virtual_cluster
        borrowing = self.state.borrowing_elsewhere(cluster) if bound is Bound.GUARANTEE else []
        borrowing = [*self._yielding(job_id), *borrowing]
        ends = list(self._holdings.ending)
        if not borrowing and not any(holding.preempted for holding in ends):
            return False
        kept = self._reservations.within() if bound is Bound.GUARANTEE else list(self._reservations)
        plan = self._plan(job_id, bound, [*ends, *borrowing], kept)
        if plan is None:
            return False
        self._keep(job_id, plan)
        victims = [holding.job_id for holding in plan.needed if not holding.ending]
        for victim in victims:
            self.state.ending(victim)
            self._holdings[victim].preempted = True
        if victims:
            decisions.append(Preempt(victims, job_id))
        return True

    def _yielding(self, job_id: str) -> list[JobHolding]:
        """List whom a job of the same virtual cluster stops: the highest level first, the youngest."""
        name = self.state.waiting[job_id].virtual_cluster
        if not self.state.stops_its_own(name):
            return []
        sort_key = self._queue.sort_key(job_id)
        found = [
            (holding.yields, holding.since, holding)
            for holding in self._holdings.of_cluster(name)
            if not holding.ending and holding.yields is not None and sort_key.stops(holding.yields)
        ]
        found.sort(key=lambda entry: entry[:2], reverse=True)
        return [holding for _, _, holding in found]

    def _reserve(self, job_id: str) -> bool:
        """Keep resources for a job that was overtaken too often, wherever it will fit soonest."""
        waiting, shape = self.state.waiting[job_id], self._queue.shape(job_id)
        if self._is_hopeless(self._queue.line(job_id)):
            return False
        bound = Bound.MAXIMUM if shape.preemptible else Bound.GUARANTEE
        others = (
            []
            if self._quota.is_unlimited(waiting.virtual_cluster, Bound.GUARANTEE)
            else [one for one in self._reservations if one.virtual_cluster == waiting.virtual_cluster]
        )
        for reservation in others:
            self.state.unbook(reservation)
        try:
            plan = self._plan(job_id, bound, self._holdings.by_expected_end(), ())
        finally:
            for reservation in others:
                self.state.book(reservation)
        if plan is None:
            self.state.hopeless.add((waiting.virtual_cluster, shape))
            # it is the turn of another of this size
            self.state.reservations_ended.append((waiting.virtual_cluster, shape))
            return False
        # (with what the older ones will have: else it would come before one that takes the whole guarantee)
        self._keep(job_id, plan)
        return True

    def _plan(
        self, job_id: str, bound: Bound, ends: Sequence[JobHolding], kept: Sequence[Reservation]
    ) -> _Plan | None:
        """Find which of `ends` must end for a job to fit beside what is `kept`, and where."""
        waiting, shape = self.state.waiting[job_id], self._queue.shape(job_id)
        user, cluster = waiting.user, waiting.virtual_cluster
        targets: list[Assignment] = []
        if self._is_one_task(shape):
            return self._plan_one(job_id, bound, ends, kept)

        with (
            self.state.without_reservations(),
            self._reservations.resumed(self.state.cluster, kept) as resumed,
        ):

            def place() -> bool:
                resumed.keep()
                placed = self.state.try_to_place(user, cluster, shape, bound)
                if not isinstance(placed, list):
                    return False
                targets[:] = placed
                self.state.unplace(shape, placed)
                return True

            def look() -> bool:
                if self._quota.violation(cluster, user, shape.asked, bound) is not None:
                    return False
                if not counted:
                    return place()
                resumed.keep()
                if not counts:
                    counts.append(GangCount(self.state.cluster, shape.gang[0], len(shape.gang)))
                return counts[0].fits()

            def changing(nodes: Iterable[str]) -> None:
                if counts:
                    counts[0].changing(nodes)
                resumed.let_go(nodes)

            counted, counts = self._is_counted(cluster, shape, bound), list[GangCount]()
            planner = PreemptionPlanner(self.state.cluster, self._quota, changing)
            # (where it was placed to find out, the last look that succeeded was the one at what is needed)
            needed = planner.needed(look, ends, found=place if counted else None)
        if needed is None:
            return None
        pairs = zip(shape.gang, targets, strict=True)
        places = [ReservedPlace(demand, place.node, self._type_of(place)) for demand, place in pairs]
        return _Plan(places, needed)

    def _is_counted(self, cluster: str, shape: Shape, bound: Bound) -> bool:
        """Return whether counting tells for sure if a gang has room, so that it is placed once only."""
        unlimited = self._quota.gpu_room(cluster, bound) is None
        return unlimited and not self.state.barred(shape) and self.state.cluster.counts_exactly(shape.gang)

    def _is_one_task(self, shape: Shape) -> bool:
        """Return whether a job is a task that needs room on a node, and no other's port is in its way."""
        return len(shape.gang) == 1 and self.state.cluster.needs_room_only(shape.gang[0])

    def _plan_one(
        self, job_id: str, bound: Bound, ends: Sequence[JobHolding], kept: Sequence[Reservation]
    ) -> _Plan | None:
        """Do what `_plan` does for a job of one task, by counting."""
        waiting, shape = self.state.waiting[job_id], self._queue.shape(job_id)
        cluster, allowance = waiting.virtual_cluster, None
        if not self._quota.is_unlimited(cluster, bound):
            allowance = Allowance(self._quota, cluster, waiting.user, shape.asked, bound)
        planner = SoonestPlanner(
            self.state.cluster,
            self._reservations.kept(),
            shape.gang[0],
            kept,
            allowance,
            self.state.barred(shape),
        )
        found = planner.find(ends)
        if found is None:
            return None
        return _Plan([ReservedPlace(shape.gang[0], found.node, found.gpu_type)], found.needed)

    def _keep(self, job_id: str, plan: _Plan) -> None:
        """Keep places for a job, which awaits the end of those that hold them."""
        user, cluster = self.state.whose(job_id)
        amounts = of_gang([place.typed_demand for place in plan.places])
        reservation = Reservation(
            job_id,
            user,
            cluster,
            plan.places,
            amounts,
            frozenset(holding.job_id for holding in plan.needed),
            self._quota.violation(cluster, user, amounts, Bound.GUARANTEE) is None,
            self._queue.shape(job_id).size,
        )
        self.state.version += 1
        self.state.book(reservation)
        self._reservations.add(self.state.cluster, reservation)
        self._queue.set_aside(job_id)

    def _serve_reservations(self, now: int, decisions: list[Decision], *, within: bool) -> None:
        """Start the jobs with reservations that fit by now."""
        if not self.state.stirred:
            return
        freed = _FreedRoom(self.state.cluster, self.state.freed_nodes)
        for reservation in self._reservations.within() if within else self._reservations.beyond():
            if self._is_worth_serving(reservation, freed):
                self._serve(reservation, now, decisions)

    def _is_worth_serving(self, reservation: Reservation, freed: _FreedRoom) -> bool:
        """Return whether what became free may matter to a reservation."""
        if self.state.stirred_all or reservation.is_complete or not self._awaits_any(reservation):
            return True
        if reservation.beyond_limit:
            return reservation.virtual_cluster in self.state.freed_clusters
        if len(reservation.targets) > 1 and not self.state.freed_nodes.isdisjoint(reservation.kept):
            # what became free there is booked for it by now; with what is free elsewhere it may do
            return True
        return any(map(freed.could_take, reservation.demands))

    def _serve(self, reservation: Reservation, now: int, decisions: list[Decision]) -> None:
        """Start a job that has a reservation, or try it as any other where that is of no use.

        No later reservation is in its way: on the nodes of its places it comes first, and the shares that
        those behind will take are not counted.
        """
        job_id = reservation.job_id
        order = list(self._reservations)
        place = order.index(reservation)
        cluster = reservation.virtual_cluster
        behind = []
        if not self._quota.is_unlimited(cluster, Bound.GUARANTEE):
            behind = [other for other in order[place:] if other.virtual_cluster == cluster]
        for other in behind:
            self.state.unbook(other)
        found, bound = self._place_reserved(reservation)
        for other in behind:
            self.state.book(other)
        reservation.beyond_limit = isinstance(found, QuotaViolation)
        if isinstance(found, list):
            self.state.unbook(reservation)
            shape = self._queue.shape(job_id)
            self._start(job_id, found, now, decisions, borrows=bound is Bound.MAXIMUM)
            self.state.reservation_ended(reservation, shape)
        elif not place and not self._awaits_any(reservation):
            self.state.drop_reservation(job_id)

    def _awaits_any(self, reservation: Reservation) -> bool:
        return self._holdings.has_any(reservation.awaits)

    def _place_reserved(
        self, reservation: Reservation
    ) -> tuple[list[Assignment] | QuotaViolation | None, Bound]:
        """Place a job as if nothing were kept for it, within its guarantee, else beyond; see `_place`.

        Where it has room, nothing is kept for it any more.
        """
        user, cluster = reservation.user, reservation.virtual_cluster
        shape, found = self._queue.shape(reservation.job_id), None
        unlimited = self._quota.is_unlimited(cluster, Bound.GUARANTEE)
        # (who has no guarantee to stay within has no more room beyond it)
        bounds = (
            (Bound.GUARANTEE, Bound.MAXIMUM) if shape.preemptible and not unlimited else (Bound.GUARANTEE,)
        )
        for bound in bounds:
            found = self._quota.violation(cluster, user, shape.asked, bound)
            room = self._quota.gpu_room(cluster, bound)
            if found is None and self.state.cluster.may_hold(
                shape.gang, room, reservation.kept, reservation.counted
            ):
                with self._reservations.suspended(self.state.cluster, [reservation]):
                    placed = self.state.cluster.place(shape.gang, room, barred=self.state.barred(shape))
                    if placed is not None:
                        self._reservations.pop(self.state.cluster, reservation.job_id)
                if placed is not None:
                    return placed, bound
        return found, bound

    def _is_due(self, job_id: str) -> bool:
        """Return whether a job was overtaken too often, and nothing is kept yet for anybody in its line."""
        return (
            not self._queue.has_reservation(job_id)
            and self._queue.overtaken(job_id) >= self.state.overtake_limit
            and not self._awaits_promotion(job_id)
        )

    def _awaits_promotion(self, job_id: str) -> bool:
        """Return whether service decides, and a job does not come first, nor is in the lowest level.

        It stops those who come after it. What is kept for it would stand idle, or keep out those who come
        before it. When it has waited for so long that it comes first, things are kept for it too.
        """
        stops = self.state.stops_its_own(self.state.waiting[job_id].virtual_cluster)
        return stops and level_of(self._queue.sort_key(job_id).policy) > 0

    def _may_reserve(self, job_id: str) -> bool:
        """Return whether it is a job's turn; else its line is noted."""
        line = self._queue.line(job_id)
        size = line.virtual_cluster, line.shape.size
        if self._turns_left(size):
            return True
        if size not in self._turned_away:
            self._turned_away[size] = SortedDict()
        self._turned_away[size][line.head] = line
        return False

    def _turns_left(self, size: _Size) -> int:
        """Count for how many jobs of a size something may be kept beside those for which it is."""
        return max(0, MOST_RESERVATIONS - self._reservations.of_size(*size))

    def _reopen_due(self, line: ShapeQueue[Shape]) -> None:
        """The first of a line was overtaken too often: try it again, where something can be kept for it."""
        job_id = line.head[1]
        if not (self._is_hopeless(line) or self._awaits_promotion(job_id)) and self._may_reserve(job_id):
            self._queue.reopen_line(line.virtual_cluster, line.shape)

    def _reopen_after_reservations(self) -> bool:
        """Open who may have what was kept for others, or may have something kept; tell if that may be."""
        ended = list(dict.fromkeys(self.state.reservations_ended))
        self.state.reservations_ended.clear()
        for virtual_cluster, shape in ended:
            self.state.reopen(virtual_cluster)
            self._queue.reopen_line(virtual_cluster, shape)
            size = virtual_cluster, shape.size
            turned_away = self._turned_away.get(size, {})
            left = self._turns_left(size)
            while left and turned_away:
                position, line = turned_away.popitem(0)
                # (whoever is first by now is noted too, if it is due)
                if line.members and line.head == position and not self._is_hopeless(line):
                    self._queue.reopen_line(virtual_cluster, line.shape)
                    left -= 1
        return bool(ended)

    def _is_hopeless(self, line: ShapeQueue[Shape]) -> bool:
        return (line.virtual_cluster, line.shape) in self.state.hopeless

    def _type_of(self, place: Assignment) -> str | None:
        if not place.gpus:
            return None
        return self.state.cluster.uses[place.node].gpu_types[place.gpus[0]]
