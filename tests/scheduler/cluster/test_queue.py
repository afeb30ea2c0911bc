from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.queue import Queue, Standing
from pai_scheduler.cluster.queue_index import FreeRoom, StartedJob
from pai_scheduler.cluster.sort_key import SortKey
from tests.scheduler.making import make_demand


def make_queue(*jobs: tuple[str, str, str]) -> Queue[str]:
    """Each job: id, virtual cluster, shape; in the order of submission."""
    queue: Queue[str] = Queue()
    for order, (job_id, virtual_cluster, shape) in enumerate(jobs, 1):
        queue.add(job_id, virtual_cluster, shape, SortKey(0, 0, order))
    return queue


def block(queue: Queue[str], job_id: str) -> None:
    queue.set(job_id, Standing.BLOCKED, within=True)


def overtook(queue: Queue[str], virtual_cluster: str, sort_key: SortKey, *, within: bool = True) -> list[str]:
    return [line.shape for line in queue.overtook([StartedJob(virtual_cluster, sort_key, within)])]


def tried(queue: Queue[str], fitting: str = "") -> list[str]:
    """Go through the queue; jobs whose id is in `fitting` are placed, the others blocked."""
    seen = []
    for job_id in queue.candidates():
        seen.append(job_id)
        if job_id in fitting:
            queue.remove(job_id)
        else:
            block(queue, job_id)
    return seen


def test_jobs_of_one_shape_come_in_the_order_of_submission() -> None:
    assert tried(make_queue(("a", "vc", "s"), ("b", "vc", "s"), ("c", "vc", "s")), "abc") == ["a", "b", "c"]


def test_jobs_of_several_shapes_come_in_the_order_of_submission_too() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "t"), ("c", "vc", "s"), ("d", "vc", "t"))
    assert tried(queue, "abcd") == ["a", "b", "c", "d"]


def test_jobs_of_several_virtual_clusters_come_in_the_order_of_submission() -> None:
    queue = make_queue(("a", "x", "s"), ("b", "y", "s"), ("c", "x", "s"))
    assert tried(queue, "abc") == ["a", "b", "c"]


def test_a_higher_priority_comes_first_within_its_virtual_cluster() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "t"))
    queue.add("urgent", "vc", "u", SortKey(-90, 0, 3))
    queue.add("early", "other", "s", SortKey(0, 0, 0))
    assert tried(queue, "abearlyurgent") == ["early", "urgent", "a", "b"]


def test_a_priority_in_one_virtual_cluster_does_not_count_in_another() -> None:
    queue: Queue[str] = Queue()
    queue.add("plain", "x", "s", SortKey(0, 0, 1))
    queue.add("urgent", "y", "s", SortKey(-100, 0, 2))
    assert tried(queue) == ["plain", "urgent"]


def test_a_job_that_does_not_fit_blocks_its_own_shape_only() -> None:
    queue = make_queue(("a", "vc", "large"), ("b", "vc", "large"), ("c", "vc", "small"), ("d", "vc", "small"))
    assert tried(queue, "cd") == ["a", "c", "d"]
    assert len(queue) == 2


def test_a_blocked_shape_is_not_tried_again_until_something_has_changed() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    assert tried(queue) == ["a"]
    assert not queue.anything_open
    assert tried(queue) == []
    queue.add("c", "vc", "s", SortKey(0, 0, 3))
    assert tried(queue) == []
    queue.reopen()
    assert queue.anything_open
    assert tried(queue, "abc") == ["a", "b", "c"]


def test_who_lacks_room_is_tried_where_something_is_free_and_who_is_over_a_limit_is_not() -> None:
    queue: Queue[str] = Queue(lambda shape: {make_demand(gpus=len(shape))})
    for order, (shape, standing) in enumerate(
        [
            ("1", Standing.OVER_LIMIT),
            ("two", Standing.NO_ROOM),
            ("3-", Standing.BLOCKED),
            ("-", Standing.NO_ROOM),
        ],
        1,
    ):
        queue.add(f"j{order}", "vc", shape, SortKey(0, 0, order))
        queue.set(f"j{order}", standing, within=True)
    assert not queue.anything_open
    rooms = [FreeRoom(8, 10_000, 1000, {"K80": 2})]
    seen = []
    for job_id in queue.candidates(lambda: rooms):
        seen.append(job_id)
        rooms[0] = FreeRoom(8, 10_000, 1000, {"K80": 0})
        queue.remove(job_id)
    assert seen == ["j3"]


