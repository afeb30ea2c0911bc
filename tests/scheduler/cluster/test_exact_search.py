from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster import bin_packing
from pai_scheduler.cluster.bin_packing import Budget, ExactSearch, NodeRoom, best_fit_may_err, enough_gpus
from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.cluster.placement import PORT_RANGE, Cluster
from pai_scheduler.cluster.resources import Demand
from pai_scheduler.job.spec import PortRequest
from tests.scheduler.cluster.oracle import fits, free_now
from tests.scheduler.cluster.test_placement import check_placed, free
from tests.scheduler.making import make_demand, make_node
from tests.testbed.properties import examples

#: best fit puts the GPU task on b, whose GPUs are fewest, and the five cores have nowhere to go
NODES = [make_node("a", cpus=4, gpus={"P100": 2}), make_node("b", cpus=5, gpus={"P100": 1})]
GANG = [make_demand(cpus=4, gpus=1), make_demand(cpus=5)]


def test_a_gang_for_which_best_fit_finds_no_room_is_placed_where_there_is_some() -> None:
    placed = Cluster(NODES).place(GANG)
    assert placed is not None
    assert [(one.node, one.gpus) for one in placed] == [("a", (0,)), ("b", ())]


def test_an_exact_search_reserves_nothing() -> None:
    cluster = Cluster(NODES)
    before = free(cluster)
    assert cluster.fits(GANG)
    assert not cluster.fits([*GANG, make_demand(cpus=5)])
    assert free(cluster) == before


def test_where_too_few_ports_are_left_nothing_is_booked() -> None:
    gang = [GANG[0], make_demand(cpus=5, ports=[PortRequest("all", 0, len(PORT_RANGE))])]
    cluster = Cluster([*NODES, make_node("c", cpus=1)], shares_host_ports=True)
    assert cluster.place([make_demand(ports=[PortRequest("one", 0, 1)])]) is not None
    before = free(cluster)
    assert cluster.place(gang) is None
    assert free(cluster) == before


def test_a_port_that_one_task_names_is_not_chosen_for_another() -> None:
    chosen = make_demand(cpus=2, ports=[PortRequest("rest", 0, len(PORT_RANGE) - 1)])
    named = make_demand(ports=[PortRequest("web", PORT_RANGE[5], 1)])
    placed = Cluster([make_node()], shares_host_ports=True).place([chosen, named])
    assert placed is not None
    assert PORT_RANGE[5] not in placed[0].ports["rest"]


def test_a_gang_that_was_refused_is_placed_once_there_is_room() -> None:
    cluster = Cluster(NODES)
    running = cluster.place([make_demand(cpus=2)])
    assert running is not None
    assert cluster.place(GANG) is None
    cluster.release(make_demand(cpus=2), running[0])
    assert cluster.place(GANG) is not None


class Rooms:
    """Counts how often somebody looks."""

    def __init__(self, *rooms: NodeRoom) -> None:
        self.rooms = rooms
        self.looks = 0

    def __call__(self) -> list[NodeRoom]:
        self.looks += 1
        return list(self.rooms)


def test_what_was_refused_is_refused_again_without_a_look_until_something_changes() -> None:
    look, rooms = ExactSearch(), Rooms(NodeRoom("a", 3, 1000, 0, {}))
    gang = [make_demand(cpus=2), make_demand(cpus=3)]
    assert [look.arrange(state, rooms, gang, None) for state in (1, 1, 2)] == [None] * 3
    assert rooms.looks == 2
    assert look.arrange(1, rooms, gang, {"P100": 1}) is None
    assert look.arrange(1, rooms, gang[:1], None) == (("a", None),)
    assert rooms.looks == 4


def test_what_was_not_found_with_all_steps_allowed_is_remembered_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bin_packing, "BUDGET", 1)
    look, rooms = ExactSearch(), Rooms(NodeRoom("a", 4, 1000, 0, {}), NodeRoom("b", 5, 1000, 0, {}))
    gang = [make_demand(cpus=2), make_demand(cpus=5)]
    assert [look.arrange(0, rooms, gang, None) for _ in range(2)] == [None, None]
    assert rooms.looks == 1


def test_gpus_are_counted_by_type_and_in_all() -> None:
    free = {"P100": 2, "K80": 1}
    assert enough_gpus([make_demand(gpus=2, gpu_type="P100"), make_demand(gpus=1), make_demand()], free)
    assert not enough_gpus([make_demand(gpus=2, gpu_type="P100"), make_demand(gpus=2)], free)
    assert not enough_gpus([make_demand(gpus=2, gpu_type="K80")], free)
    assert enough_gpus([make_demand()], {})


