"""What a container uses now, and what a Docker host has."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.engine.gpu import GpuMeter, find_gpus
from pai_scheduler.engine.protocol import Usage

from .connection import DockerApi
from .container_use import ContainerProcess, ContainerUse, read_use

_MIB, _GB = 2**20, 10**9
#: Storage drivers that can limit a container's disk by themselves.
_LIMITING_DRIVERS = ("btrfs", "devicemapper", "zfs")


class UsageMeter:
    """Measures containers; the share of CPU is that since the measurement before."""

    def __init__(self, api: DockerApi) -> None:
        self._api = api
        self._last: dict[str, tuple[int, int]] = {}
        self._gpus = GpuMeter()

    async def measure(
        self,
        name: str,
        disk_bytes: int | None = None,
        gpu_uuids: Sequence[str] = (),
        process: ContainerProcess | None = None,
    ) -> Usage | None:
        """Measure a container; None where it does not run. `disk_bytes`: measured by who has the time.

        `process`: where it is known, Docker is not asked, provided that this machine's kernel knows it.
        """
        use = await asyncio.to_thread(read_use, process) if process is not None else None
        if use is None:
            use = _told(await self._api.stats(name))
        if use is None:
            self.forget(name)
            return None
        now, used = time.time_ns(), use.cpu_ns
        before, used_before = self._last.get(name, (now, used))
        self._last[name] = (now, used)
        gpus = await asyncio.to_thread(self._gpus.measure, gpu_uuids) if gpu_uuids else None
        return Usage(
            time=now // 10**6,
            cpu_percent=100 * (used - used_before) / (now - before) if now > before else 0.0,
            memory_mb=use.memory_bytes / _MIB,
            net_rx_bytes=use.net_rx_bytes,
            net_tx_bytes=use.net_tx_bytes,
            disk_mb=None if disk_bytes is None else disk_bytes / _MIB,
            gpu_percent=gpus.percent if gpus else None,
            gpu_memory_mb=gpus.memory_mb if gpus else None,
        )

    def close(self) -> None:
        """Close the GPUs' driver."""
        self._gpus.close()

    def forget(self, name: str) -> None:
        """Drop what was kept of a container."""
        self._last.pop(name, None)


def _told(stats: Mapping[str, Any] | None) -> ContainerUse | None:
    """Read Docker's answer; None where the container does not run."""
    if not stats or not stats["memory_stats"].get("usage"):
        return None
    memory, details = stats["memory_stats"], stats["memory_stats"].get("stats") or {}
    # what Linux can take back at once is not "used" (the same rule as in `docker stats`)
    cache = details.get("total_inactive_file", details.get("inactive_file", 0))
    networks = (stats.get("networks") or {}).values()
    return ContainerUse(
        cpu_ns=int(stats["cpu_stats"]["cpu_usage"]["total_usage"]),
        memory_bytes=max(0, memory["usage"] - cache),
        net_rx_bytes=sum(network["rx_bytes"] for network in networks),
        net_tx_bytes=sum(network["tx_bytes"] for network in networks),
    )


def node_of(info: dict[str, Any], name: str | None, *, is_local: bool, answers: bool) -> Node:
    """Describe the host from `docker info`; GPUs are asked from NVML where the host is this machine."""
    disk = shutil.disk_usage(Path.cwd())
    if is_local:
        # (a daemon that maps users keeps its folder where only root may look)
        with contextlib.suppress(OSError):
            disk = shutil.disk_usage(str(info["DockerRootDir"]))
    return Node(
        name=name or str(info["Name"]),
        cpus=int(info["NCPU"]),
        memory_mb=int(info["MemTotal"]) // _MIB,
        storage_gb=disk.total // _GB,
        gpus=find_gpus() if is_local else (),
        state=NodeState.READY if answers else NodeState.LOST,
    )


def limits_storage(info: dict[str, Any]) -> bool:
    """Return whether a container's disk can be limited here (overlay2 needs XFS with project quotas)."""
    driver = info["Driver"]
    backing = dict(info.get("DriverStatus") or []).get("Backing Filesystem")
    return driver in _LIMITING_DRIVERS or (driver == "overlay2" and backing == "xfs")


def containers_root(info: dict[str, Any]) -> int:
    """Return the user id on the host of containers' root: 0, unless users are mapped (`userns-remap`)."""
    options = [option.split(",") for option in info.get("SecurityOptions") or ()]
    if not any("name=userns" in option for option in options):
        return 0
    # Docker tells which one in the name of its folder only
    ids = re.fullmatch(r"(\d+)\.\d+", PurePosixPath(str(info["DockerRootDir"])).name)
    return int(ids[1]) if ids else 0
