from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import NodeState
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.preemption import Allowance, JobHolding, PreemptionPlanner, Soonest, SoonestPlanner
from pai_scheduler.cluster.quota import Bound, QuotaAccounting
from pai_scheduler.cluster.reservations import Reservation, ReservedPlace
from pai_scheduler.cluster.resources import Assignment, Demand, of_gang
from tests.scheduler.making import make_demand, make_node

TYPES = ("A100", "K80")
DEMANDS = st.builds(
    make_demand,
    cpus=st.integers(1, 4),
    memory_mb=st.sampled_from([10, 100, 300]),
    gpus=st.sampled_from([0, 1, 2, 4]),
    gpu_type=st.sampled_from([None, *TYPES]),
)
SIZES = st.tuples(st.integers(2, 8), st.sampled_from([300, 1000]), st.integers(0, 4), st.integers(0, 4))


def start(cluster: Cluster, job_id: str, gang: list[Demand]) -> JobHolding | None:
    placed = cluster.place(gang)
    if placed is None:
        return None
    holding = JobHolding(job_id, "alice", "x", preemptible=True, since=0)
    holding.tasks = {place: (*task, {}) for place, task in enumerate(zip(gang, placed, strict=True))}
    return holding


@given(
    st.lists(SIZES, min_size=1, max_size=4),
    st.lists(st.tuples(DEMANDS, st.integers(1, 3), st.booleans()), max_size=14),
    DEMANDS,
    st.randoms(use_true_random=False),
)
def test_what_counting_finds_is_what_trying_finds(
    sizes: list[tuple[int, int, int, int]],
    jobs: list[tuple[Demand, int, bool]],
    demand: Demand,
    chance: random.Random,
) -> None:
    nodes = [
        make_node(
            f"n{number}",
            cpus,
            memory_mb=memory_mb,
            gpus={"A100": a100, "K80": k80},
            state=NodeState.LOST if number == 3 else NodeState.READY,
        )
        for number, (cpus, memory_mb, a100, k80) in enumerate(sizes)
    ]
    cluster = Cluster(nodes)
    ends: list[JobHolding] = []
    kept: dict[str, list[tuple[Demand, Assignment]]] = {}
    for number, (of_task, count, is_kept) in enumerate(jobs):
        holding = start(cluster, f"j{number}", [of_task] * count)
        if holding is None:
            continue
        if not is_kept:
            ends.append(holding)
            continue
        for one, assignment, _ in holding.tasks.values():
            kept.setdefault(assignment.node, []).append((one, assignment))
    chance.shuffle(ends)
    found = SoonestPlanner(cluster, kept, demand).find(ends)

    for node in kept.values():
        for one, assignment in node:
            cluster.release(one, assignment)
    targets: list[Assignment] = []

    def fits() -> bool:
        placed = cluster.place([demand])
        if placed is not None:
            targets[:] = placed
            cluster.release(demand, placed[0])
        return placed is not None

    needed = PreemptionPlanner(cluster, QuotaAccounting(nodes, ())).needed(fits, ends)
    if needed is None:
        assert found is None
    else:
        [target] = targets
        gpu_type = cluster.uses[target.node].gpu_types[target.gpus[0]] if target.gpus else None
        assert found == Soonest(needed, target.node, gpu_type)


@pytest.mark.parametrize(("gpus", "needed"), [(1, []), (2, ["early"]), (4, ["early", "late"]), (5, None)])
def test_jobs_that_end_early_are_preferred_and_none_without_need(gpus: int, needed: list[str] | None) -> None:
    cluster = Cluster([make_node("a", gpus={"K80": 4}), make_node("b", gpus={"K80": 1})])
    ends = [start(cluster, "early", [make_demand(gpus=1)] * 2), start(cluster, "late", [make_demand(gpus=2)])]
    known = [holding for holding in ends if holding is not None]
    assert [holding.job_id for holding in known] == ["early", "late"]
    found = SoonestPlanner(cluster, {}, make_demand(gpus=gpus)).find(known)
    assert (None if found is None else [holding.job_id for holding in found.needed]) == needed


def test_what_is_kept_for_those_who_come_first_is_not_had() -> None:
    cluster = Cluster([make_node("a", gpus={"K80": 4}), make_node("b", gpus={"K80": 4})])
    early, late = (start(cluster, name, [make_demand(gpus=4)]) for name in ("early", "late"))
    assert early is not None
    assert late is not None
    place = ReservedPlace(make_demand(gpus=2), early.tasks[0][1].node, "K80")
    first = [Reservation("r", "alice", "x", [place], {}, frozenset(), True)]
    found = SoonestPlanner(cluster, {}, make_demand(gpus=3), first).find([early, late])
    assert found == Soonest([late], late.tasks[0][1].node, "K80")
    found = SoonestPlanner(cluster, {}, make_demand(gpus=2), first).find([early, late])
    assert found == Soonest([early], early.tasks[0][1].node, "K80")


def test_where_the_share_is_lacking_jobs_of_the_own_virtual_cluster_have_to_end() -> None:
    nodes = [make_node("a", gpus={"K80": 8})]
    cluster, quota = (
        Cluster(nodes),
        QuotaAccounting(nodes, [VirtualCluster("x", 50), VirtualCluster("y", 50)]),
    )
    other, mine = (start(cluster, name, [make_demand(gpus=count)]) for name, count in (("o", 1), ("m", 4)))
    assert other is not None
    assert mine is not None
    other.virtual_cluster = "y"
    for holding in (other, mine):
        demand, assignment, _ = holding.tasks[0]
        holding.tasks[0] = demand, assignment, of_gang([make_demand(gpus=demand.gpus, gpu_type="K80")])
        quota.book(holding.virtual_cluster, "alice", holding.amounts)
    demand = make_demand(gpus=3)

    def find(ends: list[JobHolding]) -> Soonest | None:
        allowance = Allowance(quota, "x", "alice", of_gang([demand]), Bound.GUARANTEE)
        return SoonestPlanner(cluster, {}, demand, (), allowance).find(ends)

    used = dict(quota.used("x"))
    assert find([other]) is None
    assert find([other, mine]) == Soonest([mine], "a", "K80")
    assert quota.used("x") == used