def test_refusals_are_not_remembered_without_end() -> None:
    look, rooms = ExactSearch(), Rooms()
    for state in range(3 * bin_packing._MEMORY):
        assert look.arrange(state, rooms, GANG, None) is None
    assert len(look._refused) <= bin_packing._MEMORY


def test_when_the_steps_are_used_up_nothing_is_found_until_more_are_allowed() -> None:
    look, rooms = ExactSearch(), Rooms(*(NodeRoom(f"n{number}", 8, 100_000, 0, {}) for number in range(4)))
    gang = [make_demand(cpus=cpus) for cpus in (5, 4, 3, 2, 2)]
    assert look.arrange(0, rooms, gang, None) is not None
    look._left = Budget(0)
    assert look.arrange(0, rooms, gang, None) is None
    look.allow_more()
    assert look._left.left == bin_packing.ALLOWANCE
    assert look.arrange(0, rooms, gang, None) is not None
    assert look._left.left < bin_packing.ALLOWANCE


def test_steps_are_not_saved_without_end() -> None:
    look = ExactSearch()
    look.allow_more()
    assert look._left.left == bin_packing.MOST_SAVED


def test_equal_tasks_need_no_second_look_unless_types_are_limited_apart() -> None:
    assert not best_fit_may_err([make_demand(gpus=1)] * 2, None)
    assert not best_fit_may_err([make_demand(gpus=1)], {"P100": 1})
    assert best_fit_may_err([make_demand(gpus=1)] * 2, {"P100": 1})
    assert not best_fit_may_err([make_demand(gpus=1, gpu_type="P100")] * 2, {"P100": 1})
    assert best_fit_may_err([make_demand(), make_demand(cpus=2)], None)


SMALL_NODES = st.lists(
    st.tuples(
        st.integers(1, 5),
        st.integers(1, 5),
        st.dictionaries(st.sampled_from(["P100", "K80"]), st.integers(1, 3), max_size=2),
        st.sampled_from([*[NodeState.READY] * 3, NodeState.LOST]),
    ),
    max_size=4,
).map(
    lambda many: [
        make_node(f"n{number}", cpus, memory * 100, gpus=gpus, state=state)
        for number, (cpus, memory, gpus, state) in enumerate(many)
    ]
)
DEMANDS = st.builds(
    make_demand,
    cpus=st.integers(1, 4),
    memory_mb=st.integers(1, 3).map(lambda n: n * 100),
    gpus=st.sampled_from([0, 0, 1, 1, 2]),
    gpu_type=st.sampled_from([None, None, "P100", "K80"]),
    ports=st.sampled_from(
        [(), (), (PortRequest("http", 0, 2),), (PortRequest("web", 80, 2),), (PortRequest("my", 20_001, 1),)]
    ),
)
GANGS = st.lists(DEMANDS, min_size=1, max_size=3).flatmap(
    lambda roles: st.lists(st.sampled_from(roles), min_size=1, max_size=5)
)
GPU_ROOM = st.none() | st.dictionaries(st.sampled_from(["P100", "K80"]), st.integers(0, 4), max_size=2)


@settings(max_examples=examples(200), deadline=None)
@given(SMALL_NODES, st.lists(DEMANDS, max_size=2), GANGS, GPU_ROOM, st.booleans())
def test_any_gang_is_placed_exactly_when_that_is_possible(
    nodes: list[Node],
    running: list[Demand],
    gang: list[Demand],
    gpu_room: dict[str, int] | None,
    shares_host_ports: bool,
) -> None:
    cluster = Cluster(nodes, shares_host_ports=shares_host_ports)
    cluster.place(running)
    taken = set().union(*(use.ports for use in cluster.uses.values())) if shares_host_ports else None
    before, possible = free(cluster), fits(free_now(cluster), gang, gpu_room=gpu_room, taken_ports=taken)
    placed = cluster.place(gang, gpu_room)
    assert (placed is not None) == possible
    if placed is not None:
        check_placed(nodes, gang, placed)
        numbers = [port for one in placed for ports in one.ports.values() for port in ports]
        assert not shares_host_ports or len(set(numbers)) == len(numbers)
        for demand, assignment in zip(gang, placed, strict=True):
            cluster.release(demand, assignment)
    assert free(cluster) == before
