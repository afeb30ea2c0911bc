from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.locality import rearrange
from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.resources import Assignment, Demand
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.cluster.test_placement import check_placed, free
from tests.scheduler.making import make_demand, make_node


def started(cluster: Cluster, gang: list[Demand]) -> list[str]:
    placed = cluster.place(gang)
    assert placed is not None
    return [assignment.node for assignment in rearrange(cluster, gang, placed)]


def racks_of(cluster: Cluster, nodes: list[str]) -> set[str]:
    return {cluster.uses[name].node.rack for name in nodes}


def racked(*racks: str, gpus: int = 8, cpus: int = 64) -> list[Node]:
    counts = {"P100": gpus} if gpus else {}
    return [make_node(f"n{i}", cpus, 100_000, gpus=counts, rack=rack) for i, rack in enumerate(racks)]


def test_tasks_that_need_whole_nodes_are_placed_within_one_rack() -> None:
    cluster = Cluster(racked("r1", "r2", "r1", "r2", "r2"))
    assert racks_of(cluster, started(cluster, [make_demand(gpus=8)] * 3)) == {"r2"}


def test_of_two_racks_that_will_do_the_fuller_one_is_taken() -> None:
    cluster = Cluster(racked("r1", "", "r2", "r2", "r1", "r1"))
    gang = [make_demand(gpus=8)] * 2
    # (best fit alone would take n0 and n1: each rack would do for it, and r1 has one of them already)
    assert racks_of(cluster, started(cluster, gang)) == {"r1"}
    cluster = Cluster(racked("", "", "r1", "r2", "r1", "r2", "r1"))
    assert racks_of(cluster, started(cluster, gang)) == {"r2"}


def test_a_gang_that_no_rack_can_hold_is_placed_all_the_same() -> None:
    cluster = Cluster(racked("r1", "r2"))
    assert sorted(started(cluster, [make_demand(gpus=8)] * 2)) == ["n0", "n1"]


def test_a_gang_that_fits_one_node_gets_one_where_as_much_is_left_for_others() -> None:
    nodes = [make_node("small", gpus={"P100": 2}), make_node("large", gpus={"P100": 4})]
    cluster = Cluster(nodes)
    assert started(cluster, [make_demand(gpus=2)] * 2) == ["large", "large"]
    assert cluster.uses["small"].free_gpus == 2


def test_no_large_block_of_gpus_is_broken_for_the_sake_of_nearness() -> None:
    nodes = [
        make_node("a", gpus={"P100": 1}, rack="r1"),
        make_node("b", gpus={"P100": 1}, rack="r2"),
        make_node("c", gpus={"P100": 8}, rack="r3"),
    ]
    cluster = Cluster(nodes)
    assert sorted(started(cluster, [make_demand(gpus=1)] * 2)) == ["a", "b"]
    assert cluster.uses["c"].free_gpus == 8


def test_no_cores_beside_free_gpus_are_taken_for_the_sake_of_nearness() -> None:
    nodes = [
        make_node("a", cpus=4, rack="r1"),
        make_node("b", cpus=4, rack="r2"),
        make_node("c", cpus=8, gpus={"P100": 4}, rack="r3"),
    ]
    assert sorted(started(Cluster(nodes), [make_demand(cpus=4)] * 2)) == ["a", "b"]


def test_different_roles_come_near_each_other_too() -> None:
    cluster = Cluster(racked("r1", "r2", "r2"))
    gang = [make_demand(cpus=40), make_demand(gpus=8, cpus=40)]
    assert racks_of(cluster, started(cluster, gang)) == {"r2"}


def test_nodes_that_get_nothing_new_are_no_place_to_be_near() -> None:
    drained = make_node("n2", 64, 100_000, gpus={"P100": 8}, rack="r1", state=NodeState.DRAINED)
    cluster = Cluster([*racked("r1", "r2"), drained])
    assert sorted(started(cluster, [make_demand(gpus=8)] * 2)) == ["n0", "n1"]


def test_a_moved_task_keeps_its_ports() -> None:
    cluster = Cluster(racked("r1", "r2", "r2"), shares_host_ports=True)
    ports = [[PortRequest("http", 0, 1), PortRequest("web", number, 1)] for number in (80, 81)]
    gang = [make_demand(gpus=8, ports=some) for some in ports]
    placed = cluster.place(gang)
    assert placed is not None
    moved = rearrange(cluster, gang, placed)
    assert [one.ports for one in moved] == [one.ports for one in placed]
    assert {one.node for one in moved} == {"n1", "n2"}


def test_tasks_that_are_to_be_spread_get_a_node_each() -> None:
    cluster = Cluster(racked("r1", "r1", "r2", "r2"))
    gang = [make_demand(gpus=1, spread="worker")] * 4
    assert sorted(started(cluster, gang)) == ["n0", "n1", "n2", "n3"]