def test_less_that_counts_against_a_limit_opens_who_is_over_it() -> None:
    queue = make_queue(("a", "x", "s"), ("b", "x", "t"), ("c", "y", "s"), ("d", "x", "u"))
    standings = [Standing.OVER_LIMIT, Standing.BLOCKED, Standing.OVER_LIMIT, Standing.NO_ROOM]
    for job_id, standing in zip("abcd", standings, strict=True):
        queue.set(job_id, standing, within=False)
    queue.reopen_limited("x")
    assert tried(queue) == ["a", "b"]


def test_only_the_lines_for_which_something_has_changed_are_reopened() -> None:
    queue = make_queue(("a", "x", "s"), ("b", "y", "s"))
    tried(queue)
    queue.reopen(lambda line: line.virtual_cluster == "y")
    assert tried(queue) == ["b"]


def test_a_deferred_line_comes_in_the_second_round_of_the_same_look() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"), ("c", "vc", "t"))
    first = []
    for job_id in queue.candidates():
        first.append(job_id)
        queue.set(job_id, Standing.DEFERRED, within=False)
    assert first == ["a", "c"]
    second = []
    for job_id in queue.deferred():
        second.append(job_id)
        if job_id == "b":
            block(queue, job_id)
        else:
            queue.remove(job_id)
    assert second == ["a", "b", "c"]
    assert list(queue.deferred()) == []


def test_a_job_set_aside_keeps_its_place_but_is_not_tried() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    queue.set_aside("a")
    assert queue.has_reservation("b")
    assert tried(queue) == ["b"]
    assert [queue.queue_position("a"), queue.queue_position("b")] == [1, 2]
    queue.take_back("a")
    assert not queue.has_reservation("b")
    assert tried(queue) == ["a"]


def test_a_job_set_aside_may_leave() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    queue.set_aside("a")
    queue.remove("a")
    assert not queue.has_reservation("b")
    assert queue.queue_position("b") == 1


def test_a_job_that_found_no_room_is_overtaken_by_later_jobs_that_start() -> None:
    queue = make_queue(("a", "vc", "large"), ("b", "vc", "small"), ("c", "other", "small"))
    block(queue, "a")
    overtook(queue, "vc", queue.sort_key("b"))
    overtook(queue, "other", queue.sort_key("c"))
    overtook(queue, "other", SortKey(0, 0, 0))  # it came before
    assert queue.overtaken("a") == 2


def test_who_was_overtaken_as_often_as_may_be_is_told_once() -> None:
    queue: Queue[str] = Queue(overtake_limit=2)
    queue.add("a", "vc", "large", SortKey(0, 0, 1))
    assert overtook(queue, "vc", SortKey(0, 0, 2)) == []
    assert overtook(queue, "vc", SortKey(0, 0, 3)) == ["large"]
    assert overtook(queue, "vc", SortKey(0, 0, 4)) == []
    queue.add("b", "vc", "large", SortKey(0, 0, 5))
    queue.remove("a")
    assert overtook(queue, "vc", SortKey(0, 0, 6)) == []
    assert overtook(queue, "vc", SortKey(0, 0, 7)) == ["large"]


def test_of_a_line_for_which_something_is_kept_nobody_is_told() -> None:
    queue: Queue[str] = Queue(overtake_limit=1)
    queue.add("a", "vc", "large", SortKey(0, 0, 1))
    queue.add("b", "vc", "large", SortKey(0, 0, 2))
    queue.set_aside("a")
    assert overtook(queue, "vc", SortKey(0, 0, 3)) == []
    block(queue, "b")
    queue.remove("a")
    assert queue.anything_open, "it is b's turn"


def test_a_job_within_its_guarantee_does_not_overtake_one_that_borrows_elsewhere() -> None:
    queue = make_queue(("a", "vc", "large"), ("b", "other", "small"))
    queue.set("a", Standing.BLOCKED, within=False)
    overtook(queue, "other", queue.sort_key("b"))
    assert queue.overtaken("a") == 0
    overtook(queue, "other", queue.sort_key("b"), within=False)
    overtook(queue, "vc", SortKey(0, 0, 3))
    assert queue.overtaken("a") == 2


def test_a_job_behind_counts_from_when_it_came() -> None:
    queue = make_queue(("a", "vc", "large"))
    block(queue, "a")
    overtook(queue, "vc", SortKey(0, 0, 7))
    queue.add("b", "vc", "large", SortKey(0, 0, 8))
    overtook(queue, "vc", SortKey(0, 0, 9))
    assert (queue.overtaken("a"), queue.overtaken("b")) == (2, 1)
    queue.remove("a")
    assert queue.overtaken("b") == 1


