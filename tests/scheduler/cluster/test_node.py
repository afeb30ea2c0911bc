from __future__ import annotations

from dataclasses import replace

import pytest

from pai_scheduler.cluster.node import Closing, DiskSpace, NodeState
from tests.scheduler.making import make_node


def test_a_node_counts_its_gpus_by_type() -> None:
    assert make_node(gpus={"P100": 2, "K80": 1}).gpu_counts == {"P100": 2, "K80": 1}
    assert make_node().gpu_counts == {}


def test_a_node_that_is_closed_gets_nothing_new_whatever_its_engine_says() -> None:
    closing = Closing("root", "disk is replaced", 1)
    for state in NodeState:
        node = make_node(state=state)
        assert node.ready is (state is NodeState.READY)
        assert not replace(node, closing=closing).ready


@pytest.mark.parametrize(
    ("known", "now", "noticeable"),
    [
        (None, (1, 1), True),
        ((500, 1000), (500, 1000), False),
        # a hundredth of the disk, where much is free
        ((500, 1000), (491, 1000), False),
        ((500, 1000), (490, 1000), True),
        ((500, 1000), (510, 1000), True),
        # a tenth of what was free, where little is
        ((50, 1000), (46, 1000), False),
        ((50, 1000), (45, 1000), True),
        ((0, 1000), (0, 1000), False),
        ((0, 1000), (1, 1000), True),
        # another disk
        ((500, 1000), (500, 1001), True),
    ],
)
def test_the_room_on_a_disk_is_told_again_where_it_is_noticeably_another(
    known: tuple[int, int] | None, now: tuple[int, int], noticeable: bool
) -> None:
    before = None if known is None else DiskSpace(*known)
    assert DiskSpace(*now).differs_noticeably(before) is noticeable
