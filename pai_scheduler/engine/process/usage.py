"""Usage of a task of the process engine: processor, memory, disk, GPUs."""

from __future__ import annotations

import contextlib
import time

from pai_scheduler.engine.hardware import GpuMeter
from pai_scheduler.engine.protocol import Usage

from . import procfs
from .task_cgroup import TaskGroup
from .task_folder import LaunchSpec, TaskFolder, TaskRecord

_MB = 1024**2


class TaskUsage:
    """Measures one running task. What it was launched with is read from its folder, so adopted ones do too.

    `disk_bytes` is set by the caller, who measures its folder, which takes longer.
    """

    def __init__(self, folder: TaskFolder, gpus: GpuMeter) -> None:
        self._gpus = gpus
        spec: LaunchSpec | None = None
        with contextlib.suppress(OSError, ValueError):
            spec = folder.launch_spec()
        self._group = TaskGroup(spec["groups"] if spec else [])
        self._gpu_uuids = spec.get("gpus", []) if spec else []
        #: its limits in MB and GB; None: no limit known
        self.memory_mb = spec["memory_mb"] if spec else 0
        self.storage_gb = spec.get("storage_gb") if spec else None
        self.disk_bytes: int | None = None
        self._cpu_seen: tuple[float, float] | None = None

    def oom_kills(self) -> int:
        """Count its processes that were killed for its memory limit. Blocks."""
        return self._group.oom_kills()

    def measure(self, record: TaskRecord) -> Usage:
        """Measure: processor time since the last measurement, memory without mere cache. Blocks."""
        cpu, memory = self._group.cpu_seconds(), self._group.memory_bytes()
        if cpu is None or memory is None:
            tree = procfs.tree(record["supervisor"])
            cpu = sum(process.cpu_seconds for process in tree) if cpu is None else cpu
            memory = sum(process.memory_bytes for process in tree) if memory is None else memory
        now = time.time()
        then, used = self._cpu_seen or (record["started"] / 1000, 0.0)
        self._cpu_seen = now, cpu
        percent = 100 * max(0.0, cpu - used) / max(now - then, 0.001)
        gpu = self._gpus.measure(self._gpu_uuids)
        return Usage(
            int(now * 1000),
            percent,
            memory / _MB,
            disk_mb=None if self.disk_bytes is None else self.disk_bytes / _MB,
            gpu_percent=gpu.percent if gpu else None,
            gpu_memory_mb=gpu.memory_mb if gpu else None,
        )