def test_how_often_a_job_was_overtaken_before_is_not_forgotten() -> None:
    queue: Queue[str] = Queue()
    queue.add("a", "vc", "s", SortKey(0, 0, 1), overtaken=5)
    block(queue, "a")
    overtook(queue, "vc", SortKey(0, 0, 2))
    assert queue.overtaken("a") == 6


def test_a_job_that_comes_back_has_its_old_place() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    queue.remove("a")
    queue.add("a", "vc", "s", SortKey(0, 0, 1))
    assert tried(queue, "ab") == ["a", "b"]


def test_a_job_that_left_is_not_tried() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    queue.remove("a")
    queue.remove("a")
    assert "a" not in queue
    assert tried(queue, "b") == ["b"]
    assert len(queue) == 0


def test_a_position_counts_the_jobs_of_the_same_virtual_cluster() -> None:
    queue = make_queue(("a", "x", "s"), ("b", "y", "s"), ("c", "x", "t"), ("d", "x", "s"))
    assert [queue.queue_position(job_id) for job_id in "abcd"] == [1, 1, 2, 3]
    assert (queue.waiting("x"), queue.waiting("y"), queue.waiting("z")) == (3, 1, 0)
    assert list(queue.in_order("x")) == ["a", "c", "d"]
    with pytest.raises(KeyError):
        queue.queue_position("e")


@given(
    st.lists(st.tuples(st.sampled_from("xy"), st.sampled_from("st"), st.integers(0, 2)), max_size=12),
    st.sets(st.integers(0, 11)),
    st.sets(st.integers(0, 11)),
)
def test_every_waiting_job_that_fits_is_placed_in_order_whatever_else_waits(
    jobs: list[tuple[str, str, int]], removed: set[int], unfit: set[int]
) -> None:
    queue: Queue[str] = Queue()
    sort_keys = {}
    for number, (virtual_cluster, shape, priority) in enumerate(jobs):
        sort_keys[str(number)] = SortKey(-priority, 0, number)
        queue.add(str(number), virtual_cluster, shape, sort_keys[str(number)])
    for number in removed:
        queue.remove(str(number))
    # a whole shape of a virtual cluster fits or does not
    bad = {jobs[number][:2] for number in unfit if number < len(jobs)}
    placed: list[str] = []
    tries: Counter[tuple[str, str]] = Counter()
    for job_id in queue.candidates():
        key = jobs[int(job_id)][:2]
        tries[key] += 1
        if key in bad:
            block(queue, job_id)
        else:
            queue.remove(job_id)
            placed.append(job_id)
    expected = {
        str(number)
        for number, (vc, shape, _) in enumerate(jobs)
        if number not in removed and (vc, shape) not in bad
    }
    assert set(placed) == expected
    assert all(tries[key] == 1 for key in bad if tries[key])
    for cluster in "xy":
        mine = [job_id for job_id in placed if jobs[int(job_id)][0] == cluster]
        assert mine == sorted(mine, key=sort_keys.__getitem__)


@given(st.lists(st.integers(0, 3), max_size=6), st.lists(st.integers(0, 3), min_size=1, max_size=6))
def test_several_jobs_of_a_shape_at_once_stand_as_one_after_the_other(
    before: list[int], more: list[int]
) -> None:
    one: Queue[str] = Queue(overtake_limit=2)
    other: Queue[str] = Queue(overtake_limit=2)
    for number, priority in enumerate(before):
        for queue in (one, other):
            queue.add(f"b{number}", "vc", "s", SortKey(priority, 0, number))
    for queue in (one, other):
        tried(queue)
        overtook(queue, "vc", SortKey(2, 0, 9))
    added = [(SortKey(priority, 0, 100 + number), f"m{number}") for number, priority in enumerate(more)]
    times = {"m0": 3}
    for sort_key, job_id in added:
        one.add(job_id, "vc", "s", sort_key, times.get(job_id, 0))
    other.add_many("vc", "s", added, times)
    for queue in (one, other):
        overtook(queue, "vc", SortKey(4, 0, 200))
    assert list(other.in_order("vc")) == list(one.in_order("vc"))
    ids = [job_id for _, job_id in added] + [f"b{number}" for number in range(len(before))]
    assert [other.overtaken(job_id) for job_id in ids] == [one.overtaken(job_id) for job_id in ids]
    assert [other.queue_position(job_id) for job_id in ids] == [one.queue_position(job_id) for job_id in ids]