def test_tasks_that_are_spread_keep_the_gpu_type_that_they_ask_for() -> None:
    small = [make_node(f"p{i}", gpus={"P100": 1}) for i in range(2)]
    large = [make_node(f"k{i}", gpus={"K80": 4}) for i in range(2)]
    gang = [make_demand(gpus=1, gpu_type="K80", spread="worker")] * 2
    assert sorted(started(Cluster([*small, *large]), gang)) == ["k0", "k1"]


def test_more_tasks_than_nodes_are_spread_evenly() -> None:
    cluster = Cluster(racked("", "", "", gpus=0))
    nodes = started(cluster, [make_demand(spread="worker")] * 7)
    assert sorted(Counter(nodes).values()) == [2, 2, 3]


def test_each_role_is_spread_for_itself() -> None:
    cluster = Cluster(racked("", "", gpus=0))
    gang = [make_demand(spread=role) for role in ("ps", "ps", "worker", "worker")]
    nodes = started(cluster, gang)
    assert (len(set(nodes[:2])), len(set(nodes[2:]))) == (2, 2)


def test_a_gang_too_large_to_be_spread_in_time_stays_where_best_fit_put_it() -> None:
    cluster = Cluster([make_node("a", 2000, 1_000_000), make_node("b", 2000, 1_000_000)])
    assert set(started(cluster, [make_demand(spread="worker")] * 1001)) == {"a"}
    assert Counter(started(cluster, [make_demand(spread="worker")] * 1000)) == {"a": 500, "b": 500}


def test_what_cannot_be_spread_starts_together() -> None:
    cluster = Cluster([make_node("a", cpus=4), make_node("b", cpus=1)])
    gang = [make_demand(cpus=2, spread="worker")] * 2
    assert started(cluster, gang) == ["a", "a"]
    assert cluster.uses["a"].cpus == 0


NODES = st.lists(
    st.tuples(
        st.integers(1, 8),
        st.integers(1, 4),
        st.dictionaries(st.sampled_from(["P100", "K80"]), st.integers(1, 4), max_size=2),
        st.sampled_from(["", "r1", "r2", "r3"]),
        st.sampled_from([*[NodeState.READY] * 5, NodeState.DRAINED]),
    ),
    min_size=1,
    max_size=6,
).map(
    lambda nodes: [
        make_node(f"n{i}", cpus, memory * 100, gpus=gpus, rack=rack, state=state)
        for i, (cpus, memory, gpus, rack, state) in enumerate(nodes)
    ]
)


def gangs(spread: str) -> st.SearchStrategy[list[Demand]]:
    kinds = st.builds(
        make_demand,
        cpus=st.integers(1, 3),
        memory_mb=st.integers(1, 2).map(lambda n: n * 100),
        gpus=st.integers(0, 3),
        gpu_type=st.sampled_from([None, "P100", "K80"]),
        spread=st.just(spread),
        ports=st.sampled_from([(), (PortRequest("web", 0, 1),)]),
    )
    return st.lists(st.tuples(kinds, st.integers(1, 3)), min_size=1, max_size=2).map(
        lambda found: [demand for demand, count in found for _ in range(count)]
    )


