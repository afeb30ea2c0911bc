"""The dispatcher under random clusters, shares and jobs, held against the rules written a second time."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.dispatcher import Dispatcher, Preempt, Start
from pai_scheduler.cluster.feasibility import Fits, obstacle
from pai_scheduler.cluster.node import NodeState
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.resources import Assignment, Demand
from pai_scheduler.cluster.scheduler_state import SchedulerState
from pai_scheduler.cluster.sort_key import SortKey
from tests.scheduler.cluster import oracle
from tests.scheduler.making import make_demand, make_node
from tests.testbed.properties import examples

TYPES = ("K80", "P100")
SHARES = st.sampled_from([(100, 100, 0, 100), (50, 100, 50, 100), (60, 80, 40, 50), (34, 100, 33, 100)])
DEMANDS = st.builds(
    make_demand,
    cpus=st.integers(1, 3),
    gpus=st.sampled_from([0, 0, 1, 1, 2]),
    gpu_type=st.sampled_from([None, "P100", "K80"]),
)
LIMIT = 3


def normal(demand: Demand) -> Demand:
    return demand if demand.gpus else make_demand(demand.cpus, demand.memory_mb)


GANGS = st.lists(st.tuples(DEMANDS.map(normal), st.integers(1, 2)), min_size=1, max_size=2).map(
    lambda kinds: [demand for demand, count in kinds for _ in range(count)]
)


@dataclass
class Known:
    """A job as the test knows it."""

    id: str
    user: str
    cluster: str
    gang: list[Demand]
    preemptible: bool
    order: int
    tasks: dict[int, Assignment] = field(default_factory=dict)
    since: int = -1
    ending: bool = False
    borrowed: bool = False


class Rules:
    """What job-contract.md, section 3, says of virtual clusters, once more, the slow way."""

    def __init__(self, nodes: list[Any], clusters: list[VirtualCluster]) -> None:
        self.nodes = {node.name: node for node in nodes}
        self.clusters = {cluster.name: cluster for cluster in clusters}

    def amounts(self, job: Known) -> Counter[str]:
        total: Counter[str] = Counter()
        for place, assignment in job.tasks.items():
            demand = job.gang[place]
            total["cpus"] += demand.cpus
            total["memory"] += demand.memory_mb
            for index in assignment.gpus:
                total[self.nodes[assignment.node].gpus[index].type] += 1
        return total

    def limits(self, share: float) -> dict[str, int]:
        if share >= 100:
            return dict.fromkeys(("cpus", "memory", *TYPES), 10**9)
        total: Counter[str] = Counter()
        for node in self.nodes.values():
            total["cpus"] += node.cpus
            total["memory"] += node.memory_mb
            total.update(gpu.type for gpu in node.gpus)
        return {key: math.floor(round(total[key] * share / 100, 6)) for key in ("cpus", "memory", *TYPES)}

    def used(self, jobs: list[Known], cluster: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for job in jobs:
            if job.cluster == cluster:
                total.update(self.amounts(job))
        return total

    def borrowers(self, jobs: list[Known], cluster: str) -> set[str]:
        limits, counted, over = self.limits(self.clusters[cluster].capacity), Counter[str](), set()
        mine = [job for job in jobs if job.cluster == cluster and not job.ending and job.tasks]
        for job in sorted(mine, key=lambda job: (job.preemptible, job.since, job.id)):
            amounts = self.amounts(job)
            if job.preemptible and any(counted[key] + amounts[key] > limits[key] for key in amounts):
                over.add(job.id)
            else:
                counted.update(amounts)
        return over


class RandomDispatch(RuleBasedStateMachine):
    """Jobs come, go, are moved, end task by task; nodes and shares change."""

    @initialize(
        sizes=st.lists(
            st.tuples(st.integers(1, 6), st.integers(0, 3), st.integers(0, 2)), min_size=1, max_size=3
        ),
        shares=SHARES,
        quota=st.sampled_from([None, None, 2]),
    )
    def begin(
        self, sizes: list[tuple[int, int, int]], shares: tuple[int, int, int, int], quota: int | None
    ) -> None:
        self.nodes = [
            make_node(f"n{number}", cpus, gpus={"P100": p100, "K80": k80})
            for number, (cpus, p100, k80) in enumerate(sizes)
        ]
        self.clusters = [
            VirtualCluster("x", shares[0], shares[1], gpus_per_user=quota),
            VirtualCluster("y", shares[2], shares[3]),
        ]
        self.contract = Rules(self.nodes, self.clusters)
        self.dispatcher = Dispatcher(SchedulerState(Cluster(self.nodes), self.clusters, LIMIT))
        self.waiting: dict[str, Known] = {}
        self.holding: dict[str, Known] = {}
        self.number = 0
        self.now = 0

    # -- what happens ---------------------------------------------------------------------------------------

    @rule(
        gang=GANGS,
        user=st.sampled_from(["alice", "bob"]),
        cluster=st.sampled_from(["x", "y"]),
        preemptible=st.sampled_from([True, True, True, False]),
        priority=st.sampled_from([50, 50, 90]),
    )
    def submit(self, gang: list[Demand], user: str, cluster: str, preemptible: bool, priority: int) -> None:
        self.number += 1
        job = Known(f"j{self.number}", user, cluster, gang, preemptible, self.number)
        self.waiting[job.id] = job
        self.dispatcher.state.wait(
            job.id, user, cluster, gang, SortKey(-priority, 0, self.number), preemptible=preemptible
        )
        self.decide()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def give_up(self, data: st.DataObject) -> None:
        job_id = data.draw(st.sampled_from(sorted(self.waiting)))
        del self.waiting[job_id]
        self.dispatcher.state.leave(job_id)
        self.decide()

    @precondition(lambda self: self.waiting)
    @rule(data=st.data(), priority=st.integers(0, 100))
    def rank(self, data: st.DataObject, priority: int) -> None:
        job = self.waiting[data.draw(st.sampled_from(sorted(self.waiting)))]
        self.dispatcher.state.resort(job.id, SortKey(-priority, 0, job.order))
        self.decide()

    @precondition(lambda self: self.holding)
    @rule(data=st.data(), whole=st.booleans())
    def end(self, data: st.DataObject, whole: bool) -> None:
        job = self.holding[data.draw(st.sampled_from(sorted(self.holding)))]
        for place in sorted(job.tasks)[: None if whole else 1]:
            del job.tasks[place]
            self.dispatcher.state.release(job.id, place)
            if not job.tasks:
                del self.holding[job.id]
            self.decide()

    @precondition(lambda self: self.holding)
    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        job = self.holding[data.draw(st.sampled_from(sorted(self.holding)))]
        job.ending = True
        self.dispatcher.state.ending(job.id)
        self.decide()

    @rule(shares=SHARES)
    def change_shares(self, shares: tuple[int, int, int, int]) -> None:
        self.clusters = [
            VirtualCluster("x", shares[0], shares[1], gpus_per_user=self.clusters[0].gpus_per_user),
            VirtualCluster("y", shares[2], shares[3], stopped=shares[2] == 33),
        ]
        self.contract = Rules(self.nodes, self.clusters)
        self.dispatcher.state.set_clusters(self.clusters)
        self.decide()

    @rule(sick=st.integers(-1, 2))
    def change_nodes(self, sick: int) -> None:
        self.nodes = [
            make_node(
                node.name,
                node.cpus,
                gpus={kind: sum(gpu.type == kind for gpu in node.gpus) for kind in ("P100", "K80")},
                state=NodeState.LOST if number == sick else NodeState.READY,
            )
            for number, node in enumerate(self.nodes)
        ]
        self.contract = Rules(self.nodes, self.clusters)
        self.dispatcher.state.set_nodes(self.nodes)
        self.decide()

    @rule()
    def restart(self) -> None:
        """A new dispatcher is told what is known; what was kept for jobs is found again or not needed."""
        sort_keys = {job_id: self.dispatcher.state.queue.sort_key(job_id) for job_id in self.waiting}
        self.dispatcher = Dispatcher(SchedulerState(Cluster(self.nodes), self.clusters, LIMIT))
        for job in self.holding.values():
            tasks = {place: (job.gang[place], assignment) for place, assignment in job.tasks.items()}
            self.dispatcher.state.hold(
                job.id,
                job.user,
                job.cluster,
                tasks,
                job.since,
                preemptible=job.preemptible,
                ending=job.ending,
                preempted=job.ending,
            )
        for job in self.waiting.values():
            self.dispatcher.state.wait(
                job.id, job.user, job.cluster, job.gang, sort_keys[job.id], preemptible=job.preemptible
            )
        self.decide()

    # -- what follows ---------------------------------------------------------------------------------------

    def decide(self) -> None:
        self.now += 1
        for decision in self.dispatcher.decide(self.now):
            if isinstance(decision, Start):
                self.started(decision)
            else:
                self.preempted(decision)
        assert self.dispatcher.decide(self.now) == [], "a second look finds what the first overlooked"

    def started(self, start: Start) -> None:
        job = self.waiting.pop(start.job_id)
        job.tasks, job.since = dict(enumerate(start.assignments)), self.now
        self.holding[job.id] = job
        rules, cluster = self.contract, self.contract.clusters[job.cluster]
        assert not cluster.stopped
        for demand, place in zip(job.gang, start.assignments, strict=True):
            node = rules.nodes[place.node]
            assert node.ready
            types = {node.gpus[index].type for index in place.gpus}
            assert len(place.gpus) == demand.gpus
            assert len(types) <= 1
            assert demand.gpu_type is None or types <= {demand.gpu_type}
        used, amounts = rules.used(list(self.holding.values()), job.cluster), rules.amounts(job)
        most, guaranteed = rules.limits(cluster.max_capacity), rules.limits(cluster.capacity)
        assert all(used[key] <= most[key] for key in amounts), "more than maxCapacity"
        beyond = any(used[key] > guaranteed[key] for key in amounts)
        assert not beyond or start.borrows
        assert not (start.borrows and not job.preemptible), "what must not be preempted never borrows"
        if cluster.gpus_per_user is not None and amounts.keys() & set(TYPES):
            mine = [other for other in self.holding.values() if other.user == job.user]
            gpus = rules.used(mine, job.cluster)
            assert sum(gpus[kind] for kind in TYPES) <= cluster.gpus_per_user
        job.borrowed = start.borrows

    def preempted(self, preempt: Preempt) -> None:
        jobs = list(self.holding.values())
        wants = self.waiting[preempt.beneficiary]
        assert preempt.victims
        assert len(set(preempt.victims)) == len(preempt.victims)
        for victim in preempt.victims:
            job = self.holding[victim]
            assert job.cluster != wants.cluster, "a job does not preempt its own virtual cluster"
            assert job.preemptible
            assert not job.ending
            assert victim in self.contract.borrowers(jobs, job.cluster)
        for victim in preempt.victims:
            self.holding[victim].ending = True
        # with all that ends gone it fits, and stays within its guarantee
        stay = [job for job in jobs if not job.ending]
        assert self.would_fit(wants, stay)
        for victim in preempt.victims:
            assert not self.would_fit(wants, [*stay, self.holding[victim]]), "stopped without need"

    def would_fit(self, job: Known, jobs: list[Known]) -> bool:
        """Within the guarantee and on the nodes, beside these jobs only (and what is kept for others)."""
        cluster = self.contract.clusters[job.cluster]
        used, limits = self.contract.used(jobs, job.cluster), self.contract.limits(cluster.capacity)
        free = {
            node.name: oracle.Free(node.cpus, 10_000, 1000, Counter(g.type for g in node.gpus))
            for node in self.nodes
            if node.ready
        }
        for other in jobs:
            for place, assignment in other.tasks.items():
                if assignment.node in free:
                    kind = (
                        self.contract.nodes[assignment.node].gpus[assignment.gpus[0]].type
                        if assignment.gpus
                        else None
                    )
                    free[assignment.node].change(other.gang[place], kind, -1)
        for reservation in self.dispatcher.state.reservations:
            if reservation.job_id == job.id or not reservation.within:
                continue
            for target in reservation.targets:
                if target.node in free:
                    free[target.node].change(target.demand, target.gpu_type, -1)
        room = {kind: int(limits[kind] - used[kind]) for kind in TYPES}
        asked = Counter[str]()
        for demand in job.gang:
            asked["cpus"] += demand.cpus
            asked["memory"] += demand.memory_mb
        if any(used[key] + asked[key] > limits[key] for key in asked):
            return False
        if cluster.gpus_per_user is not None and any(demand.gpus for demand in job.gang):
            mine = self.contract.used([other for other in jobs if other.user == job.user], job.cluster)
            held = sum(mine[kind] for kind in TYPES)
            if held + sum(demand.gpus for demand in job.gang) > cluster.gpus_per_user:
                return False
        return oracle.fits(free, job.gang, gpu_room=room)

    # -- what always holds ----------------------------------------------------------------------------------

    @invariant()
    def nothing_is_given_twice(self) -> None:
        with self.dispatcher.state.without_reservations():
            self.look_at_the_nodes()

    def look_at_the_nodes(self) -> None:
        taken = Counter[tuple[str, int]]()
        cpus = Counter[str]()
        for job in self.holding.values():
            for place, assignment in job.tasks.items():
                taken.update((assignment.node, index) for index in assignment.gpus)
                cpus[assignment.node] += job.gang[place].cpus
        assert set(taken.values()) <= {1}
        for name, use in self.dispatcher.state.cluster.uses.items():
            assert use.cpus == self.contract.nodes[name].cpus - cpus[name]
            assert use.cpus >= 0
            assert use.free_gpus == len(self.contract.nodes[name].gpus) - sum(n == name for n, _ in taken)

    @invariant()
    def the_accounts_are_right(self) -> None:
        for name in ("x", "y"):
            expected = self.contract.used(list(self.holding.values()), name)
            for reservation in self.dispatcher.state.reservations:
                if reservation.virtual_cluster == name:
                    expected["cpus"] += reservation.amounts["cpus"]
            assert self.dispatcher.state.quota_accounting.used(name).get("cpus", 0) == expected["cpus"]

    @invariant()
    def who_waits_has_a_reason_and_who_could_start_has_started(self) -> None:
        dispatcher = self.dispatcher
        assert set(self.waiting) == {
            job_id for name in ("x", "y") for job_id in dispatcher.state.queue.in_order(name)
        }
        for job in self.waiting.values():
            found = obstacle(dispatcher.state, job.id)
            assert found.fits is not Fits.NOW, (job, found)
            assert found.reason is not None
            if not len(dispatcher.state.reservations):
                assert not found.behind
                assert (
                    not self.would_fit(job, list(self.holding.values()))
                    or self.contract.clusters[job.cluster].stopped
                )
            if found.fits is Fits.NEVER:
                assert not job.preemptible or not self.would_fit(job, [])

    @invariant()
    def a_limit_in_the_way_is_told_with_its_numbers(self) -> None:
        for job in self.waiting.values():
            violation = obstacle(self.dispatcher.state, job.id).violation
            if violation is None or len(self.dispatcher.state.reservations):
                continue
            cluster = self.contract.clusters[job.cluster]
            mine = [other for other in self.holding.values() if other.cluster == job.cluster]
            never = obstacle(self.dispatcher.state, job.id).fits is Fits.NEVER
            if violation.user is not None:
                mine = [other for other in mine if other.user == job.user]
                used, limit = self.gpus(mine), cluster.gpus_per_user
            else:
                share = cluster.max_capacity if job.preemptible else cluster.capacity
                limits, held = self.contract.limits(share), self.contract.used(mine, job.cluster)
                key = {"cpus": "cpus", "memoryMB": "memory"}.get(violation.resource, violation.resource[4:])
                if key:
                    used, limit = held[key], limits[key]
                else:
                    limit = sum(limits[kind] for kind in TYPES)
                    used = sum(min(held[kind], limits[kind]) for kind in TYPES)
            asked = {
                "cpus": sum(demand.cpus for demand in job.gang),
                "memoryMB": sum(demand.memory_mb for demand in job.gang),
            }.get(violation.resource, sum(demand.gpus for demand in job.gang if demand.gpus))
            if violation.resource in ("gpu:P100", "gpu:K80"):
                asked = sum(d.gpus for d in job.gang if d.gpu_type == violation.resource[4:])
            elif violation.resource == "gpu:" and violation.user is None:
                asked = sum(demand.gpus for demand in job.gang if demand.gpu_type is None)
            assert (violation.asked, violation.used, violation.limit) == (asked, 0 if never else used, limit)
            assert violation.asked + violation.used > violation.limit

    def gpus(self, jobs: list[Known]) -> int:
        return sum(self.contract.amounts(job)[kind] for job in jobs for kind in TYPES)

    @invariant()
    def what_would_free_it_is_told_truly(self) -> None:
        for job_id, job in self.waiting.items():
            if (
                job_id in self.dispatcher.state.reservations
                or self.contract.clusters[job.cluster].stopped
                or job.preemptible
            ):
                continue
            if len(self.dispatcher.state.reservations):
                continue
            ends = self.dispatcher.state.awaits(job_id)
            gone = {holding.job_id for holding in ends or ()}
            stay = [other for other in self.holding.values() if other.id not in gone]
            if ends is None:
                assert not self.would_fit(job, [])
            else:
                assert self.would_fit(job, stay)
                for other in gone:
                    assert not self.would_fit(job, [*stay, self.holding[other]])

    def teardown(self) -> None:
        """Everything ends: everybody who can starts in turn, and nothing is left."""
        if not hasattr(self, "dispatcher"):
            return
        for _ in range(len(self.waiting) + len(self.holding) + 1):
            for job in list(self.holding.values()):
                for place in list(job.tasks):
                    del job.tasks[place]
                    self.dispatcher.state.release(job.id, place)
                del self.holding[job.id]
                self.decide()
        for job_id in list(self.waiting):
            found = obstacle(self.dispatcher.state, job_id)
            assert found.fits is Fits.NEVER or self.contract.clusters[self.waiting[job_id].cluster].stopped, (
                found
            )
        assert not list(self.dispatcher.state.reservations)
        assert not any(self.dispatcher.state.quota_accounting.used(name) for name in ("x", "y"))


TestRandomDispatch = RandomDispatch.TestCase
TestRandomDispatch.settings = settings(
    max_examples=examples(40), stateful_step_count=25, deadline=None, report_multiple_bugs=False
)


@settings(max_examples=examples(60), deadline=None)
@given(
    st.integers(2, 4),
    st.lists(st.tuples(st.integers(1, 3), st.integers(1, 4)), min_size=40, max_size=40),
    st.integers(1, 5),
)
def test_a_large_gang_is_overtaken_a_bounded_number_of_times_however_many_small_jobs_come(
    width: int, small: list[tuple[int, int]], limit: int
) -> None:
    nodes = [make_node(f"n{number}", 4) for number in range(4)]
    dispatcher = Dispatcher(SchedulerState(Cluster(nodes), [VirtualCluster("x", 100)], limit))
    gang = [make_demand(cpus=4)] * width
    running: dict[str, int] = {}
    overtakes = 0

    def look() -> None:
        nonlocal overtakes
        for decision in dispatcher.decide(0):
            assert isinstance(decision, Start)
            if decision.job_id != "gang":
                running[decision.job_id] = times[decision.job_id]
                overtakes += "gang" in dispatcher.state.queue
            else:
                running["gang"] = 1

    times: dict[str, int] = {}
    for number, (cpus, time) in enumerate(small):
        if number == 4:
            dispatcher.state.wait("gang", "alice", "x", gang, SortKey(0, 0, number * 10))
        times[f"j{number}"] = time
        dispatcher.state.wait(
            f"j{number}", "bob", "x", [make_demand(cpus=cpus)], SortKey(0, 0, number * 10 + 1)
        )
        look()
        for job_id in list(running):
            running[job_id] -= 1
            if running[job_id] <= 0:
                del running[job_id]
                for place in list(dispatcher.state.holdings[job_id].tasks):
                    dispatcher.state.release(job_id, place)
        look()
    # once things are kept for it, others start only where they are not in its way
    assert "gang" not in dispatcher.state.queue
