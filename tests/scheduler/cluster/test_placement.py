from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.cluster.placement import PORT_RANGE, Cluster
from pai_scheduler.cluster.resources import Assignment, Demand
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.making import make_demand, make_node


def free(cluster: Cluster) -> dict[str, tuple[int, int, int, dict[str, list[int]], set[int]]]:
    return {
        name: (use.cpus, use.memory_mb, use.storage_gb, dict(use.gpus), set(use.ports))
        for name, use in cluster.uses.items()
    }


def nodes_of(placed: list[Assignment] | None) -> list[str]:
    assert placed is not None
    return [assignment.node for assignment in placed]


def test_a_gang_is_placed_whole_or_not_at_all() -> None:
    cluster = Cluster([make_node("a", cpus=2), make_node("b", cpus=2)])
    before = free(cluster)
    assert cluster.place([make_demand(cpus=2)] * 3) is None
    assert free(cluster) == before
    assert sorted(nodes_of(cluster.place([make_demand(cpus=2)] * 2))) == ["a", "b"]


@pytest.mark.parametrize(
    "demand",
    [
        make_demand(cpus=9),
        make_demand(memory_mb=10_001),
        make_demand(storage_gb=1001),
        make_demand(gpus=3),
        make_demand(gpus=1, gpu_type="V100"),
    ],
)
def test_each_resource_alone_can_keep_a_task_out(demand: Demand) -> None:
    assert Cluster([make_node(gpus={"P100": 2})]).place([demand]) is None


def test_what_is_released_can_be_given_again() -> None:
    cluster = Cluster([make_node(gpus={"P100": 2})], shares_host_ports=True)
    before = free(cluster)
    demand = make_demand(cpus=8, memory_mb=10_000, gpus=2, ports=[PortRequest("web", 8080, 2)])
    placed = cluster.place([demand])
    assert placed is not None
    assert cluster.place([make_demand()]) is None
    cluster.release(demand, placed[0])
    assert free(cluster) == before
    assert cluster.place([demand]) == placed


def test_no_gpu_is_given_twice() -> None:
    cluster = Cluster([make_node(gpus={"P100": 4})])
    placed = cluster.place([make_demand(gpus=1), make_demand(gpus=2), make_demand(gpus=1)])
    assert placed is not None
    given = [index for assignment in placed for index in assignment.gpus]
    assert sorted(given) == [0, 1, 2, 3]
    assert [len(assignment.gpus) for assignment in placed] == [1, 2, 1]


def test_a_small_task_takes_the_smallest_block_of_gpus_so_that_large_ones_stay_whole() -> None:
    cluster = Cluster([make_node("big", gpus={"P100": 8}), make_node("small", gpus={"P100": 2})])
    assert nodes_of(cluster.place([make_demand(gpus=1)])) == ["small"]
    assert nodes_of(cluster.place([make_demand(gpus=1)])) == ["small"]
    assert nodes_of(cluster.place([make_demand(gpus=8)])) == ["big"]


def test_within_a_gang_the_hardest_task_chooses_first() -> None:
    cluster = Cluster([make_node("big", gpus={"P100": 4}), make_node("small", gpus={"P100": 2})])
    placed = cluster.place([make_demand(gpus=2), make_demand(gpus=4)])
    assert nodes_of(placed) == ["small", "big"]


def test_a_task_without_gpus_keeps_away_from_gpus_even_where_that_costs_a_larger_block_of_cores() -> None:
    cluster = Cluster([make_node("gpus", cpus=2, gpus={"P100": 2}), make_node("cores", cpus=64)])
    assert nodes_of(cluster.place([make_demand()])) == ["cores"]


def test_among_nodes_without_gpus_the_fullest_is_taken() -> None:
    cluster = Cluster([make_node("large", cpus=64), make_node("small", cpus=2)])
    assert nodes_of(cluster.place([make_demand(cpus=2)])) == ["small"]
    assert nodes_of(cluster.place([make_demand(cpus=2)])) == ["large"]


def test_a_named_gpu_type_is_kept_to() -> None:
    cluster = Cluster([make_node("p", gpus={"P100": 1}), make_node("k", gpus={"K80": 8})])
    assert nodes_of(cluster.place([make_demand(gpus=1, gpu_type="K80")])) == ["k"]
    assert cluster.place([make_demand(gpus=2, gpu_type="P100")]) is None


def test_gpus_of_any_type_are_all_of_one_type_for_one_task() -> None:
    cluster = Cluster([make_node(gpus={"P100": 1, "K80": 2, "V100": 1})])
    assert cluster.place([make_demand(gpus=3)]) is None
    placed = cluster.place([make_demand(gpus=2)])
    assert placed is not None
    assert placed[0].gpus == (1, 2)


