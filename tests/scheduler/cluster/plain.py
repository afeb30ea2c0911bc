"""The dispatcher without anything that makes it fast: each question is answered by a look at everything."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType

from pai_scheduler.cluster.allocations import Holdings
from pai_scheduler.cluster.bin_packing import NodeRoom
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.dispatcher import Dispatcher
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.node_index import FreeNodeResources
from pai_scheduler.cluster.placement import Cluster, Counted
from pai_scheduler.cluster.preemption import JobHolding
from pai_scheduler.cluster.quota import Bound
from pai_scheduler.cluster.reservations import Reservation, Reservations, Resumed
from pai_scheduler.cluster.resources import Assignment, Demand
from pai_scheduler.cluster.scheduler_state import SchedulerState, Shape


class PlainCluster(Cluster):
    """Looks at every node for every task."""

    def emptied(self, nodes: Iterable[Node] | None = None) -> Cluster:
        return PlainCluster(
            self.nodes if nodes is None else nodes,
            shares_host_ports=self.shares_host_ports,
            first_port=self._next_port,
        )

    def may_hold(
        self,
        gang: Sequence[Demand],  # noqa: ARG002
        gpu_room: Mapping[str, int] | None = None,  # noqa: ARG002
        kept: Mapping[str, Sequence[tuple[Demand, Assignment]]] = MappingProxyType({}),  # noqa: ARG002
        counted: Counted | None = None,  # noqa: ARG002
    ) -> bool:
        return True  # (the tasks are placed one by one to find out)

    def counts_exactly(self, gang: Sequence[Demand]) -> bool:  # noqa: ARG002
        return False

    def _rooms_for(self, gang: Sequence[Demand], barred: Collection[int]) -> list[NodeRoom]:  # noqa: ARG002
        uses = self.uses
        return [room for room in self.rooms() if uses[room.node].number not in barred]

    def _remember_refusal(self, demand: Demand) -> None:
        """Look again each time."""

    def _best_fit(
        self, demand: Demand, types: Iterable[str], beside: Collection[int]
    ) -> tuple[FreeNodeResources, str | None] | None:
        found: list[tuple[tuple[int, int | str, int], FreeNodeResources, str | None]] = []
        for number, use in enumerate(self.uses.values()):
            if number in beside or not use.has_room(demand):
                continue
            if not demand.gpus:
                found.append(((use.free_gpus, use.cpus, number), use, None))
            for gpu_type in types if demand.gpus else ():
                count = len(use.gpus.get(gpu_type, ()))
                if count >= demand.gpus:
                    found.append(((count, gpu_type, number), use, gpu_type))
        if not found:
            return None
        _, best, best_type = min(found, key=lambda one: one[0])
        return best, best_type


class PlainHoldings(Holdings):
    """Sorts all holdings whenever somebody asks."""

    def by_expected_end(self) -> Sequence[JobHolding]:
        def order(holding: JobHolding) -> tuple[bool, bool, float, int]:
            end = float("inf") if holding.expected_end is None else holding.expected_end
            return not holding.ending, not holding.preemptible, end, holding.since

        return sorted(self.values(), key=order)


class PlainResumed(Resumed):
    """Keeps everything again before each look."""

    def let_go(self, nodes: Iterable[str]) -> None:  # noqa: ARG002
        super().let_go(self._on_node)


class PlainReservations(Reservations):
    """Keeps everything again before each look."""

    @contextmanager
    def resumed(self, cluster: Cluster, some: Iterable[Reservation]) -> Iterator[Resumed]:
        resumed = PlainResumed(cluster, some)
        try:
            yield resumed
        finally:
            resumed.let_go_all()


class PlainState(SchedulerState):
    """Looks at everything. `tries_all`: whatever happens, everybody who waits is tried again."""

    def __init__(
        self,
        cluster: PlainCluster,
        clusters: Iterable[VirtualCluster],
        overtake_limit: int,
        *,
        tries_all: bool = True,
    ) -> None:
        super().__init__(cluster, clusters, overtake_limit)
        self.holdings = PlainHoldings()
        self.reservations = PlainReservations()
        self.tries_all = tries_all

    def reopen(self, virtual_cluster: str) -> None:
        if self.tries_all:
            self.queue.reopen()
        else:
            super().reopen(virtual_cluster)

    def borrowing(self, cluster: str) -> list[JobHolding]:
        limits = self.quota_accounting.limits(cluster, Bound.GUARANTEE)
        if limits is None:
            return []
        counted: Counter[str] = Counter()
        over = []
        holdings = [holding for holding in self.holdings.of_cluster(cluster) if not holding.ending]
        for holding in sorted(holdings, key=lambda one: (one.preemptible, one.since, one.job_id)):
            amounts = holding.amounts
            if holding.preemptible and any(
                counted[key] + count > limits.get(key, 0) for key, count in amounts.items()
            ):
                over.append(holding)
            else:
                counted.update(amounts)
        return over


class PlainDispatcher(Dispatcher):
    """Finds what must end by trying."""

    def _is_one_task(self, shape: Shape) -> bool:  # noqa: ARG002
        return False
