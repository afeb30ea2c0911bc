from __future__ import annotations

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster import queue_index
from pai_scheduler.cluster.queue_index import NEVER, Head, Overtaking, StartedJob
from pai_scheduler.cluster.sort_key import SortKey


def head(order: int, *, vc: str = "x", priority: int = 0, within: bool = True) -> Head:
    return Head(vc, (SortKey(-priority, 0, order), f"j{order}"), within)


def start(order: int, *, vc: str = "x", priority: int = 0, within: bool = True) -> StartedJob:
    return StartedJob(vc, SortKey(-priority, 0, order), within)


def test_within_a_virtual_cluster_the_sort_key_counts_and_between_two_the_order_of_submission() -> None:
    assert head(1).is_overtaken_by(start(2))
    assert not head(2).is_overtaken_by(start(1))
    assert not head(1).is_overtaken_by(start(2, priority=5))
    assert head(1).is_overtaken_by(start(2, priority=5, vc="y"))
    assert not head(2, priority=5).is_overtaken_by(start(1, vc="y"))


def test_who_wants_to_borrow_is_not_overtaken_by_another_within_its_guarantee() -> None:
    assert not head(1, within=False).is_overtaken_by(start(2, vc="y"))
    assert head(1, within=False).is_overtaken_by(start(2, vc="y", within=False))
    assert head(1, within=False).is_overtaken_by(start(2))


def test_a_line_is_told_when_its_first_job_was_overtaken_too_often_and_then_no_more() -> None:
    lines: Overtaking[str] = Overtaking()
    assert not lines.put("a", head(1), 2)
    assert lines.started([start(2)]) == []
    assert lines.started([start(3)]) == ["a"]
    assert lines.started([start(4)]) == []
    assert lines.count("a") == 3


def test_a_line_whose_next_job_was_overtaken_too_often_already_says_so() -> None:
    lines: Overtaking[str] = Overtaking()
    lines.put("a", head(1), 2)
    lines.started([start(5), start(6), start(7)])
    assert lines.put("a", head(2), 3)
    assert not lines.put("a", head(4), 4)
    assert lines.started([start(3)]) == []
    assert lines.started([start(8)]) == ["a"]


def test_a_line_that_went_is_told_no_more_and_its_number_is_known_last() -> None:
    lines: Overtaking[str] = Overtaking()
    lines.put("a", head(1), 2)
    lines.started([start(2)])
    assert lines.drop("a") == 1
    assert lines.started([start(3)]) == []


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "start", "start", "start", "drop"]),
        st.sampled_from("abc"),
        st.integers(1, 30),
        st.sampled_from("xyz"),
        st.sampled_from([0, 0, 5]),
        st.booleans(),
        st.sampled_from([2, 4, NEVER]),
    ),
    max_size=60,
)


@given(STEPS, st.sampled_from([3, 50_000]))
def test_the_numbers_are_those_of_a_look_at_every_line_for_every_start(
    steps: list[tuple[str, str, int, str, int, bool, int]], most: int
) -> None:
    lines: Overtaking[str] = Overtaking()
    heads: dict[str, Head] = {}
    counts: dict[str, int] = {}
    for number, (what, line, order, vc, priority, within, due_at) in enumerate(steps):
        order = 100 * order + number  # (no two jobs have the same)
        if what == "put":
            heads[line] = head(order, vc=vc if line not in heads else heads[line].virtual_cluster)
            counts.setdefault(line, 0)
            lines.put(line, heads[line], due_at)
        elif what == "drop" and line in heads:
            assert lines.drop(line) == counts.pop(line)
            del heads[line]
        elif what == "start":
            started = start(order, vc=vc, priority=priority, within=within)
            for other, first in heads.items():
                counts[other] += first.is_overtaken_by(started)
            with mock.patch.object(queue_index, "MOST_STARTS", most):
                lines.started([started])
        assert {one: lines.count(one) for one in heads} == counts
