"""What a running task uses, put together: from its processes, its folder, and NVML."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from pai_scheduler.engine.hardware import GpuMeter, GpuUse
from pai_scheduler.engine.process.task_folder import LaunchSpec, TaskFolder, TaskRecord
from pai_scheduler.engine.process.usage import TaskUsage


class TwoGpus(GpuMeter):
    """Two GPUs of which this machine need not have any."""

    def measure(self, uuids: Sequence[str]) -> GpuUse | None:
        return GpuUse(75.0, 2048.0) if list(uuids) == ["GPU-0", "GPU-1"] else None


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path)


#: A supervisor whose only child computes for as long as both are let live.
SUPERVISOR = """
import os, sys
child = os.fork()
if child == 0:
    print(os.getpid(), flush=True)
    sys.stdin.close()
    while True:
        pass
sys.stdin.read()
os.kill(child, 9)
os.wait()
"""


@pytest.fixture
def record() -> Iterator[TaskRecord]:
    """Run a task that computes, of which nothing ends between two measurements."""
    command = [sys.executable, "-c", SUPERVISOR]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as supervisor:
        assert supervisor.stdout is not None
        pid = int(supervisor.stdout.readline())
        yield {"supervisor": supervisor.pid, "pid": pid, "started": int(time.time() * 1000) - 10_000}


def test_disk_and_gpus_are_part_of_it(folder: TaskFolder, record: TaskRecord) -> None:
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


def test_without_cgroups_the_processes_are_counted(folder: TaskFolder, record: TaskRecord) -> None:
    task = TaskUsage(folder, TwoGpus())
    assert task.storage_gb is None
    usage = task.measure(record)
    assert usage.memory_mb > 1
    assert usage.gpu_percent is None
    while task.measure(record).cpu_percent == 0:
        pass  # (the child has its turn when the machine gives it)
