from __future__ import annotations

import pytest

from pai_scheduler.cluster.node import NodeState
from pai_scheduler.cluster.resources import (
    Assignment,
    describe,
    gpu_key,
    gpus_in,
    is_gpu,
    of_gang,
    of_nodes,
    of_task,
)
from tests.scheduler.making import make_demand, make_node

NODES = {node.name: node for node in (make_node("a", gpus={"K80": 1, "P100": 2}), make_node("b"))}


def test_nodes_add_up_with_their_gpus_apart_by_type_and_ill_ones_count() -> None:
    nodes = [
        make_node("a", 8, 1000, 50, {"P100": 2, "K80": 1}),
        make_node("b", 4, 500, 20, {"P100": 1}, state=NodeState.LOST),
    ]
    assert of_nodes(nodes) == {"cpus": 12, "memoryMB": 1500, "storageGB": 70, "gpu:P100": 3, "gpu:K80": 1}


def test_a_gang_asks_for_gpus_of_a_type_and_of_any_type_apart() -> None:
    gang = [
        make_demand(2, 100, gpus=1, gpu_type="P100", storage_gb=5),
        make_demand(1, 50, gpus=3),
        make_demand(1, 50, gpus=1, gpu_type="P100"),
    ]
    assert of_gang(gang) == {"cpus": 4, "memoryMB": 200, "storageGB": 5, "gpu:P100": 2, "gpu:": 3}


def test_what_nobody_asks_for_is_not_there_at_all() -> None:
    assert dict(of_gang([make_demand(1, 100)])) == {"cpus": 1, "memoryMB": 100}
    assert dict(of_gang([make_demand(1, 100, gpu_type="P100")])) == {"cpus": 1, "memoryMB": 100}


def test_a_task_without_a_type_holds_gpus_of_the_type_that_it_was_given() -> None:
    amounts = of_task(make_demand(2, 300, gpus=2), Assignment("a", (1, 2)), NODES)
    assert dict(amounts) == {"cpus": 2, "memoryMB": 300, "gpu:P100": 2}
    assert of_task(make_demand(gpus=1), Assignment("a", (0,)), NODES)["gpu:K80"] == 1


def test_a_task_that_named_a_type_holds_gpus_of_it_whatever_is_known_of_its_node() -> None:
    demand = make_demand(gpus=2, gpu_type="P100")
    assert of_task(demand, Assignment("gone", (0, 1)), NODES)["gpu:P100"] == 2
    assert of_task(demand, Assignment("b", (0, 1)), NODES)["gpu:P100"] == 2


def test_a_task_on_a_node_that_is_gone_still_holds_its_gpus_of_an_unknown_type() -> None:
    assert of_task(make_demand(gpus=2), Assignment("gone", (0, 1)), NODES)["gpu:"] == 2
    # one GPU has gone from the node, the other tells the type
    assert of_task(make_demand(gpus=2), Assignment("a", (7, 0)), NODES)["gpu:K80"] == 2


def test_gpus_of_all_types_are_counted_and_nothing_else() -> None:
    assert gpus_in({"cpus": 9, "memoryMB": 9, "gpu:": 1, "gpu:P100": 2}) == 3
    assert [key for key in ("cpus", "gpu:", gpu_key("K80"), "storageGB") if is_gpu(key)] == [
        "gpu:",
        "gpu:K80",
    ]


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("gpu:P100", "2 × P100"),
        ("gpu:", "2 × GPU"),
        ("cpus", "2 CPUs"),
        ("memoryMB", "2 MB of memory"),
        ("storageGB", "2 GB of storage"),
    ],
)
def test_an_amount_in_words(key: str, words: str) -> None:
    assert str(describe(key, 2)) == words
