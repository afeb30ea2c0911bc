"""The cluster as it is now: the file, what administrators changed over it, and the engine's nodes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.node import Closing, Maintenance, NodeState
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.service.current_cluster import CurrentCluster
from tests.scheduler.making import make_node
from tests.scheduler.open_service import CLUSTER

#: ms since the epoch
NOW = 1000


@pytest.fixture
def cluster(tmp_path: Path) -> CurrentCluster:
    return CurrentCluster(CLUSTER, ProcessEngine(tmp_path), 20_000, lambda: NOW)


def test_declared_nodes_are_filled_in_from_what_the_engine_has(cluster: CurrentCluster) -> None:
    assert list(cluster.nodes) == []
    cluster.set_nodes([make_node("another", cpus=64)])
    (node,) = cluster.nodes
    assert (node.name, node.cpus, [gpu.simulated for gpu in node.gpus]) == ("a", 8, [True, True])


def test_what_administrators_changed_lies_over_the_file(cluster: CurrentCluster) -> None:
    vision = replace(CLUSTER.virtual_clusters["vision"], capacity=10, max_capacity=10)
    cluster.restore({"vision": vision})
    assert {name: one.capacity for name, one in cluster.virtual_clusters.items()} == {
        "default": 60,
        "vision": 10,
    }


def test_changes_that_do_not_go_with_the_file_are_refused(cluster: CurrentCluster) -> None:
    speech = replace(CLUSTER.virtual_clusters["vision"], name="speech", capacity=70, max_capacity=70)
    with pytest.raises(DefinitionError, match="add up to"):
        cluster.restore({"speech": speech})
    assert cluster.virtual_clusters.keys() == {"default", "vision"}


def test_a_core_has_the_nodes_and_virtual_clusters_of_now(cluster: CurrentCluster) -> None:
    cluster.set_nodes([make_node("a")])
    cluster.restore({"vision": None})
    core = cluster.make_core()
    assert list(core.state.quota_accounting.clusters) == ["default"]
    assert core.jobs == {}


def test_what_is_closed_stays_so_whatever_the_engine_tells(cluster: CurrentCluster) -> None:
    closing = Closing("root", "disk is replaced", 1)
    cluster.set_closings({"a": closing, "gone": closing})
    for found in ([make_node("a")], [make_node("a", state=NodeState.LOST)]):
        cluster.set_nodes(found)
        (node,) = cluster.nodes
        assert (node.state, node.closing) == (found[0].state, closing)
    cluster.set_closings({})
    assert cluster.nodes[0].closing is None


def test_a_node_is_closed_while_it_is_in_maintenance_and_knows_what_is_planned(
    cluster: CurrentCluster,
) -> None:
    over = Maintenance("over", ("a",), NOW - 2, NOW, "disk", "root")
    under_way = Maintenance("under way", ("*",), NOW, NOW + 9, "disk", "root")
    later = Maintenance("later", ("a",), NOW + 20, NOW + 30, "disk", "root")
    elsewhere = Maintenance("elsewhere", ("b*",), NOW, NOW + 9, "disk", "root")
    cluster.set_nodes([make_node("a")])
    cluster.set_maintenance([later, elsewhere, under_way, over])
    (node,) = cluster.nodes
    assert node.maintenance == (under_way, later)
    assert node.closing == Closing("root", "disk", NOW, NOW + 9)
    assert not cluster.look_at_clock()
    cluster.set_maintenance([later])
    assert cluster.nodes[0].closing is None


def test_links_of_gpus_that_a_machine_does_not_have_are_told(cluster: CurrentCluster) -> None:
    (declared,) = CLUSTER.nodes
    cluster.definition = replace(CLUSTER, nodes=(replace(declared, gpu_links=((0, 1), (5, 4))),))
    cluster.set_nodes([make_node("another")])
    assert list(cluster.unknown_gpu_links()) == [("a", [5, 4])]
    cluster.set_nodes([make_node("another", state=NodeState.LOST)])
    assert list(cluster.unknown_gpu_links()) == []
