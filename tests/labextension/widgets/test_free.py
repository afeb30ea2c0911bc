"""What is free, in words."""

from __future__ import annotations

from typing import Any, cast

from pai_labextension.widgets.free import GpuCount, free_line, gpu_counts
from pai_labextension.widgets.language import Language
from pai_scheduler.wire import VirtualClusterInfo
from tests.labextension.widgets.peer import NODE

CLUSTER = cast(
    VirtualClusterInfo,
    {
        "resourcesTotal": {"memory": 100_000, "vCores": 32, "GPUs": 3},
        "resourcesUsed": {"memory": 8500, "vCores": 2, "GPUs": 1},
    },
)


def test_gpus_are_counted_by_type_and_said_to_be_simulated() -> None:
    assert gpu_counts([NODE]) == [GpuCount("P100", 1, 1, False), GpuCount("TITANX", 1, 2, True)]
    assert gpu_counts([NODE, NODE])[0] == GpuCount("P100", 2, 2, False)


def test_a_lost_machine_has_nothing_that_is_free() -> None:
    lost: Any = {**NODE, "state": "LOST"}
    assert gpu_counts([lost]) == [GpuCount("P100", 0, 1, False), GpuCount("TITANX", 0, 2, True)]


def test_the_line_names_what_is_free() -> None:
    assert free_line(Language("en"), "default", CLUSTER, [NODE]) == (
        "Free in default: 30 of 32 CPUs, 91.5 of 100 GB memory, 2 of 3 GPUs. "
        "GPUs of the whole cluster: P100: 1 of 1 free, TITANX: 1 of 2 free (simulated)."
    )
    assert free_line(Language("zh_CN"), "default", CLUSTER, []).startswith("default 中空闲：CPU 30/32")


def test_a_virtual_cluster_that_is_not_there_is_said() -> None:
    assert free_line(Language("en"), "nowhere", None, []) == "There is no virtual cluster nowhere."
