"""What is kept to be fast changes no decision: a plain dispatcher gets the same random jobs."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator, Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.dispatcher import Decision, Dispatcher, Start
from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.cluster.placement import PORT_RANGE, Cluster
from pai_scheduler.cluster.resources import Demand
from pai_scheduler.cluster.scheduler_state import SchedulerState
from pai_scheduler.cluster.sort_key import SortKey
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.cluster.plain import PlainCluster, PlainDispatcher, PlainState
from tests.scheduler.making import make_demand, make_node
from tests.testbed.properties import examples

TYPES = ("A100", "K80")


class Workload:
    """Jobs by chance: they come, end task by task, leave, are moved; nodes and shares change."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.shares_ports = chance.random() < 0.15
        #: (where ports are each node's own, every job may have some, as real ones have)
        self.ports = chance.choice((0.5, 1)) if self.shares_ports else chance.choice((0, 0.5, 1))
        self.large = chance.random() < 0.3
        self.even = chance.random() < 0.5
        self.racks = chance.choice((0, 0, 2))
        self.count = chance.randint(8, 20) if self.large else chance.randint(1, 6)
        self.nodes = self.make_nodes()
        self.clusters = self.make_clusters()
        demands = [self.make_demand() for _ in range(chance.choice((2, 4, 10)))]
        gangs = chance.choice((0, 0.2, 0.6))
        self.gangs = [self.make_gang(demands, gangs) for _ in range(2 * len(demands))]
        limit = chance.choice((0, 1, 3, 10, 1000))
        plain = PlainCluster(self.nodes, shares_host_ports=self.shares_ports)
        fast = Cluster(self.nodes, shares_host_ports=self.shares_ports)
        self.priorities = chance.choice(((0,), (0,), (0, 0, -5)))
        # (between virtual clusters it is by the first of each who is worth a try that they take turns)
        tries_all = len(self.clusters) == 1
        self.both = (
            Dispatcher(SchedulerState(fast, self.clusters, limit)),
            PlainDispatcher(PlainState(plain, self.clusters, limit, tries_all=tries_all)),
        )
        self.must_not_be_preempted = chance.choice((0, 0, 0.3))
        self.has_time_limit = chance.choice((0, 0.3, 0.9))
        self.now = self.came = 0
        self.running: dict[str, list[int]] = {}
        self.waiting: set[str] = set()

    def make_nodes(self) -> list[Node]:
        chance = self.chance
        nodes = []
        for number in range(self.count):
            gpus = {TYPES[number % 2]: 8 if self.even else chance.choice((0, 2, 4, 8))}
            if chance.random() < 0.2:
                gpus = {"A100": 2, "K80": 2}
            cpus, memory_mb = (
                (64, 2000) if self.even else (chance.choice((8, 64)), chance.choice((900, 4000)))
            )
            state = NodeState.LOST if chance.random() < 0.05 else NodeState.READY
            rack = f"r{number // self.racks}" if self.racks else ""
            nodes.append(
                make_node(f"n{number}", cpus, memory_mb=memory_mb, gpus=gpus, state=state, rack=rack)
            )
        return nodes

    def make_clusters(self) -> list[VirtualCluster]:
        chance, left, clusters = self.chance, 100, []
        count = chance.randint(1, 3)
        for number in range(count):
            share = left if number == count - 1 and chance.random() < 0.8 else chance.randint(0, left)
            left -= share
            most = min(100, share + chance.choice((0, 20, 100)))
            quota = chance.choice((None, None, None, 6))
            clusters.append(VirtualCluster(f"v{number}", share, most, gpus_per_user=quota))
        return clusters

    def make_demand(self) -> Demand:
        chance = self.chance
        gpus = chance.choice((0, 1, 1, 2, 4, 8))
        ports = []
        if chance.random() < self.ports:
            ports = [PortRequest("web", chance.choice((0, 0, 5000, 5001, 5002)), 1)]
        if not self.shares_ports and chance.random() < 0.02:
            # more than there are to choose from
            ports = [PortRequest("many", 0, len(PORT_RANGE) + 1)]
        return make_demand(
            chance.choice((1, 2, 4)) * max(1, gpus),
            memory_mb=chance.choice((10, 100, 400)) * max(1, gpus // 2),
            gpus=gpus,
            gpu_type=chance.choice((None, *TYPES)) if gpus else None,
            ports=ports,
        )

    def make_gang(self, demands: list[Demand], gangs: float) -> list[Demand]:
        chance = self.chance
        if chance.random() >= gangs:
            return [chance.choice(demands)]
        if chance.random() < 0.6:
            return [chance.choice(demands)] * chance.randint(2, 6)
        return [chance.choice(demands) for _ in range(chance.randint(2, 3))]

    def play(self, steps: int) -> Iterator[tuple[object, object]]:
        """Play so many steps; after each, what both decided and keep."""
        for _ in range(steps):
            self.step()
            yield self.decide()

    def step(self) -> None:
        chance, what = self.chance, self.chance.random()
        if what < 0.45 or not self.running:
            for _ in range(chance.choice((1, 1, 5))):
                self.submit()
        elif what < 0.85:
            job_id = chance.choice(sorted(self.running))
            places = self.running[job_id]
            for place in places[: chance.choice((1, len(places)))]:
                places.remove(place)
                for one in self.both:
                    one.state.release(job_id, place)
            if not places:
                del self.running[job_id]
        elif what < 0.90:
            self.tell("ending", chance.choice(sorted(self.running)))
        elif what < 0.93:
            self.tell("expect", chance.choice(sorted(self.running)), chance.choice((None, self.now + 20)))
        elif what < 0.95 and self.waiting:
            job_id = chance.choice(sorted(self.waiting))
            self.waiting.remove(job_id)
            self.tell("leave", job_id)
        elif what < 0.97 and self.waiting:
            sort_key = SortKey(chance.choice((0, -3)), 0, chance.randint(1, self.came))
            self.tell("resort", chance.choice(sorted(self.waiting)), sort_key)
        elif what < 0.975:
            self.tell("set_nodes", self.make_nodes())
        elif what < 0.98:
            self.tell("set_clusters", self.make_clusters()[: len(self.clusters)])
        elif self.waiting:
            self.tell("awaits", chance.choice(sorted(self.waiting)))

    def tell(self, what: str, *about: object) -> None:
        """Tell both the same."""
        for one in self.both:
            getattr(one.state, what)(*about)

    def submit(self) -> None:
        chance = self.chance
        self.came += 1
        job_id, user = f"j{self.came}", f"u{chance.randint(0, 2)}"
        cluster, gang = chance.choice(self.clusters).name, chance.choice(self.gangs)
        sort_key = SortKey(chance.choice(self.priorities), 0, self.came)
        preemptible = chance.random() >= self.must_not_be_preempted
        overtaken = chance.choice((0, 0, 0, 2))
        self.waiting.add(job_id)
        for one in self.both:
            one.state.wait(
                job_id, user, cluster, gang, sort_key, preemptible=preemptible, overtaken=overtaken
            )

    def decide(self) -> tuple[object, object]:
        self.now += self.chance.choice((0, 1, 1, 1))
        fast, plain = (one.decide(self.now) for one in self.both)
        for decision in plain:
            if not isinstance(decision, Start):
                continue
            self.waiting.remove(decision.job_id)
            self.running[decision.job_id] = list(range(len(decision.assignments)))
            if self.chance.random() < self.has_time_limit:
                self.tell("expect", decision.job_id, self.now + self.chance.choice((5, 10, 50)))
        return (_said(fast), self.kept(self.both[0])), (_said(plain), self.kept(self.both[1]))

    def kept(self, dispatcher: Dispatcher) -> object:
        """Return what is kept for whom, how often each waiting job was overtaken, and who borrows."""
        queue = dispatcher.state.queue
        return (
            [(one.job_id, one.targets, one.awaits, one.within) for one in dispatcher.state.reservations],
            [
                (job_id, queue.overtaken(job_id), queue.is_within(job_id), queue.has_reservation(job_id))
                for job_id in sorted(self.waiting)
            ],
            [[holding.job_id for holding in dispatcher.state.borrowing(one.name)] for one in self.clusters],
        )


def _said(decisions: Sequence[Decision]) -> list[object]:
    """Leave out the ports that were chosen: they go on with each try, also where it came to nothing."""
    return [
        (one.job_id, one.borrows, [(place.node, place.gpus) for place in one.assignments])
        if isinstance(one, Start)
        else one
        for one in decisions
    ]


@settings(max_examples=examples(40), deadline=None, report_multiple_bugs=False)
@given(st.integers(0, 1 << 32))
def test_nobody_who_could_start_is_overlooked(seed: int) -> None:
    workload = Workload(random.Random(seed))  # noqa: S311  (no secret)
    for _ in workload.play(40):
        dispatcher = copy.deepcopy(workload.both[0])
        dispatcher.state.queue.reopen()
        started = [one for one in dispatcher.decide(workload.now) if isinstance(one, Start)]
        assert started == []


@settings(max_examples=examples(60), deadline=None, report_multiple_bugs=False)
@given(st.integers(0, 1 << 32))
# (patterns of two GPU types that are confused with each other)
@example(254308)
def test_decisions_are_those_that_a_look_at_everything_makes(seed: int) -> None:
    for fast, plain in Workload(random.Random(seed)).play(60):  # noqa: S311  (no secret)
        assert fast == plain
