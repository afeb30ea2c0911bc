"""What is made within is not looked through for cycles; the collector works as before afterwards."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import pytest

from pai_scheduler.execution.garbage import collect_in_small_steps, without_collections


class _Node:
    """An object that can be in a cycle."""

    other: _Node


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    # (whatever else ran in this process may have left it off)
    gc.enable()
    thresholds = gc.get_threshold()
    yield
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


def test_few_objects_are_looked_at_together_and_cycles_among_them_still_go() -> None:
    gc.set_threshold(700, 10, 10)
    collect_in_small_steps()
    new, looks, _ = gc.get_threshold()
    assert new * looks < 7_000
    node = _Node()
    node.other = node
    gone = weakref.ref(node)
    del node
    kept = [_Node() for _ in range(2 * new)]
    assert gone() is None
    assert kept
