"""Which GPUs of a node a task gets, where fast links join some of them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.locality import rearrange
from pai_scheduler.cluster.node import Group, choose, groups_of
from pai_scheduler.cluster.placement import Cluster
from tests.scheduler.cluster.harness import on
from tests.scheduler.making import make_demand, make_node

TWO_FOURS = ((0, 1, 2, 3), (4, 5, 6, 7))


def test_a_gpu_without_links_is_a_group_by_itself_and_one_that_is_not_there_is_in_none() -> None:
    assert groups_of([(0, 2, 9), (8,)], [0, 1, 2, 3]) == ((0, 2), (1,), (3,))


@pytest.mark.parametrize(
    ("free", "count", "chosen"),
    [
        # one group has enough, though others have lower numbers
        ([0, 4, 5], 2, (4, 5)),
        # the one that has the fewest left over
        ([0, 1, 2, 4, 5], 2, (4, 5)),
        # whole groups stay whole
        ([0, 1, 2, 3, 5, 6, 7], 1, (5,)),
        ([0, 1, 2, 3, 4, 5, 6, 7], 1, (0,)),
        # no group has enough
        ([0, 4, 5], 3, (0, 4, 5)),
        ([0, 1, 2, 3, 5, 6], 5, (0, 1, 2, 5, 6)),
    ],
)
def test_gpus_come_from_one_group_where_one_has_enough(
    free: list[int], count: int, chosen: tuple[int, ...]
) -> None:
    assert choose(TWO_FOURS, free, count) == chosen


def test_one_gpu_leaves_a_whole_pair_alone_where_a_larger_group_is_broken() -> None:
    assert choose([(0, 1), (2, 3, 4, 5)], [0, 1, 3, 4, 5], 1) == (3,)
    assert choose([(0, 1), (2, 3, 4, 5), (6,)], [0, 1, 2, 3, 4, 5, 6], 1) == (6,)


def test_groups_that_together_have_just_enough_are_taken_before_larger_ones() -> None:
    assert choose([(0, 1, 2, 3), (4, 5, 6), (7, 8, 9)], range(10), 6) == (4, 5, 6, 7, 8, 9)


def _cost(groups: Sequence[Group], free: set[int], chosen: set[int]) -> tuple[int, ...]:
    """Count the groups that a choice is of, and the free GPUs that are left over in them."""
    used = [group for group in groups if chosen & set(group)]
    left = sum(len(free & set(group)) for group in used) - len(chosen)
    whole = sum(len(group) > 1 and free >= set(group) and not chosen >= set(group) for group in used)
    return (whole, left) if len(chosen) == 1 else (len(used), left)


@given(st.data())
def test_no_other_choice_is_of_fewer_groups_or_leaves_less_over(data: st.DataObject) -> None:
    gpus = range(data.draw(st.integers(1, 8)))
    ranks = data.draw(st.lists(st.integers(0, 3), min_size=len(gpus), max_size=len(gpus)))
    links = [tuple(index for index in gpus if ranks[index] == rank) for rank in (1, 2, 3)]
    groups = groups_of([group for group in links if group], gpus)
    free = data.draw(st.sets(st.sampled_from(gpus), min_size=1))
    count = data.draw(st.integers(1, len(free)))
    chosen = choose(groups, free, count)
    assert len(set(chosen)) == len(chosen) == count
    assert free.issuperset(chosen)
    assert list(chosen) == sorted(chosen)
    least = min(_cost(groups, free, set(other)) for other in itertools.combinations(sorted(free), count))
    assert _cost(groups, free, set(chosen)) == least


def test_tasks_get_gpus_by_the_links_of_their_node() -> None:
    cluster = Cluster([make_node(gpus={"P100": 8}, gpu_links=[(0, 2, 4, 6), (1, 3, 5, 7)])])
    for gpus, chosen in ((1, (0,)), (4, (1, 3, 5, 7)), (2, (2, 4))):
        assert cluster.place([make_demand(gpus=gpus)]) == [on("a", *chosen)]


def test_the_gpus_of_each_type_are_chosen_apart() -> None:
    node = make_node(gpus={"K80": 3, "P100": 3}, gpu_links=[(0, 5), (1, 2, 3, 4)])
    cluster = Cluster([node])
    assert cluster.place([make_demand(gpus=2, gpu_type="K80")]) == [on("a", 1, 2)]
    assert cluster.place([make_demand(gpus=2, gpu_type="P100")]) == [on("a", 3, 4)]


def test_what_runs_keeps_its_gpus_after_a_restart_though_the_links_are_others_now() -> None:
    cluster = Cluster([make_node(gpus={"P100": 8}, gpu_links=TWO_FOURS)])
    cluster.occupy(make_demand(gpus=2), on("a", 3, 4))
    assert cluster.place([make_demand(gpus=3)]) == [on("a", 0, 1, 2)]
    cluster.release(make_demand(gpus=2), on("a", 3, 4))
    assert cluster.place([make_demand(gpus=4)]) == [on("a", 4, 5, 6, 7)]


def test_a_task_that_is_brought_to_another_node_gets_gpus_by_the_links_there() -> None:
    nodes = [make_node(name, gpus={"P100": 4}, gpu_links=[(0, 3), (1, 2)]) for name in ("a", "b")]
    cluster = Cluster(nodes)
    cluster.occupy(make_demand(gpus=1), on("a", 0))
    gang = [make_demand(gpus=2)]
    placed = cluster.place(gang)
    assert placed == [on("a", 1, 2)]
    assert rearrange(cluster, gang, placed, emptiest=True) == [on("b", 0, 3)]
