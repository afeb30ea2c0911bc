"""What is free on one node, and whether that will do for a task."""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.node import NodeState
from pai_scheduler.cluster.node_index import FreeNodeResources
from pai_scheduler.cluster.resources import Demand
from tests.scheduler.cluster.harness import on, port
from tests.scheduler.making import make_demand, make_node


def node_with(ports: set[int] | None = None, state: NodeState = NodeState.READY) -> FreeNodeResources:
    node = make_node("a", 8, 1000, 50, {"K80": 1, "P100": 2}, state=state)
    return FreeNodeResources(node, ports if ports is not None else set())


@pytest.mark.parametrize(
    ("demand", "takes"),
    [
        (make_demand(8, 1000, gpus=2, storage_gb=50), True),
        (make_demand(gpus=1, gpu_type="K80"), True),
        # the GPUs of one task are of one type
        (make_demand(gpus=3), False),
        (make_demand(gpus=2, gpu_type="K80"), False),
        (make_demand(gpus=1, gpu_type="V100"), False),
        (make_demand(9), False),
        (make_demand(1, 1001), False),
        (make_demand(storage_gb=51), False),
        (make_demand(ports=[port(80)]), False),
        (make_demand(ports=[port(81)]), True),
    ],
)
def test_a_node_could_take_a_task_that_lacks_nothing_there(demand: Demand, takes: bool) -> None:
    assert node_with({80}).could_take(demand) is takes


@pytest.mark.parametrize("state", [state for state in NodeState if state is not NodeState.READY])
def test_a_node_that_is_not_ready_could_take_nothing(state: NodeState) -> None:
    assert not node_with(state=state).could_take(make_demand())


def test_what_is_taken_is_free_no_more_and_comes_back_in_the_order_of_the_gpus() -> None:
    use = node_with()
    first, second = make_demand(3, 400, gpus=1, storage_gb=10), make_demand(gpus=1)
    use.take(first, on("a", 1))
    use.take(second, on("a", 2))
    assert (use.cpus, use.memory_mb, use.storage_gb, use.free_gpus) == (4, 500, 40, 1)
    use.give_back(second, on("a", 2))
    use.give_back(first, on("a", 1))
    assert (use.cpus, use.memory_mb, use.storage_gb) == (8, 1000, 50)
    assert dict(use.gpus) == {"K80": [0], "P100": [1, 2]}