def blocks(cluster: Cluster, gpu_type: str, size: int) -> int:
    return sum(len(use.gpus.get(gpu_type, ())) // size for use in cluster.uses.values())


@pytest.mark.parametrize("spread", ["", "worker"])
@given(data=st.data(), nodes=NODES, shares_host_ports=st.booleans())
def test_whatever_fits_is_placed_rightly_and_comes_back_whole(
    spread: str, data: st.DataObject, nodes: list[Node], shares_host_ports: bool
) -> None:
    cluster = Cluster(nodes, shares_host_ports=shares_host_ports)
    running: list[tuple[Demand, Assignment]] = []
    before = free(cluster)
    for gang in data.draw(st.lists(gangs(spread), max_size=3)):
        placed = cluster.place(gang)
        if placed is None:
            continue
        moved = rearrange(cluster, gang, placed)
        check_placed(nodes, gang, moved)
        running += zip(gang, moved, strict=True)
        given = Counter((one.node, index) for _, one in running for index in one.gpus)
        assert all(count == 1 for count in given.values())
        assert all(use.cpus >= 0 and use.memory_mb >= 0 for use in cluster.uses.values())
        for rack, known in cluster.racks.items():
            here = [use for use in cluster.uses.values() if use.node.rack == rack]
            assert (known.cpus, known.gpus) == (sum(u.cpus for u in here), sum(u.free_gpus for u in here))
    for demand, assignment in running:
        cluster.release(demand, assignment)
    assert free(cluster) == before


@given(nodes=NODES, gang=gangs(""))
def test_nearness_leaves_as_many_blocks_of_gpus_of_every_size_as_best_fit(
    nodes: list[Node], gang: list[Demand]
) -> None:
    cluster = Cluster(nodes)
    placed = cluster.place(gang)
    if placed is None:
        return
    sizes = [(kind, size) for kind in ("P100", "K80") for size in range(1, 5)]
    before = [blocks(cluster, *size) for size in sizes]
    moved = rearrange(cluster, gang, placed)
    assert all(
        now >= then for now, then in zip([blocks(cluster, *size) for size in sizes], before, strict=True)
    )
    types = [{cluster.uses[one.node].gpu_types[i] for i in one.gpus} for one in moved]
    assert types == [{cluster.uses[one.node].gpu_types[i] for i in one.gpus} for one in placed]


@given(nodes=NODES, gang=gangs("worker"))
def test_spreading_never_uses_fewer_nodes_than_best_fit(nodes: list[Node], gang: list[Demand]) -> None:
    cluster = Cluster(nodes)
    placed = cluster.place(gang)
    if placed is not None:
        before = {one.node for one in placed}
        assert len({one.node for one in rearrange(cluster, gang, placed)}) >= len(before)


def emptied(cluster: Cluster, gang: list[Demand]) -> list[str]:
    placed = cluster.place(gang)
    assert placed is not None
    return [assignment.node for assignment in rearrange(cluster, gang, placed, emptiest=True)]


def test_who_spreads_gets_the_nodes_with_most_gpus_free_in_turn() -> None:
    cluster = Cluster(racked("", "", ""))
    found = [emptied(cluster, [make_demand(gpus=1)])[0] for _ in range(6)]
    assert [set(found[:3]), set(found[3:])] == [{"n0", "n1", "n2"}] * 2
    assert {use.free_gpus for use in cluster.uses.values()} == {6}


def test_of_nodes_with_as_many_gpus_free_that_with_most_memory_is_the_emptiest() -> None:
    nodes = [make_node(f"n{i}", 8, memory, gpus={"P100": 2}) for i, memory in enumerate((4000, 9000, 6000))]
    assert emptied(Cluster(nodes), [make_demand(gpus=1)]) == ["n1"]


def test_the_tasks_of_a_gang_that_spreads_get_different_nodes_as_far_as_there_are_such() -> None:
    cluster = Cluster(racked("r1", "r1", "r2"))
    assert Counter(emptied(cluster, [make_demand(gpus=1)] * 5)).most_common() == [
        ("n0", 2),
        ("n1", 2),
        ("n2", 1),
    ]


def test_tasks_without_gpus_that_spread_keep_away_from_free_gpus() -> None:
    nodes = [make_node("a", 8, gpus={"P100": 4}), make_node("b", 4), make_node("c", 6)]
    cluster = Cluster(nodes)
    assert [emptied(cluster, [make_demand(cpus=2)])[0] for _ in range(6)] == ["c", "b", "c", "b", "c", "a"]


def test_a_node_on_which_nothing_of_it_may_be_is_never_the_emptiest() -> None:
    cluster, gang = Cluster(racked("", "")), [make_demand(gpus=1)]
    placed = cluster.place(gang, barred=frozenset({0}))
    assert placed is not None
    assert [one.node for one in rearrange(cluster, gang, placed, {0}, emptiest=True)] == ["n1"]


@given(data=st.data(), nodes=NODES, shares_host_ports=st.booleans())
def test_what_spreads_fits_has_the_same_types_and_comes_back_whole(
    data: st.DataObject, nodes: list[Node], shares_host_ports: bool
) -> None:
    cluster = Cluster(nodes, shares_host_ports=shares_host_ports)
    running: list[tuple[Demand, Assignment]] = []
    before = free(cluster)
    for gang in data.draw(st.lists(gangs(""), max_size=3)):
        placed = cluster.place(gang)
        if placed is None:
            continue
        types = [{cluster.uses[one.node].gpu_types[i] for i in one.gpus} for one in placed]
        moved = rearrange(cluster, gang, placed, emptiest=True)
        check_placed(nodes, gang, moved)
        assert types == [{cluster.uses[one.node].gpu_types[i] for i in one.gpus} for one in moved]
        assert len({one.node for one in moved}) >= len({one.node for one in placed})
        running += zip(gang, moved, strict=True)
        given = Counter((one.node, index) for _, one in running for index in one.gpus)
        assert all(count == 1 for count in given.values())
        assert all(use.cpus >= 0 and use.memory_mb >= 0 for use in cluster.uses.values())
    for demand, assignment in running:
        cluster.release(demand, assignment)
    assert free(cluster) == before


@given(gang_list=st.lists(gangs(""), max_size=6))
def test_on_one_node_the_same_gangs_start_whether_they_spread_or_not(gang_list: list[list[Demand]]) -> None:
    clusters = [Cluster([make_node("a", 8, 16_000, gpus={"P100": 4, "K80": 2})]) for _ in range(2)]
    for gang in gang_list:
        places = [cluster.place(gang) for cluster in clusters]
        assert (places[0] is None) == (places[1] is None)
        if places[1] is not None:
            rearrange(clusters[1], gang, places[1], emptiest=True)
        assert free(clusters[0]) == free(clusters[1])
