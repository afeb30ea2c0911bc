from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.queue import Queue


def make_queue(*jobs: tuple[str, str, str]) -> Queue:
    """Each job: id, virtual cluster, shape; in the order of submission."""
    queue = Queue()
    for order, (job_id, virtual_cluster, shape) in enumerate(jobs, 1):
        queue.add(job_id, virtual_cluster, shape, order)
    return queue


def tried(queue: Queue, fitting: str = "") -> list[str]:
    """Go through the queue; jobs whose id is in `fitting` are placed, the others blocked."""
    seen = []
    for job_id in queue.candidates():
        seen.append(job_id)
        if job_id in fitting:
            queue.remove(job_id)
        else:
            queue.block(job_id)
    return seen


def test_jobs_of_one_shape_come_in_the_order_of_submission() -> None:
    assert tried(make_queue(("a", "vc", "s"), ("b", "vc", "s"), ("c", "vc", "s")), "abc") == ["a", "b", "c"]


def test_jobs_of_several_shapes_come_in_the_order_of_submission_too() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "t"), ("c", "vc", "s"), ("d", "vc", "t"))
    assert tried(queue, "abcd") == ["a", "b", "c", "d"]


def test_jobs_of_several_virtual_clusters_come_in_the_order_of_submission() -> None:
    queue = make_queue(("a", "x", "s"), ("b", "y", "s"), ("c", "x", "s"))
    assert tried(queue, "abc") == ["a", "b", "c"]


def test_a_job_that_does_not_fit_blocks_its_own_shape_only() -> None:
    queue = make_queue(("a", "vc", "large"), ("b", "vc", "large"), ("c", "vc", "small"), ("d", "vc", "small"))
    assert tried(queue, "cd") == ["a", "c", "d"]
    assert len(queue) == 2


def test_a_blocked_shape_is_not_tried_again_until_something_became_free() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    assert tried(queue) == ["a"]
    assert tried(queue) == []
    queue.add("c", "vc", "s", 3)
    assert tried(queue) == []
    queue.unblock()
    assert tried(queue, "abc") == ["a", "b", "c"]


def test_a_job_that_comes_back_has_its_old_place() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    queue.remove("a")
    queue.add("a", "vc", "s", 1)
    assert tried(queue, "ab") == ["a", "b"]


def test_a_job_that_was_removed_is_in_line_no_more() -> None:
    queue = make_queue(("a", "vc", "s"), ("b", "vc", "s"))
    queue.remove("a")
    assert "a" not in queue
    assert "b" in queue
    assert tried(queue, "ab") == ["b"]


def test_removing_what_is_not_in_line_changes_nothing() -> None:
    queue = make_queue(("a", "vc", "s"))
    queue.remove("nobody")
    assert len(queue) == 1


def test_the_position_counts_the_jobs_before_it_in_its_virtual_cluster_whatever_their_shape() -> None:
    queue = make_queue(("a", "x", "s"), ("b", "y", "s"), ("c", "x", "t"), ("d", "x", "s"))
    assert [queue.position(job) for job in "abcd"] == [1, 1, 2, 3]
    queue.remove("a")
    assert [queue.position(job) for job in "cd"] == [1, 2]


def test_what_is_not_in_line_has_no_position() -> None:
    with pytest.raises(KeyError):
        make_queue().position("a")


def test_waiting_counts_the_jobs_of_one_virtual_cluster() -> None:
    queue = make_queue(("a", "x", "s"), ("b", "y", "s"), ("c", "x", "t"))
    assert (queue.waiting("x"), queue.waiting("y"), queue.waiting("z")) == (2, 1, 0)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(0, 9), st.sampled_from("st")),
        st.tuples(st.just("remove"), st.integers(0, 9), st.just("")),
        st.tuples(st.just("go through"), st.sets(st.integers(0, 9)), st.just("")),
        st.tuples(st.just("unblock"), st.just(0), st.just("")),
    )
)


@given(OPERATIONS)
def test_it_does_what_a_sorted_list_would_do(operations: list[tuple[str, int | set[int], str]]) -> None:
    queue, shapes, blocked = Queue(), dict[int, str](), set[str]()
    for what, value, shape in operations:
        if what == "add" and isinstance(value, int) and value not in shapes:
            if shape not in shapes.values():
                blocked.discard(shape)
            shapes[value] = shape
            queue.add(str(value), "vc", shape, value)
        elif what == "remove" and isinstance(value, int):
            shapes.pop(value, None)
            queue.remove(str(value))
        elif what == "unblock":
            blocked.clear()
            queue.unblock()
        elif isinstance(value, set):
            expected = []
            for job in sorted(shapes):
                if shapes[job] in blocked:
                    continue
                expected.append(str(job))
                if job in value:
                    del shapes[job]
                else:
                    blocked.add(shapes[job])
            assert tried(queue, "".join(map(str, value))) == expected
        assert len(queue) == queue.waiting("vc") == len(shapes)
        assert [queue.position(str(job)) for job in sorted(shapes)] == list(range(1, len(shapes) + 1))
