"""Estimated start of a gang that came now: what runs and who comes first, simulated.

Who asks says for how long jobs run: by their limits, or by what such jobs took. A job of which nothing is
known is taken to run for ever, so that where it is in the way nothing is told. What others will submit, and
who will be stopped for whom, is not known: it is an estimate.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from operator import attrgetter

from .preemption import JobHolding
from .quota import Bound
from .reservations import Reservation
from .resources import Amounts, Assignment, Demand, of_task
from .scheduler_state import SchedulerState, Shape
from .sort_key import SortKey

#: A longer queue, or more looks at the cluster than this, and no number is worth the time that it takes.
MOST_AHEAD = 100
MOST_LOOKS = 2000
#: stands for the job that is asked about; no job has this id
_ITSELF = ""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """A job that waits. `run_ms`: how long it will run; None: who knows. `job_id` None: not in line yet."""

    job_id: str | None
    user: str
    virtual_cluster: str
    shape: Shape
    run_ms: int | None


@dataclass(slots=True)
class _Held:
    """Resources booked for a job: one that really runs (`real`), or one that was placed in the simulation."""

    user: str
    virtual_cluster: str
    tasks: Sequence[tuple[Demand, Assignment, Amounts]]
    real: bool
    lifted: bool = False


@dataclass(slots=True)
class _Play:
    state: SchedulerState
    now: int
    waiting: list[_Candidate]
    #: (ms, a number that makes them comparable, what ends then)
    ends: list[tuple[int, int, _Held]] = field(default_factory=list)
    touched: list[_Held] = field(default_factory=list)
    #: reservations of jobs that have started
    served: dict[str, Reservation] = field(default_factory=dict)
    suspended: ExitStack = field(default_factory=ExitStack)
    looks: int = 0

    def run(self) -> int | None:
        """Return when the last of `waiting` starts; None: nobody knows."""
        wanted = self.waiting[-1]
        while wanted in self._start_those_that_fit():
            if self.looks > MOST_LOOKS or not self.ends:
                return None
            self.now = max(self.now, self.ends[0][0])
            while self.ends and self.ends[0][0] <= self.now:
                self._end(heapq.heappop(self.ends)[2])
        return self.now

    def expect(self, end: int, held: _Held) -> None:
        heapq.heappush(self.ends, (end, len(self.touched), held))
        self.touched.append(held)

    def undo(self) -> None:
        """Put everything back exactly as it was."""
        with self.suspended, self.state.without_reservations():
            for held in self.touched:
                if not held.real and not held.lifted:
                    self._lift(held)
            for held in self.touched:
                if held.real and held.lifted:
                    self._book(held)
            self._count(self.served.values())

    def _start_those_that_fit(self) -> list[_Candidate]:
        """Start those who can, first come first; return who waits on.

        Where one does not fit, the others who ask for the same are not tried.
        """
        for bound in (Bound.GUARANTEE, Bound.MAXIMUM):
            still: list[_Candidate] = []
            failed: set[tuple[str, Shape]] = set()
            for candidate in self.waiting:
                line = (candidate.virtual_cluster, candidate.shape)
                reservation = self._reservation_of(candidate)
                out = bound is Bound.MAXIMUM and not candidate.shape.preemptible
                if reservation is None and line in failed:
                    out = True
                if out or not self._start(candidate, reservation, bound):
                    failed.add(line)
                    still.append(candidate)
            self.waiting = still
        return self.waiting

    def _reservation_of(self, candidate: _Candidate) -> Reservation | None:
        return None if candidate.job_id is None else self.state.reservations.get(candidate.job_id)

    def _start(self, candidate: _Candidate, reservation: Reservation | None, bound: Bound) -> bool:
        """Start a job beside what is kept for others; what is kept for it and those behind is free."""
        if reservation is None:
            return self._place(candidate, bound)
        order = [one for one in self.state.reservations if one.job_id not in self.served]
        behind = [
            one
            for one in order[order.index(reservation) :]
            if one.virtual_cluster == reservation.virtual_cluster
        ]
        self._uncount(behind)
        with ExitStack() as own:
            own.enter_context(self.state.reservations.suspended(self.state.cluster, [reservation]))
            started = self._place(candidate, bound)
            if started:
                self.served[reservation.job_id] = reservation
                self.suspended.push(own.pop_all())
        self._count(one for one in behind if one.job_id not in self.served)
        return started

    def _place(self, candidate: _Candidate, bound: Bound) -> bool:
        self.looks += 1
        if self.looks > MOST_LOOKS:
            return False
        quotas, cluster = self.state.quota_accounting, self.state.cluster
        user, name, shape = candidate.user, candidate.virtual_cluster, candidate.shape
        if quotas.violation(name, user, shape.asked, bound) is not None:
            return False
        barred = self.state.barred(shape, self.now)
        placed = cluster.place(shape.gang, quotas.gpu_room(name, bound), closely=False, barred=barred)
        if placed is None:
            return False
        nodes = {assignment.node: cluster.uses[assignment.node].node for assignment in placed}
        tasks = [
            (demand, assignment, of_task(demand, assignment, nodes))
            for demand, assignment in zip(shape.gang, placed, strict=True)
        ]
        held = _Held(user, name, tasks, real=False)
        for _, _, amounts in tasks:
            quotas.book(name, user, amounts)
        if candidate.run_ms is None:
            self.touched.append(held)
        else:
            self.expect(self.now + candidate.run_ms, held)
        return True

    def _end(self, held: _Held) -> None:
        """A job is over: what it held is free, or kept for those who have reservations there."""
        self._lift(held)
        for node in {assignment.node for _, assignment, _ in held.tasks}:
            self.state.reservations.refresh(self.state.cluster, node)

    def _lift(self, held: _Held) -> None:
        held.lifted = True
        for demand, assignment, amounts in held.tasks:
            self.state.cluster.release(demand, assignment)
            self.state.quota_accounting.unbook(held.virtual_cluster, held.user, amounts)

    def _book(self, held: _Held) -> None:
        held.lifted = False
        for demand, assignment, amounts in held.tasks:
            self.state.cluster.occupy(demand, assignment)
            self.state.quota_accounting.book(held.virtual_cluster, held.user, amounts)

    def _count(self, reservations: Iterable[Reservation]) -> None:
        for one in reservations:
            self.state.quota_accounting.book(one.virtual_cluster, one.user, one.amounts)

    def _uncount(self, reservations: Iterable[Reservation]) -> None:
        for one in reservations:
            self.state.quota_accounting.unbook(one.virtual_cluster, one.user, one.amounts)


def estimate_start(
    state: SchedulerState,
    user: str,
    virtual_cluster: str,
    shape: Shape,
    ahead: Iterable[str],
    now: int,
    run_ms: Callable[[str], int | None],
    job_id: str | None = None,
    ends: Callable[[JobHolding], int | None] = attrgetter("expected_end"),
) -> int | None:
    """Return when a gang would start that comes behind the waiting jobs `ahead` (ms); None: nobody knows.

    `run_ms` gives for how long a waiting job will run, `ends` when one that runs will have ended; None:
    nobody knows. `job_id`: which job it is, where it is in line already, so that what is kept for it counts.
    """
    # (before anybody finds out for how long each of them will run)
    others = list(islice(ahead, MOST_AHEAD + 1))
    if len(others) > MOST_AHEAD:
        return None
    waiting = [
        _Candidate(other, *state.whose(other), state.queue.shape(other), run_ms(other)) for other in others
    ]
    waiting.append(_Candidate(job_id, user, virtual_cluster, shape, None))
    play = _Play(state, now, waiting)
    for holding in state.holdings.values():
        end = ends(holding)
        if end is not None:
            tasks = list(holding.tasks.values())
            play.expect(end, _Held(holding.user, holding.virtual_cluster, tasks, real=True))
    for end in state.barring.ends:
        # (nothing is given back then, but those may start who were kept away)
        play.expect(max(now, end), _Held("", "", (), real=True))
    try:
        return play.run()
    finally:
        play.undo()


def those_ahead(state: SchedulerState, virtual_cluster: str, sort_key: SortKey) -> Iterator[str]:
    """Return the waiting jobs that would be tried before one of this sort key, in that order.

    Of its own virtual cluster those of lower sort keys; of the others those that come first when, as the
    queue does it, always the first jobs of the virtual clusters are compared, by their order of submission.
    """
    lines: list[list[tuple[int, str]]] = []
    for name in state.quota_accounting.clusters:
        _, ids = state.queue.after(name, limit=MOST_AHEAD + 1)
        jobs = [(state.queue.sort_key(job_id), job_id) for job_id in ids]
        if name == virtual_cluster:
            line = [(key.submission, job_id) for key, job_id in jobs if key < sort_key]
            lines.append([*line, (sort_key.submission, _ITSELF)])
        else:
            lines.append([(key.submission, job_id) for key, job_id in jobs])
    for _, job_id in heapq.merge(*lines):
        if job_id == _ITSELF:
            return
        yield job_id
