"""A dispatcher with a clock, for tests that say what comes and look at what is decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.dispatcher import Decision, Dispatcher, Preempt, Start
from pai_scheduler.cluster.node import Node
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.resources import Assignment, Demand
from pai_scheduler.cluster.scheduler_state import SchedulerState
from pai_scheduler.cluster.sort_key import SortKey
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.making import make_demand, make_node

HALVES = (VirtualCluster("x", 50), VirtualCluster("y", 50))


def gpu(count: int = 1, gpu_type: str | None = None, cpus: int = 1) -> Demand:
    """One task with GPUs."""
    return make_demand(cpus, gpus=count, gpu_type=gpu_type)


def on(node: str, *gpus: int, ports: Mapping[str, tuple[int, ...]] | None = None) -> Assignment:
    return Assignment(node, gpus, ports or {})


def gpu_node(name: str = "a", gpus: int = 4, **others: int) -> Node:
    return make_node(name, cpus=100, memory_mb=100_000, gpus={"P100": gpus, **others})


def port(number: int) -> PortRequest:
    return PortRequest("web", number, 1)


class Harness:
    """Jobs of `alice` in virtual cluster `x` unless said otherwise; each event is a millisecond later."""

    def __init__(
        self,
        *nodes: Node,
        clusters: Iterable[VirtualCluster] = HALVES,
        limit: int = 100,
        shares_host_ports: bool = False,
    ) -> None:
        cluster = Cluster(nodes or (gpu_node(),), shares_host_ports=shares_host_ports)
        self.state = SchedulerState(cluster, clusters, limit)
        self.dispatcher = Dispatcher(self.state)
        self.now = 0
        self._came = 0

    # -- what happens

    def queue(
        self,
        job_id: str,
        *gang: Demand,
        vc: str = "x",
        user: str = "alice",
        priority: int = 0,
        preemptible: bool = True,
        overtaken: int = 0,
    ) -> None:
        """Put a job in line; nothing is decided yet."""
        self._came += 1
        sort_key = SortKey(-priority, 0, self._came)
        self.state.wait(job_id, user, vc, gang, sort_key, preemptible=preemptible, overtaken=overtaken)

    def wait(
        self,
        job_id: str,
        *gang: Demand,
        vc: str = "x",
        user: str = "alice",
        priority: int = 0,
        preemptible: bool = True,
    ) -> list[str]:
        self.queue(job_id, *gang, vc=vc, user=user, priority=priority, preemptible=preemptible)
        return self.decide()

    def hold(
        self,
        job_id: str,
        *tasks: tuple[Demand, Assignment],
        vc: str = "x",
        user: str = "alice",
        preemptible: bool = True,
        ending: bool = False,
        preempted: bool = False,
        since: int | None = None,
    ) -> None:
        """Let a job have been running, later than those before it or since a certain time."""
        self.now += 1
        held = dict(enumerate(tasks))
        self.state.hold(
            job_id,
            user,
            vc,
            held,
            self.now if since is None else since,
            preemptible=preemptible,
            ending=ending,
            preempted=preempted,
        )

    def end(self, *job_ids: str) -> list[str]:
        """Let all tasks of some jobs be over."""
        for job_id in job_ids:
            for place in list(self.state.holdings[job_id].tasks):
                self.state.release(job_id, place)
        return self.decide()

    def leave(self, job_id: str) -> list[str]:
        self.state.leave(job_id)
        return self.decide()

    def decide(self) -> list[str]:
        """Return what is decided: `+job` started, `~job` started and borrows, `-job` is stopped."""
        self.now += 1
        return [said for decision in self.dispatcher.decide(self.now) for said in _said(decision)]

    # -- what is known

    def reserved(self) -> list[str]:
        return [reservation.job_id for reservation in self.state.reservations]

    def awaited(self, job_id: str) -> set[str]:
        """Return the jobs that a reservation waits for."""
        reservation = self.state.reservations.get(job_id)
        assert reservation is not None, f"nothing is kept for {job_id}"
        return set(reservation.awaits)

    def nodes_of(self, job_id: str) -> list[str]:
        return [assignment.node for _, assignment, _ in self.state.holdings[job_id].tasks.values()]

    def scheduler_state(self) -> object:
        """Return everything that is counted, to see that nothing was left behind."""
        dispatcher = self.dispatcher
        return (
            [
                (use.node.name, use.cpus, use.memory_mb, use.storage_gb, {**use.gpus}, set(use.ports))
                for use in dispatcher.state.cluster.uses.values()
            ],
            {
                name: dict(dispatcher.state.quota_accounting.used(name))
                for name in dispatcher.state.quota_accounting.clusters
            },
        )


def _said(decision: Decision) -> list[str]:
    match decision:
        case Start(job_id, _, borrows):
            return [("~" if borrows else "+") + job_id]
        case Preempt(victims, _):
            return [f"-{victim}" for victim in victims]
