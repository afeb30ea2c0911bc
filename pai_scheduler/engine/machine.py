"""What this machine has: processors, memory, disk, GPUs; and whether one of its ports is free."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path

from pai_scheduler.cluster.node import DiskSpace, Node

from . import gpu
from .cgroup import own_limits, own_mounts

_MB, _GB = 1024**2, 1024**3


def this_machine(name: str | None, storage_gb: int) -> Node:
    """Describe this machine as far as this process may use it (its own cgroup's limits count)."""
    cpus, memory = (
        float(len(os.sched_getaffinity(0))),
        os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
    )
    cpu_limit, memory_limit = own_limits(own_mounts())
    return Node(
        name=name or socket.gethostname(),
        cpus=max(1, int(min(cpus, cpu_limit or cpus))),
        memory_mb=min(memory, memory_limit or memory) // _MB,
        storage_gb=storage_gb,
        gpus=gpu.find_gpus(),
    )


def free_disk_gb(folder: Path) -> int:
    """Return what is free on the disk that holds a folder, in GB."""
    return shutil.disk_usage(folder).free // _GB


def disk_space(folders: Iterable[Path]) -> DiskSpace | None:
    """Return the room on the disk, of those that hold `folders`, that has the least; None: none is there."""
    found: list[DiskSpace] = []
    for folder in folders:
        with contextlib.suppress(OSError):
            usage = shutil.disk_usage(folder)
            found.append(DiskSpace(usage.free // _MB, usage.total // _MB))
    return min(found, key=lambda space: space.free_mb, default=None)


def taken_port(ports: Iterable[int]) -> int | None:
    """Find the first port on which another program of this machine listens already."""
    return next(taken_ports(ports), None)


def taken_ports(ports: Iterable[int]) -> Iterator[int]:
    """Find the ports on which other programs of this machine listen already."""
    for port in ports:
        for family, address in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):  # noqa: S104 (never listens)
            with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_STREAM) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                if _is_taken(probe, address, port):
                    yield port
                    break


def _is_taken(probe: socket.socket, address: str, port: int) -> bool:
    try:
        probe.bind((address, port))
    except OSError as error:
        return error.errno == errno.EADDRINUSE
    return False
