"""The peer of the planner places by best fit."""

from __future__ import annotations

from pai_scheduler.cluster.node import Gpu, Node
from pai_scheduler.cluster.resources import Demand

from .numpy_scan import NumpyScan


def node(name: str, gpus: int) -> Node:
    return Node(name, 8, 1000, 10, tuple(Gpu(index, "A100") for index in range(gpus)))


def test_the_node_with_the_fewest_gpus_left_is_taken_and_given_back() -> None:
    scan = NumpyScan([node("large", 8), node("small", 2)])
    assert scan.place(Demand(1, 100, gpus=2)) == 1
    assert scan.place(Demand(1, 100, gpus=2)) == 0
    scan.release(1, Demand(1, 100, gpus=2))
    assert scan.place(Demand(1, 100, gpus=2)) == 1


def test_what_lacks_cores_or_memory_does_not_fit() -> None:
    scan = NumpyScan([node("one", 8)])
    assert scan.place(Demand(9, 100)) is None
    assert scan.place(Demand(1, 1001)) is None