def test_tasks_of_one_gang_may_have_different_types_where_any_will_do() -> None:
    cluster = Cluster([make_node("p", gpus={"P100": 1}), make_node("k", gpus={"K80": 1})])
    assert sorted(nodes_of(cluster.place([make_demand(gpus=1)] * 2))) == ["k", "p"]


def test_nothing_is_placed_on_a_node_that_is_not_ready() -> None:
    cluster = Cluster([make_node("ill", state=NodeState.LOST)])
    assert cluster.place([make_demand()]) is None


def test_a_fixed_port_is_given_as_asked() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    placed = cluster.place([make_demand(ports=[PortRequest("web", 8080, 3)])])
    assert placed is not None
    assert placed[0].ports == {"web": (8080, 8081, 8082)}


def test_a_fixed_port_is_given_once_where_all_nodes_stand_for_one_machine() -> None:
    demand = make_demand(ports=[PortRequest("web", 8080, 1)])
    cluster = Cluster([make_node("a"), make_node("b")], shares_host_ports=True)
    assert cluster.place([demand] * 2) is None
    placed = cluster.place([demand])
    assert placed is not None
    assert cluster.place([demand]) is None
    cluster.release(demand, placed[0])
    assert cluster.place([demand]) is not None


def test_the_choice_of_ports_begins_where_it_is_told_and_goes_on_from_there() -> None:
    demand = make_demand(ports=[PortRequest("web", 0, 1)])
    cluster = Cluster([make_node()], shares_host_ports=True, first_port=500)
    placed = cluster.place([demand])
    assert placed is not None
    assert placed[0].ports == {"web": (PORT_RANGE[500],)}
    again = cluster.emptied().place([demand])
    assert again is not None
    assert again[0].ports == {"web": (PORT_RANGE[501],)}


def test_a_fixed_port_is_given_to_every_task_where_each_has_a_network_of_its_own() -> None:
    demand = make_demand(ports=[PortRequest("web", 8080, 1)])
    assert Cluster([make_node()]).place([demand] * 3) is not None


def test_chosen_ports_are_in_the_range_and_differ_within_a_task_and_a_node() -> None:
    demand = make_demand(ports=[PortRequest("http", 0, 1), PortRequest("data", 0, 3)])
    placed = Cluster([make_node()], shares_host_ports=True).place([demand] * 4)
    assert placed is not None
    ports = [port for assignment in placed for label in assignment.ports.values() for port in label]
    assert len(ports) == len(set(ports)) == 16
    assert all(port in PORT_RANGE for port in ports)


def test_a_chosen_port_never_is_one_that_the_same_task_has_fixed() -> None:
    first = PORT_RANGE[0]
    placed = Cluster([make_node()]).place(
        [make_demand(ports=[PortRequest("any", 0, 2), PortRequest("mine", first, 2)])]
    )
    assert placed is not None
    assert placed[0].ports == {"any": (first + 2, first + 3), "mine": (first, first + 1)}


def test_a_port_just_freed_rests_while_others_are_left() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    demand = make_demand(ports=[PortRequest("http", 0, 1)])
    first = cluster.place([demand])
    assert first is not None
    cluster.release(demand, first[0])
    second = cluster.place([demand])
    assert second is not None
    assert second[0].ports != first[0].ports


def test_when_the_ports_run_out_the_task_waits() -> None:
    everything = make_demand(ports=[PortRequest("all", 0, len(PORT_RANGE))])
    cluster = Cluster([make_node("a"), make_node("b")], shares_host_ports=True)
    assert cluster.place([everything]) is not None
    assert cluster.place([make_demand(ports=[PortRequest("one", 0, 1)])]) is None
    assert cluster.place([make_demand()]) is not None


def test_checking_whether_a_gang_fits_reserves_nothing() -> None:
    cluster = Cluster([make_node(gpus={"P100": 2})], shares_host_ports=True)
    before = free(cluster)
    assert cluster.fits([make_demand(gpus=1, ports=[PortRequest("web", 80, 1)])] * 1)
    assert not cluster.fits([make_demand(gpus=3)])
    assert free(cluster) == before


def test_what_runs_is_booked_again_after_a_restart() -> None:
    cluster = Cluster([make_node(gpus={"P100": 2})], shares_host_ports=True)
    demand = make_demand(cpus=3, gpus=1, ports=[PortRequest("web", 8080, 1)])
    cluster.occupy(demand, Assignment("a", (1,), {"web": (8080,)}))
    assert free(cluster)["a"] == (5, 9900, 1000, {"P100": [0]}, {8080})


def test_a_task_on_a_node_that_is_gone_is_neither_booked_nor_missed() -> None:
    cluster = Cluster([make_node("a")])
    before = free(cluster)
    cluster.occupy(make_demand(), Assignment("gone"))
    cluster.release(make_demand(), Assignment("gone"))
    assert free(cluster) == before


