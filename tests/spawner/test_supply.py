"""What is free, as the form says it."""

from __future__ import annotations

from typing import Any

from pai_scheduler.rest.cluster import NodeInfo, VirtualClusterInfo
from pai_spawner.start_preview import NOTHING, VirtualClusterSupply, supply_of
from tests.spawner.test_words import AVAILABLE


def node(name: str, gpus: dict[str, int], used: dict[str, int], *, simulated: bool = False) -> NodeInfo:
    return {
        "name": name,
        "state": "READY",
        "closed": None,
        "total": {"cpus": 8, "memoryMB": 16000, "storageGB": 100, "gpus": gpus},
        "used": {"cpus": 3, "memoryMB": 1000, "storageGB": 0, "gpus": used},
        "gpus": [
            {
                "index": index,
                "type": kind,
                "uuid": "",
                "simulated": simulated,
                "memoryMB": None,
                "job": None,
                "user": None,
            }
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
        "shorterFirst": 0,
        "fairShareHours": 0,
        "levelGpuHours": [],
        "shortestRemaining": False,
        "placement": "pack",
    }
    return {**info, **changes}  # type: ignore[typeddict-item]


NODES = [
    node("a", {"P100": 2, "TITANX": 1}, {"P100": 1}),
    node("b", {"P100": 4}, {"P100": 4}, simulated=True),
]


def test_the_types_of_gpus_are_listed_and_those_that_are_only_declared() -> None:
    supply = supply_of(NODES, {}, {})
    assert supply.gpu_types == ("P100", "TITANX")
    assert supply.simulated == {"P100"}


def test_only_virtual_clusters_that_are_open_to_the_person_are_offered() -> None:
    known = {
        "default": virtual_cluster(),
        "vision": virtual_cluster(),
        "old": virtual_cluster(status="STOPPED"),
    }
    supply = supply_of(NODES, known, {"default": AVAILABLE, "old": AVAILABLE})
    assert supply.virtual_clusters == {
        "default": VirtualClusterSupply("default", True, AVAILABLE),
        "old": VirtualClusterSupply("old", False, AVAILABLE),
    }
    assert supply.available_in("default") == AVAILABLE
    assert supply.available_in("vision") == NOTHING


def test_each_machine_says_what_it_has_free() -> None:
    first, second = supply_of(NODES, {}, {}).machines
    assert (first.name, first.free_cpus, first.total_cpus) == ("a", 5, 8)
    assert first.gpus == (("P100", 1, 2), ("TITANX", 1, 1))
    assert second.gpus == (("P100", 0, 4),)
    assert (second.free_memory_mb, second.total_memory_mb) == (15_000, 16_000)
