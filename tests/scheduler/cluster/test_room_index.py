from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.queue_index import FreeRoom, RoomIndex
from pai_scheduler.cluster.resources import Demand
from tests.scheduler.making import make_demand

TYPES = ("A100", "K80")
DEMANDS = st.builds(
    make_demand,
    cpus=st.integers(1, 4),
    memory_mb=st.integers(1, 4),
    gpus=st.integers(0, 2),
    gpu_type=st.sampled_from([None, *TYPES]),
)
ROOMS = st.builds(
    FreeRoom,
    st.integers(0, 4),
    st.integers(0, 4),
    st.integers(0, 2),
    st.dictionaries(st.sampled_from(TYPES), st.integers(0, 2)),
)


def room(cpus: int = 8, memory_mb: int = 10_000, **gpus: int) -> FreeRoom:
    return FreeRoom(cpus, memory_mb, 1000, gpus)


def test_the_first_that_a_node_has_room_for_is_found() -> None:
    index: RoomIndex[int, str] = RoomIndex()
    index.add(1, "large", [make_demand(gpus=8)])
    index.add(2, "much memory", [make_demand(gpus=1, memory_mb=20_000)])
    index.add(3, "small", [make_demand(gpus=1)])
    index.add(4, "no GPU", [make_demand()])
    assert index.first([room(K80=1)]) == (3, "small")
    assert index.first([room()]) == (4, "no GPU")
    assert index.first([room(K80=1)], after=3) == (4, "no GPU")
    assert index.first([room(K80=1)], after=4) is None
    assert index.first([room(), room(K80=8)]) == (1, "large")


def test_gpus_of_any_type_have_to_be_of_one() -> None:
    index: RoomIndex[int, str] = RoomIndex()
    index.add(1, "two", [make_demand(gpus=2)])
    assert index.first([room(K80=1, A100=1)]) is None
    assert index.first([room(K80=1, A100=2)]) == (1, "two")


def test_what_was_taken_out_is_not_found() -> None:
    index: RoomIndex[int, str] = RoomIndex()
    demands = [make_demand(), make_demand(gpus=1)]
    index.add(1, "a", demands)
    assert index
    index.remove(1, demands)
    assert not index
    assert index.first([room(K80=1)]) is None


def holds(where: FreeRoom, demand: Demand) -> bool:
    types = [demand.gpu_type] if demand.gpu_type else list(where.gpus)
    return (
        (demand.cpus, demand.memory_mb, demand.storage_gb)
        == (
            min(demand.cpus, where.cpus),
            min(demand.memory_mb, where.memory_mb),
            min(demand.storage_gb, where.storage_gb),
        )
    ) and (not demand.gpus or any(where.gpus.get(one or "", 0) >= demand.gpus for one in types))


@given(st.lists(st.lists(DEMANDS, min_size=1, max_size=3), max_size=8), st.lists(ROOMS), st.integers(-1, 8))
def test_the_index_finds_what_a_look_at_everybody_finds(
    gangs: list[list[Demand]], rooms: list[FreeRoom], after: int
) -> None:
    index: RoomIndex[int, int] = RoomIndex()
    for position, gang in enumerate(gangs):
        index.add(position, position, set(gang))
    fitting = [
        position
        for position, gang in enumerate(gangs)
        if position > after and any(holds(where, demand) for where in rooms for demand in gang)
    ]
    found = index.first(rooms, after)
    assert (None if found is None else found[1]) == min(fitting, default=None)
