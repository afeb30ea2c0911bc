"""What a running task uses, put together: from its processes, its folder, and NVML."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from pai_scheduler.engine.gpu import GpuMeter, GpuUse
from pai_scheduler.engine.process.task_folder import LaunchSpec, Record, TaskFolder
from pai_scheduler.engine.process.usage import TaskUsage


class TwoGpus(GpuMeter):
    """Two GPUs of which this machine need not have any."""

    def measure(self, uuids: Sequence[str]) -> GpuUse | None:
        return GpuUse(75.0, 2048.0) if list(uuids) == ["GPU-0", "GPU-1"] else None


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path)


@pytest.fixture
def record() -> Record:
    """Be the supervisor of what this test's own process started."""
    return {"supervisor": os.getppid(), "pid": os.getpid(), "started": int(time.time() * 1000) - 10_000}


def test_disk_and_gpus_are_part_of_it(folder: TaskFolder, record: Record) -> None:
    spec: LaunchSpec = {
        "argv": [],
        "env": {},
        "groups": [],
        "memory_mb": 1,
        "storage_gb": 3,
        "gpus": ["GPU-0", "GPU-1"],
    }
    folder.prepare(spec)
    task = TaskUsage(folder, TwoGpus())
    assert task.storage_gb == 3
    first = task.measure(record)
    assert first.disk_mb is None
    assert (first.gpu_percent, first.gpu_memory_mb) == (75.0, 2048.0)
    task.disk_bytes = 5 * 2**20
    assert task.measure(record).disk_mb == 5


def test_without_cgroups_the_processes_are_counted(folder: TaskFolder, record: Record) -> None:
    task = TaskUsage(folder, TwoGpus())
    assert task.storage_gb is None
    usage = task.measure(record)
    assert usage.memory_mb > 10
    assert usage.gpu_percent is None
    busy_until = time.process_time() + 0.1
    while time.process_time() < busy_until:
        pass
    assert task.measure(record).cpu_percent > 1
