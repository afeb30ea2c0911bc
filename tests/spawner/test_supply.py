"""What is free, as the form says it."""

from __future__ import annotations

from typing import Any

from pai_scheduler.rest.models import NodeInfo, VirtualClusterInfo
from pai_spawner.supply import GpuSupply, VirtualClusterSupply, share, supply_of


def node(name: str, gpus: dict[str, int], used: dict[str, int], *, simulated: bool = False) -> NodeInfo:
    return {
        "name": name,
        "state": "READY",
        "total": {"cpus": 8, "memoryMB": 16000, "storageGB": 100, "gpus": gpus},
        "used": {"cpus": 3, "memoryMB": 1000, "storageGB": 0, "gpus": used},
        "gpus": [
            {"index": index, "type": kind, "uuid": "", "simulated": simulated, "job": None}
            for kind, count in gpus.items()
            for index in range(count)
        ],
        "rack": "",
        "disk": None,
    }


def virtual_cluster(**changes: Any) -> VirtualClusterInfo:
    info: dict[str, Any] = {
        "capacity": 60.0,
        "maxCapacity": 100.0,
        "usedCapacity": 12.5,
        "numActiveJobs": 1,
        "numJobs": 3,
        "numPendingJobs": 2,
        "resourcesUsed": {"memory": 0, "vCores": 0, "GPUs": 0},
        "resourcesTotal": {"memory": 0, "vCores": 0, "GPUs": 0},
        "dedicated": False,
        "nodeList": [],
        "status": "RUNNING",
    }
    return {**info, **changes}  # type: ignore[return-value]


NODES = [
    node("a", {"P100": 2, "TITANX": 1}, {"P100": 1}),
    node("b", {"P100": 4}, {"P100": 4}, simulated=True),
]


def test_gpus_are_counted_by_type_and_by_what_one_node_has() -> None:
    supply = supply_of(NODES, {})
    assert supply.gpus == (
        GpuSupply("P100", free=1, total=6, most_per_node=4, most_free_per_node=1, simulated=True),
        GpuSupply("TITANX", free=1, total=1, most_per_node=1, most_free_per_node=1, simulated=False),
    )
    assert supply.most_gpus_per_node == 4


def test_cpus_and_memory_are_summed_up_and_the_largest_node_is_known() -> None:
    supply = supply_of(NODES, {})
    assert (supply.free_cpus, supply.total_cpus, supply.largest_node_cpus) == (10, 16, 8)
    assert (supply.free_memory_mb, supply.total_memory_mb, supply.largest_node_memory_mb) == (
        30000,
        32000,
        16000,
    )


def test_each_machine_is_told_with_what_is_free_on_it() -> None:
    a, b = supply_of(NODES, {}).machines
    assert (a.name, a.state, a.free_cpus, a.total_cpus, a.free_memory_mb, a.total_memory_mb) == (
        *("a", "READY", 5, 8),
        *(15000, 16000),
    )
    assert (a.gpus, b.gpus) == ((("P100", 1, 2), ("TITANX", 1, 1)), (("P100", 0, 4),))


def test_virtual_clusters_say_how_full_they_are_and_whether_they_take_jobs() -> None:
    supply = supply_of([], {"default": virtual_cluster(), "old": virtual_cluster(status="STOPPED")})
    assert supply.virtual_clusters == (
        VirtualClusterSupply("default", 12.5, 2, True),
        VirtualClusterSupply("old", 12.5, 2, False),
    )


def test_servers_are_told_what_is_guaranteed_of_each_type_rounded_down() -> None:
    (default,) = supply_of(NODES, {"default": virtual_cluster(capacity=50.0)}).virtual_clusters
    assert default.gpus == {"P100": 3, "TITANX": 0}
    assert default.guaranteed == "3 × P100, 0 × TITANX"
    assert [share(3, 33.3), share(10, 70.0), share(3, 100.0)] == [0, 7, 3]


def test_an_empty_cluster_has_nothing() -> None:
    supply = supply_of([], {})
    assert (supply.gpus, supply.total_cpus, supply.most_gpus_per_node) == ((), 0, 0)
