from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.node import NodeState
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.preemption import GangCount, copies_on
from pai_scheduler.cluster.resources import Assignment, Demand
from tests.scheduler.making import make_demand, make_node

_SIZES = st.integers(0, 4)
_TYPES = st.sampled_from(["K80", "P100"])


@given(
    st.lists(st.tuples(_SIZES, _SIZES, _TYPES), min_size=1, max_size=4),
    st.tuples(st.integers(1, 3), st.integers(0, 2), st.sampled_from([None, "K80"])),
    st.integers(1, 6),
    st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=8),
    st.randoms(use_true_random=False),
)
def test_the_count_follows_what_is_taken_and_given_back(
    sizes: list[tuple[int, int, str]],
    asked: tuple[int, int, str | None],
    wanted: int,
    others: list[tuple[int, int]],
    chance: object,
) -> None:
    nodes = [make_node(f"n{number}", cpus, gpus={of: gpus}) for number, (cpus, gpus, of) in enumerate(sizes)]
    cluster = Cluster(nodes)
    gang = [make_demand(asked[0], gpus=asked[1], gpu_type=asked[2])] * wanted
    count = GangCount(cluster, gang[0], wanted)
    placed: list[tuple[Demand, Assignment]] = []
    for cpus, gpus in others:
        if placed and chance.random() < 0.4:  # type: ignore[attr-defined]
            demand, assignment = placed.pop()
            count.changing([assignment.node])
            cluster.release(demand, assignment)
        else:
            demand = make_demand(cpus, gpus=gpus)
            count.changing([node.name for node in nodes])
            found = cluster.place([demand])
            placed += [(demand, one) for one in found or ()]
        if chance.random() < 0.5:  # type: ignore[attr-defined]
            assert count.fits() is cluster.fits(gang)
    assert count.fits() is cluster.fits(gang)


def test_a_node_that_is_gone_or_shrank_or_is_lost_holds_nothing() -> None:
    cluster = Cluster([make_node("a", 2), make_node("lost", 8, state=NodeState.LOST)])
    count = GangCount(cluster, make_demand(1), 3)
    count.changing(["gone", "lost"])
    assert not count.fits()
    assert copies_on(cluster.uses["a"], make_demand(1)) == 2
    assert copies_on(cluster.uses["lost"], make_demand(1)) == 0
    cluster.occupy(make_demand(5), Assignment("a"))
    assert copies_on(cluster.uses["a"], make_demand(0, 1)) == 0