def test_a_gpu_that_the_node_no_longer_has_does_not_come_back_with_its_task() -> None:
    cluster = Cluster([make_node(gpus={"P100": 1})])
    running = Assignment("a", (0, 1))
    cluster.occupy(make_demand(gpus=2), running)
    assert cluster.place([make_demand(gpus=1)]) is None
    cluster.release(make_demand(gpus=2), running)
    assert cluster.uses["a"].gpus == {"P100": [0]}


# -- against brute force ----------------------------------------------------------------------

NODES = st.lists(
    st.builds(
        make_node,
        cpus=st.integers(1, 4),
        memory_mb=st.integers(1, 4).map(lambda n: n * 100),
        gpus=st.dictionaries(st.sampled_from(["P100", "K80"]), st.integers(1, 3), max_size=2),
        state=st.sampled_from([*[NodeState.READY] * 3, *NodeState]),
    ),
    max_size=3,
).map(lambda nodes: [make_named(node, number) for number, node in enumerate(nodes)])

DEMANDS = st.builds(
    make_demand,
    cpus=st.integers(1, 3),
    memory_mb=st.integers(1, 3).map(lambda n: n * 100),
    gpus=st.integers(0, 2),
    gpu_type=st.sampled_from([None, "P100", "K80"]),
    ports=st.sampled_from([(), (PortRequest("web", 80, 1),)]),
)


def make_named(node: Node, number: int) -> Node:
    return replace(node, name=f"n{number}")


def could_be_placed(nodes: list[Node], gang: list[Demand], *, shares_host_ports: bool) -> bool:
    """Try every way to give each task a node and a type of GPU."""
    places = [(node, gpu_type) for node in nodes if node.ready for gpu_type in [*node.gpu_counts, None]]
    for chosen in itertools.product(places, repeat=len(gang)):
        used: dict[str, Counter[object]] = defaultdict(Counter)
        for (node, gpu_type), demand in zip(chosen, gang, strict=True):
            if bool(demand.gpus) != (gpu_type is not None):
                break
            if demand.gpus and demand.gpu_type not in (None, gpu_type):
                break
            used[node.name]["cpus"] += demand.cpus
            used[node.name]["memory"] += demand.memory_mb
            used[node.name][gpu_type] += demand.gpus
            # the one fixed port there is; shared, all nodes have it once together
            used["all"]["port"] += len(demand.ports) if shares_host_ports else 0
        else:
            if used["all"]["port"] <= 1 and all(
                used[node.name]["cpus"] <= node.cpus
                and used[node.name]["memory"] <= node.memory_mb
                and all(used[node.name][kind] <= count for kind, count in node.gpu_counts.items())
                for node in nodes
            ):
                return True
    return False


def check_placed(nodes: list[Node], gang: list[Demand], placed: list[Assignment]) -> None:
    by_name = {node.name: node for node in nodes}
    cpus, memory, gpus = Counter[str](), Counter[str](), Counter[tuple[str, int]]()
    for demand, assignment in zip(gang, placed, strict=True):
        node = by_name[assignment.node]
        assert node.ready
        cpus[node.name] += demand.cpus
        memory[node.name] += demand.memory_mb
        types = {gpu.type for gpu in node.gpus if gpu.index in assignment.gpus}
        assert len(assignment.gpus) == demand.gpus
        assert len(types) == (1 if demand.gpus else 0)
        assert demand.gpus == 0 or demand.gpu_type in (None, *types)
        gpus.update((node.name, index) for index in assignment.gpus)
    assert all(cpus[name] <= node.cpus and memory[name] <= node.memory_mb for name, node in by_name.items())
    assert all(count == 1 for count in gpus.values())


@given(NODES, st.lists(DEMANDS, min_size=1, max_size=3), st.booleans())
def test_what_is_placed_is_possible_and_comes_back_whole(
    nodes: list[Node], gang: list[Demand], shares_host_ports: bool
) -> None:
    cluster = Cluster(nodes, shares_host_ports=shares_host_ports)
    before = free(cluster)
    placed = cluster.place(gang)
    if placed is not None:
        assert could_be_placed(nodes, gang, shares_host_ports=shares_host_ports)
        check_placed(nodes, gang, placed)
        for demand, assignment in zip(gang, placed, strict=True):
            cluster.release(demand, assignment)
    assert free(cluster) == before


@given(NODES, DEMANDS, st.integers(1, 3), st.booleans())
def test_tasks_of_one_kind_are_placed_whenever_that_is_possible(
    nodes: list[Node], demand: Demand, count: int, shares_host_ports: bool
) -> None:
    gang = [demand] * count
    placed = Cluster(nodes, shares_host_ports=shares_host_ports).place(gang)
    assert (placed is not None) == could_be_placed(nodes, gang, shares_host_ports=shares_host_ports)


