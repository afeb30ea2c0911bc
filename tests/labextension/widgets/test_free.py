"""What is free, in words."""

from __future__ import annotations

from typing import Any, cast

from pai_labextension.widgets.free import GpuCount, free_line, gpu_counts
from pai_labextension.widgets.language import Language
from pai_scheduler.rest.cluster import VirtualClusterInfo
from pai_scheduler.testing.scheduler import NODE

CLUSTER = cast(
    VirtualClusterInfo,
    {"capacity": 40.0, "maxCapacity": 80.0, "usedCapacity": 33.333},
)


def test_gpus_are_counted_by_type_and_said_to_be_simulated() -> None:
    assert gpu_counts([NODE]) == [GpuCount("P100", 1, 1, False), GpuCount("TITANX", 1, 2, True)]
    assert gpu_counts([NODE, NODE])[0] == GpuCount("P100", 2, 2, False)


def test_a_lost_machine_has_nothing_that_is_free() -> None:
    lost: Any = {**NODE, "state": "LOST"}
    assert gpu_counts([lost]) == [GpuCount("P100", 0, 1, False), GpuCount("TITANX", 0, 2, True)]


def test_the_line_names_what_nobody_has_and_what_a_virtual_cluster_has_of_its_share() -> None:
    assert free_line(Language("en"), "vision", CLUSTER, [NODE]) == (
        "Free: 30 of 32 CPUs, 89.8 of 97.7 GB memory, 1 of 1 P100, 1 of 2 TITANX (simulated). "
        "Virtual cluster vision holds 33.3 % of the cluster; it is guaranteed 40 %, and may hold 80 %."
    )
    assert free_line(Language("zh_CN"), "vision", CLUSTER, [NODE]).startswith(
        "空闲：CPU 30/32，内存 89.8/97.7 GB，"
    )


def test_what_a_lost_machine_had_is_not_free() -> None:
    lost: Any = {**NODE, "name": "node-b", "state": "LOST"}
    line = free_line(Language("en"), "vision", CLUSTER, [NODE, lost])
    assert line.startswith(
        "Free: 30 of 64 CPUs, 89.8 of 195.3 GB memory, 1 of 2 P100, 1 of 4 TITANX (simulated)."
    )


def test_a_virtual_cluster_that_is_not_there_is_said() -> None:
    assert free_line(Language("en"), "nowhere", None, []) == "There is no virtual cluster nowhere."
