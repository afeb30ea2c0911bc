"""What would fit if some jobs had ended: which of them must, found by trying."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from .amounts import Amounts
from .demand import Assignment, Demand
from .placement import Cluster
from .quota import QuotaAccounting

#: In which order jobs will have ended; the last number is the order in which they got what they hold.
EndOrder = tuple[bool, bool, int, int, int]


@dataclass(slots=True, eq=False)
class JobHolding:
    """What a job holds. `since`: when it got it; `expected_end`: when it will have ended at the latest."""

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
    #: its precedence, where jobs of its own virtual cluster with a lower turn stop it; None: none does
    yields: int | None = None
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