def test_other_ports_are_given_for_those_that_other_programs_have() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    demand = make_demand(ports=[PortRequest("data", 0, 3), PortRequest("mine", PORT_RANGE[50], 1)])
    placed = cluster.place([demand, make_demand(ports=[PortRequest("http", 0, 1)])])
    assert placed is not None
    first, _ = placed
    taken = {first.ports["data"][1], PORT_RANGE[50], *PORT_RANGE[4:20]}
    other = cluster.give_other_ports(demand, first, taken)
    assert other is not None
    kept, given, last = other.ports["data"]
    assert (kept, last) == (first.ports["data"][0], first.ports["data"][2])
    assert given == PORT_RANGE[20]
    assert other.ports["mine"] == first.ports["mine"]
    assert first.ports["data"][1] not in cluster.uses["a"].ports
    assert given in cluster.uses["a"].ports


def test_nothing_changes_where_other_programs_have_all_ports() -> None:
    cluster = Cluster([make_node()], shares_host_ports=True)
    demand = make_demand(ports=[PortRequest("http", 0, 1)])
    placed = cluster.place([demand])
    assert placed is not None
    before = free(cluster)
    assert cluster.give_other_ports(demand, placed[0], set(PORT_RANGE)) is None
    assert free(cluster) == before


def test_there_are_ports_for_the_largest_job_and_none_is_the_kernels() -> None:
    # 10,000 tasks, with a port for http and one for ssh each
    tasks = [make_demand(cpus=1, memory_mb=1, ports=[PortRequest("http", 0, 1), PortRequest("ssh", 0, 1)])]
    node = make_node(cpus=10_000, memory_mb=10**9, storage_gb=10**9)
    placed = Cluster([node], shares_host_ports=True).place(tasks * 10_000)
    assert placed is not None
    numbers = {port for assignment in placed for label in assignment.ports.values() for port in label}
    assert len(numbers) == 20_000
    assert max(numbers) < 32768


def test_tasks_without_cores_may_have_room_where_no_core_is_free() -> None:
    cluster = Cluster([make_node("a", cpus=2)])
    (kept,) = cluster.place([make_demand(cpus=2)]) or []
    gang = [make_demand(cpus=0)] * 2
    assert cluster.may_hold(gang, None, {"a": [(make_demand(cpus=2), kept)]})
    assert cluster.may_hold(gang)
    assert cluster.place(gang)


_SIZES = st.integers(0, 4)


@given(
    st.lists(st.tuples(_SIZES, _SIZES, st.sampled_from(["K80", "P100"])), min_size=1, max_size=5),
    st.tuples(_SIZES, _SIZES, st.sampled_from([None, "K80", "P100"])),
    st.integers(2, 9),
)
def test_equal_tasks_have_room_exactly_where_they_are_counted(
    nodes: list[tuple[int, int, str]], asked: tuple[int, int, str | None], count: int
) -> None:
    cluster = Cluster(
        [make_node(f"n{number}", cpus, gpus={of: gpus}) for number, (cpus, gpus, of) in enumerate(nodes)]
    )
    gang = [make_demand(asked[0], gpus=asked[1], gpu_type=asked[2])] * count
    assert cluster.counts_exactly(gang)
    assert cluster.may_hold(gang) is cluster.fits(gang)


def test_tasks_are_not_counted_exactly_where_that_may_err() -> None:
    mixed = Cluster([make_node(cpus=2, gpus={"K80": 2, "P100": 2})])
    gang = [make_demand(1, gpus=1)] * 4
    assert mixed.may_hold(gang)
    assert not mixed.fits(gang)
    assert not mixed.counts_exactly(gang)
    assert mixed.counts_exactly([make_demand(1, gpus=1, gpu_type="K80")] * 4)
    one = Cluster([make_node()], shares_host_ports=True)
    assert not one.counts_exactly([make_demand(ports=[PortRequest("ssh", 0, 1)])] * 2)
    assert not one.counts_exactly([make_demand(1), make_demand(2)])
    assert not one.counts_exactly([make_demand(0, 0)] * 2)


@pytest.mark.parametrize(
    ("ports", "shared", "only"),
    [
        ([], True, True),
        ([PortRequest("ssh", 0, 1)], False, True),
        ([PortRequest("web", 5000, 1)], False, True),
        ([PortRequest("ssh", 0, 1)], True, False),
        ([PortRequest("many", 0, len(PORT_RANGE) + 1)], False, False),
    ],
)
def test_a_task_needs_room_only_where_its_ports_are_its_own(
    ports: list[PortRequest], shared: bool, only: bool
) -> None:
    cluster = Cluster([make_node()], shares_host_ports=shared)
    assert cluster.needs_room_only(make_demand(ports=ports)) is only
