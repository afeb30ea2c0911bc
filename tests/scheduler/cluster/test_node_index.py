from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.node_index import NodeIndex, NumberSet

TYPES = ("A100", "K80")
SIZES = st.tuples(st.integers(-1, 4), st.integers(0, 3), st.integers(0, 2))
GPUS = st.fixed_dictionaries({}, optional={gpu_type: st.integers(1, 3) for gpu_type in TYPES})


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=200), st.sets(st.integers(0, 6)))
def test_the_first_number_is_known_whatever_comes_and_goes(
    changes: list[tuple[bool, int]], but: set[int]
) -> None:
    numbers, expected = NumberSet(), set[int]()
    for comes, number in changes:
        if comes and number not in expected:
            numbers.add(number)
            expected.add(number)
        elif not comes and number in expected:
            numbers.remove(number)
            expected.remove(number)
        assert len(numbers) == len(expected)
        assert numbers.first() == min(expected, default=None)
        assert numbers.first(but) == min(expected - but, default=None)


def test_a_number_that_comes_and_goes_for_ever_takes_no_more_room() -> None:
    numbers = NumberSet()
    for _ in range(1000):
        numbers.add(7)
        numbers.remove(7)
    assert len(numbers._heap) < 20


def test_a_number_that_is_not_there_cannot_go() -> None:
    numbers = NumberSet()
    numbers.add(1)
    with pytest.raises(KeyError):
        numbers.remove(2)


@given(
    st.lists(st.tuples(st.integers(0, 5), SIZES, GPUS), max_size=40),
    SIZES,
    st.integers(1, 3),
    st.sampled_from([TYPES, TYPES[:1], TYPES[1:], ()]),
    st.sets(st.integers(0, 5)),
)
def test_the_best_fit_is_the_one_that_a_look_at_all_nodes_finds(
    changes: list[tuple[int, tuple[int, int, int], dict[str, int]]],
    asked: tuple[int, int, int],
    gpus: int,
    types: tuple[str, ...],
    but: set[int],
) -> None:
    index, nodes = NodeIndex(TYPES), dict[int, tuple[tuple[int, int, int], dict[str, int]]]()
    for number, size, free in changes:
        if number in nodes:
            before = nodes[number]
            index.remove(number, before[0], tuple(before[1].items()))
        nodes[number] = size, free
        index.add(number, size, tuple(free.items()))
        room = {
            other: (sizes, free)
            for other, (sizes, free) in nodes.items()
            if other not in but and all(map(int.__le__, asked, sizes))
        }
        without = [(sum(free.values()), sizes[0], other) for other, (sizes, free) in room.items()]
        assert index.without_gpus(asked, but) == (min(without)[2] if without else None)
        with_gpus = [
            (free[gpu_type], gpu_type, other)
            for other, (_, free) in room.items()
            for gpu_type in types
            if free.get(gpu_type, 0) >= gpus
        ]
        best = min(with_gpus, default=None)
        assert index.with_gpus(asked, gpus, types, but) == (best and (best[2], best[1]))


def test_a_node_is_found_again_after_many_looks_that_found_none() -> None:
    index = NodeIndex(TYPES)
    index.add(0, (4, 100, 10), (("K80", 2),))
    assert index.with_gpus((1, 200, 0), 1, TYPES) is None
    index.add(1, (4, 300, 10), (("K80", 2),))
    assert index.with_gpus((1, 200, 0), 1, TYPES) == (1, "K80")
    index.remove(1, (4, 300, 10), (("K80", 2),))
    assert index.with_gpus((1, 200, 0), 1, TYPES) is None
    assert index.with_gpus((1, 100, 0), 1, TYPES) == (0, "K80")


@given(
    st.lists(st.tuples(SIZES, GPUS), max_size=12),
    SIZES,
    st.integers(0, 3),
    st.fixed_dictionaries({gpu_type: st.integers(0, 5) for gpu_type in TYPES}),
    st.integers(1, 12),
)
def test_where_equal_tasks_cannot_have_room_counting_may_say_so_and_never_else(
    nodes: list[tuple[tuple[int, int, int], dict[str, int]]],
    asked: tuple[int, int, int],
    gpus: int,
    most: dict[str, int],
    wanted: int,
) -> None:
    asked = max(0, asked[0]), asked[1], asked[2]
    index = NodeIndex(TYPES)
    held = dict.fromkeys(("", *TYPES), 0)
    with_room = set()
    for number, (size, free) in enumerate(nodes):
        index.add(number, size, tuple(free.items()))
        if any(map(int.__gt__, asked, size)):
            continue
        alone = min([wanted, *(have // much for have, much in zip(size, asked, strict=True) if much)])
        held[""] += alone
        for gpu_type, count in free.items():
            held[gpu_type] += min(alone, count // gpus) if gpus else 0
        if not gpus or any(count >= gpus for count in free.values()):
            with_room.add(number)
    counted = held[""] if not gpus else sum(min(held[gpu_type], most[gpu_type]) for gpu_type in TYPES)
    assert index.may_hold(asked, gpus, most, wanted) == (counted >= wanted)
    assert set(index.with_room(asked, gpus, TYPES)) == with_room


@given(st.lists(st.tuples(SIZES, GPUS), max_size=20), SIZES, st.integers(1, 3), st.sets(st.integers(0, 5)))
def test_the_emptiest_node_is_that_of_a_look_at_every_node(
    nodes: list[tuple[tuple[int, int, int], dict[str, int]]],
    asked: tuple[int, int, int],
    gpus: int,
    but: set[int],
) -> None:
    index = NodeIndex(TYPES)
    for number, (size, free) in enumerate(nodes):
        index.add(number, size, tuple(free.items()))
    fitting = [
        (number, size, free)
        for number, (size, free) in enumerate(nodes)
        if number not in but and all(have >= much for have, much in zip(size, asked, strict=True))
    ]
    without = min(((sum(free.values()), -size[0], -size[1], n) for n, size, free in fitting), default=None)
    assert index.emptiest_without_gpus(asked, but) == (None if without is None else without[-1])
    having = [entry for entry in fitting if entry[2].get("K80", 0) >= gpus]
    best = min(((-free["K80"], -size[1], -size[0], n) for n, size, free in having), default=None)
    expected = None if best is None else (best[-1], "K80")
    assert index.emptiest_with_gpus(asked, gpus, ["K80"], but) == expected
