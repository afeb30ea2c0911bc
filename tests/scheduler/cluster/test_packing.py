from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster.bin_packing import Budget, NoArrangement, NodeRoom, Place, arrange
from pai_scheduler.cluster.resources import Demand
from tests.scheduler.cluster.oracle import Free, fits
from tests.scheduler.making import make_demand
from tests.testbed.properties import examples

IMPOSSIBLE, UNKNOWN = NoArrangement.IMPOSSIBLE, NoArrangement.UNKNOWN


def room(name: str, cpus: int = 8, memory_mb: int = 10_000, storage_gb: int = 1000, **gpus: int) -> NodeRoom:
    return NodeRoom(name, cpus, memory_mb, storage_gb, gpus)


def check(
    rooms: Sequence[NodeRoom],
    gang: Sequence[Demand],
    places: tuple[Place, ...] | NoArrangement,
    gpu_room: Mapping[str, int] | None = None,
) -> None:
    """Book every place by itself, as one who knows nothing of how it was found."""
    assert not isinstance(places, NoArrangement)
    assert len(places) == len(gang)
    used: dict[str, Counter[str]] = defaultdict(Counter)
    for demand, (node, gpu_type) in zip(gang, places, strict=True):
        used[node].update(cpus=demand.cpus, memory_mb=demand.memory_mb, storage_gb=demand.storage_gb)
        assert (gpu_type is not None) == bool(demand.gpus)
        if gpu_type is not None:
            assert demand.gpu_type in (None, gpu_type)
            used[node][gpu_type] += demand.gpus
    for name, sums in used.items():
        (there,) = [one for one in rooms if one.node == name]
        for what, number in sums.items():
            free = there.gpus[what] if what in there.gpus else getattr(there, what)
            assert number <= free, (name, what)
    if gpu_room is not None:
        for gpu_type in ("P100", "K80"):
            assert sum(sums[gpu_type] for sums in used.values()) <= gpu_room.get(gpu_type, 0)


def test_a_task_that_must_leave_the_best_fitting_node_to_another_role_does() -> None:
    # best fit puts the 4 cores of the GPU task where only 5 are, and the 5 cores have nowhere to go
    rooms = [room("a", cpus=5, P100=1), room("b", cpus=4, P100=2)]
    gang = [make_demand(cpus=4, gpus=1), make_demand(cpus=5)]
    check(rooms, gang, arrange(rooms, gang))


def test_nothing_asked_for_has_its_arrangement() -> None:
    assert arrange([], []) == ()


def test_tasks_that_ask_for_gpus_only_are_arranged() -> None:
    gang = [make_demand(cpus=0, memory_mb=0, storage_gb=0, gpus=gpus) for gpus in (1, 2, 2)]
    rooms = [room("a", P100=2), room("b", P100=3)]
    check(rooms, gang, arrange(rooms, gang))


def test_without_nodes_there_is_none() -> None:
    assert arrange([], [make_demand()]) is IMPOSSIBLE


def test_a_node_that_shrank_under_what_runs_takes_nothing_more() -> None:
    assert arrange([room("a", storage_gb=-1)], [make_demand(storage_gb=0)]) is IMPOSSIBLE


def test_a_limit_on_a_type_sends_tasks_of_any_type_to_the_other() -> None:
    rooms = [room("a", cpus=1, P100=1, K80=1), room("b", P100=1)]
    gang = [make_demand(gpus=1)] * 2
    check(rooms, gang, arrange(rooms, gang, {"P100": 1, "K80": 1}), {"P100": 1, "K80": 1})
    assert arrange(rooms, gang, {"K80": 1}) is IMPOSSIBLE
    assert arrange(rooms, gang, {"P100": 2}) == (("a", "P100"), ("b", "P100"))


def test_what_a_limited_type_allows_is_kept_for_the_task_that_has_no_other_choice() -> None:
    rooms = [room("small", P100=1), room("large", P100=2), room("other", K80=1)]
    gang = [make_demand(gpus=1), make_demand(gpus=2)]
    assert arrange(rooms, gang, {"P100": 2, "K80": 1}) == (("other", "K80"), ("large", "P100"))


