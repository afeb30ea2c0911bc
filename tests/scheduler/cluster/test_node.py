from __future__ import annotations

from tests.scheduler.making import make_node


def test_a_node_counts_its_gpus_by_type() -> None:
    assert make_node(gpus={"P100": 2, "K80": 1}).gpu_counts == {"P100": 2, "K80": 1}
    assert make_node().gpu_counts == {}
