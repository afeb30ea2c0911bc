"""Use of a container, read from the kernel's files or asked of Docker, and what a Docker host has."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path, PurePosixPath
from typing import Any

from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.engine.hardware import GpuMeter, find_gpus
from pai_scheduler.engine.protocol import Usage

from .client import DockerApi

# What a container on this machine uses, read from the kernel's own files: Docker need not be asked for it.
#
# Docker answers the same question in milliseconds of its time and ours, a file is read in microseconds.
# Where the files are not those of the container, as the daemon is on another machine or we are in a
# container, they are not believed: a container's control groups carry its id in their names. Which files
# they are is found out once for each container.

#: Version 2 of control groups has one hierarchy and no controller in its name.
_UNIFIED = ""
_USAGE = re.compile(rb"^usage_usec (\d+)$", re.MULTILINE)
_INACTIVE = re.compile(rb"^inactive_file (\d+)$", re.MULTILINE)
_ALL_INACTIVE = re.compile(rb"^total_inactive_file (\d+)$", re.MULTILINE)
#: Of how many containers at most it is kept which files are theirs.
_MOST_KNOWN = 4096


@dataclass(frozen=True, slots=True)
class ContainerProcess:
    """A container's id, and its first process as this machine numbers it (0: it does not run)."""

    container: str
    pid: int


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """Processor time so far (ns), memory without what Linux can take back at once, bytes of its network."""

    cpu_ns: int
    memory_bytes: int
    net_rx_bytes: int
    net_tx_bytes: int


@dataclass(frozen=True, slots=True)
class _Files:
    """Files with a container's CPU time and its memory; `unified`: in the format of cgroup version 2."""

    cpu: Path
    memory: Path
    memory_parts: Path
    unified: bool


def read_use(process: ContainerProcess, proc: Path = Path("/proc")) -> ContainerUse | None:
    """Read what a container uses; None where that cannot be read here, or it does not run."""
    if not process.pid or not process.container:
        return None
    own = f"{proc}/{process.pid}"
    try:
        files = _find_files(process, proc)
        cpu_ns, memory = _cpu_ns(files), int(_read(files.memory))
        memory -= _field(files.memory_parts, _INACTIVE if files.unified else _ALL_INACTIVE)
        rx, tx = _network(f"{own}/net/dev")
        # the number may have become another process's
        still = process.container.encode() in _read(f"{own}/cgroup")
    except (OSError, ValueError, KeyError):
        return None
    return ContainerUse(cpu_ns, max(0, memory), rx, tx) if still else None


@lru_cache(_MOST_KNOWN)
def _find_files(process: ContainerProcess, proc: Path) -> _Files:
    """Find the files of a container; KeyError where none of its control groups are seen here."""
    groups = _groups(proc / str(process.pid), process.container, _mounts(proc))
    if _UNIFIED in groups and "memory" not in groups:
        group = groups[_UNIFIED]
        return _Files(group / "cpu.stat", group / "memory.current", group / "memory.stat", unified=True)
    memory = groups["memory"]
    return _Files(
        groups["cpuacct"] / "cpuacct.usage",
        memory / "memory.usage_in_bytes",
        memory / "memory.stat",
        unified=False,
    )


def _cpu_ns(files: _Files) -> int:
    return 1000 * _field(files.cpu, _USAGE) if files.unified else int(_read(files.cpu))


def _groups(own: Path, container: str, mounts: Mapping[str, Path]) -> Mapping[str, Path]:
    """Find the folders of a process's control groups, by controller, that are the container's."""
    found: dict[str, Path] = {}
    for line in (own / "cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        parts = PurePosixPath(path).parts
        last = next((n for n, part in enumerate(parts) if container in part), None)
        if last is None:
            continue
        for name in names.split(","):
            if (point := mounts.get(name)) is not None:
                found[name] = point.joinpath(*parts[1 : last + 1])
    return found


@cache
def _mounts(proc: Path) -> Mapping[str, Path]:
    """Find where whole hierarchies of control groups are mounted, by controller."""
    found: dict[str, Path] = {}
    with contextlib.suppress(OSError):
        for line in (proc / "self" / "mountinfo").read_text().splitlines():
            left, _, right = line.partition(" - ")
            root, point = left.split(" ")[3:5]
            kind, _, options = right.split(" ", 2)
            if root == "/" and kind == "cgroup2":
                found.setdefault(_UNIFIED, Path(point))
            elif root == "/" and kind == "cgroup":
                for name in options.split(","):
                    found.setdefault(name, Path(point))
    return found


def _network(devices: str) -> tuple[int, int]:
    """Return the bytes that a process's network has received and sent, but for those to itself."""
    rx = tx = 0
    for line in _read(devices).splitlines()[2:]:
        name, _, numbers = line.partition(b":")
        fields = numbers.split()
        if name.strip() != b"lo":
            rx, tx = rx + int(fields[0]), tx + int(fields[8])
    return rx, tx


def _field(file: Path, field: re.Pattern[bytes]) -> int:
    if (found := field.search(_read(file))) is None:
        raise KeyError(field.pattern)
    return int(found[1])


def _read(file: Path | str) -> bytes:
    """Read one of the kernel's files, as cheaply as can be: each container has several, again and again."""
    with open(file, "rb", buffering=0) as opened:
        return opened.readall()


# What a container uses now, and what a Docker host has.

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


def node_of(info: dict[str, Any], *, is_local: bool, answers: bool) -> Node:
    """Describe the host from `docker info`; GPUs are asked from NVML where the host is this machine."""
    disk = shutil.disk_usage(Path.cwd())
    if is_local:
        # (a daemon that maps users keeps its folder where only root may look)
        with contextlib.suppress(OSError):
            disk = shutil.disk_usage(str(info["DockerRootDir"]))
    return Node(
        name=str(info["Name"]),
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