def test_a_limit_on_a_type_that_nobody_wants_is_no_limit() -> None:
    rooms = [room("a", P100=1, K80=1)]
    assert arrange(rooms, [make_demand(gpus=1, gpu_type="K80"), make_demand()], {"P100": -2, "K80": 1}) == (
        ("a", "K80"),
        ("a", None),
    )


def test_beyond_its_budget_it_says_that_it_does_not_know() -> None:
    rooms = [room(f"n{number}", cpus=7 + number, memory_mb=1000 * number) for number in range(1, 6)]
    gang = [make_demand(cpus=cpus, memory_mb=500 * cpus) for cpus in (2, 3, 4, 5, 6, 7)]
    check(rooms, gang, arrange(rooms, gang))
    assert arrange(rooms, gang, budget=Budget(8)) is UNKNOWN


def test_a_gang_that_counting_rules_out_is_refused_in_few_steps() -> None:
    rooms = [room("a", P100=3), room("b", P100=3)]
    gang = [make_demand(gpus=2), make_demand(gpus=2, cpus=2), make_demand(gpus=2, cpus=3)]
    assert arrange(rooms, [*gang, make_demand(cpus=16)], budget=Budget(9)) is IMPOSSIBLE
    assert arrange(rooms, [make_demand(gpus=2)] * 3, budget=Budget(9)) is IMPOSSIBLE


@pytest.mark.parametrize("spare", [0, 1])
def test_many_equal_nodes_are_looked_at_once(spare: int) -> None:
    # three cores each: one task of two cores and one of one core; both kinds by themselves would fit more
    rooms = [room(f"n{number}", cpus=3) for number in range(1000)]
    gang = [make_demand(cpus=2)] * 1000 + [make_demand(cpus=1)] * (1000 + 1 - spare)
    answer = arrange(rooms, gang)
    if spare:
        check(rooms, gang, answer)
    else:
        assert answer is IMPOSSIBLE


SIZES = st.integers(0, 5)
GPUS = st.dictionaries(st.sampled_from(["P100", "K80"]), st.integers(0, 4), max_size=2)
ROOMS = st.lists(
    st.tuples(st.integers(-1, 6), st.integers(0, 6).map(lambda n: n * 100), st.integers(0, 3), GPUS),
    max_size=4,
).map(
    lambda many: [
        NodeRoom(f"n{number}", cpus, memory, storage, gpus)
        for number, (cpus, memory, storage, gpus) in enumerate(many)
    ]
)
DEMANDS = st.builds(
    make_demand,
    cpus=st.integers(1, 4),
    memory_mb=st.integers(1, 3).map(lambda n: n * 100),
    storage_gb=st.sampled_from([0, 0, 0, 1, 2]),
    gpus=st.sampled_from([0, 0, 1, 1, 2, 3]),
    gpu_type=st.sampled_from([None, None, "P100", "K80"]),
)
#: a few roles with some tasks each, mixed up
GANGS = st.lists(DEMANDS, min_size=1, max_size=4).flatmap(
    lambda roles: st.lists(st.sampled_from(roles), min_size=1, max_size=6)
)
GPU_ROOM = st.none() | st.dictionaries(st.sampled_from(["P100", "K80"]), st.integers(0, 5), max_size=2)


@settings(max_examples=examples(400), deadline=None)
@given(ROOMS, GANGS, GPU_ROOM)
# a task whose only GPU type has no share left
@example([NodeRoom("n0", 1, 100, 0, {"K80": 1})], [make_demand(gpus=1, gpu_type="K80")], {})
def test_it_finds_an_arrangement_exactly_when_there_is_one(
    rooms: list[NodeRoom], gang: list[Demand], gpu_room: dict[str, int] | None
) -> None:
    free = {one.node: Free(one.cpus, one.memory_mb, one.storage_gb, dict(one.gpus)) for one in rooms}
    answer = arrange(rooms, gang, gpu_room)
    if fits(free, gang, gpu_room=gpu_room):
        check(rooms, gang, answer, gpu_room)
    else:
        assert answer is IMPOSSIBLE
