"""What is made within is not looked through for cycles; the collector works as before afterwards."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pai_scheduler.service.garbage import collect_in_small_steps, leave_out_what_is_there, without_collections


class _Node:
    """An object that can be in a cycle."""

    other: _Node


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    # (whatever else ran in this process may have left it off)
    gc.enable()
    thresholds, callbacks = gc.get_threshold(), list(gc.callbacks)
    yield
    gc.callbacks[:] = callbacks
    gc.set_threshold(*thresholds)
    gc.unfreeze()


def test_there_is_no_collection_within_and_there_are_afterwards() -> None:
    with without_collections():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_was_made_within_is_not_looked_at_again() -> None:
    before = gc.get_freeze_count()
    with without_collections():
        kept = [_Node() for _ in range(1000)]
    assert gc.get_freeze_count() >= before + len(kept)


def test_what_was_made_within_an_earlier_one_can_go() -> None:
    with without_collections():
        node = _Node()
        node.other = node
        gone = weakref.ref(node)
    del node
    with without_collections():
        pass
    gc.unfreeze()
    gc.collect()
    assert gone() is None


def cycle() -> weakref.ref[_Node]:
    """Make garbage that refers to itself."""
    node = _Node()
    node.other = node
    return weakref.ref(node)


def test_what_stayed_is_left_out_of_the_next_look_and_what_did_not_is_gone() -> None:
    collect_in_small_steps()
    kept, gone = [_Node() for _ in range(1000)], cycle()
    before = gc.get_freeze_count()
    gc.collect()
    assert gone() is None
    assert gc.get_freeze_count() >= before + len(kept)


def test_what_a_start_has_made_is_not_looked_at_again() -> None:
    gc.unfreeze()
    kept = [_Node() for _ in range(1000)]
    leave_out_what_is_there()
    assert gc.get_freeze_count() >= len(kept)
    seen = {id(one) for one in gc.get_objects()}
    assert not [one for one in kept if id(one) in seen]


def test_garbage_among_what_stayed_goes_within_a_day_or_so() -> None:
    now = 0.0
    collect_in_small_steps(lambda: now)
    node = _Node()
    node.other = node
    gone = weakref.ref(node)
    gc.collect()
    del node
    gc.collect()
    assert gone() is not None
    now = 25 * 3600.0
    gc.collect()
    gc.collect()
    assert gone() is None


def test_python_looks_more_often_into_fewer_objects() -> None:
    gc.set_threshold(700, 10, 10)  # Python's own
    collect_in_small_steps()
    young, middle, _ = gc.get_threshold()
    assert young * middle < 7_000
