"""Processors, memory, disk and GPUs of this machine (GPUs by NVML)."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import shutil
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pynvml  # type: ignore[import-untyped]  # the module of nvidia-ml-py

from pai_scheduler.cluster.node import DiskSpace, Gpu, Node

from .cgroups import own_limits, own_mounts

# The GPUs of this machine, asked from NVML (NVIDIA's nvidia-ml-py); none where there is no driver.

_log = logging.getLogger(__name__)

#: What stands in a product's name beside the model: who made it, which line, how it is plugged in, its size.
_NOISE = re.compile(
    r"\b(NVIDIA|GeForce|Tesla|Quadro|Graphics|Device|Generation|PCIe|PCIE|SXM\d*|HBM\d\w*|NVL|HGX|OEM"
    r"|\d+\s?GB|GTX(?=\sTITAN)|MIG\s+\S+)\b|\(.*\)"
)


T = TypeVar("T")


class GpuUse(NamedTuple):
    """Usage of some GPUs: mean utilization in per cent, memory in use in MB; None: not reported."""

    percent: float | None
    memory_mb: float | None


def gpu_type(product: str) -> str:
    """Turn a product's name into a type without spaces: "NVIDIA H100 80GB HBM3" is an "H100"."""
    model = re.sub(r"[\s/]+|-+(?=\s|$)", "", _NOISE.sub(" ", product))
    return model or re.sub(r"\s+", "", product) or "GPU"


def find_gpus() -> tuple[Gpu, ...]:
    """List the GPUs in NVML's order (that of the PCI bus, as with CUDA_DEVICE_ORDER=PCI_BUS_ID)."""
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        _log.debug("no GPUs: %s", error)
        return ()
    try:
        return tuple(_gpu(index) for index in range(pynvml.nvmlDeviceGetCount()))
    except pynvml.NVMLError as error:
        _log.warning("the GPUs of this machine cannot be listed: %s", error)
        return ()
    finally:
        pynvml.nvmlShutdown()


class GpuMeter:
    """Measures GPUs by their UUIDs. NVML stays open from the first measurement on: to open it takes long."""

    def __init__(self) -> None:
        self._open = False

    def measure(self, uuids: Sequence[str]) -> GpuUse | None:
        """Measure the GPUs of one task together; None without GPUs, or where NVML cannot be asked. Blocks."""
        if not uuids:
            return None
        try:
            if not self._open:
                pynvml.nvmlInit()
                self._open = True
            handles = [pynvml.nvmlDeviceGetHandleByUUID(uuid) for uuid in uuids]
        except pynvml.NVMLError as error:
            _log.debug("the GPUs cannot be measured: %s", error)
            self.close()  # the driver may have been loaded anew
            return None
        rates = [_ask(partial(_percent, handle)) for handle in handles]
        used = [_ask(partial(_used, handle)) for handle in handles]
        percents = [rate for rate in rates if rate is not None]
        sizes = [size / 2**20 for size in used if size is not None]
        return GpuUse(sum(percents) / len(percents) if percents else None, sum(sizes) if sizes else None)

    def close(self) -> None:
        """Close NVML. Idempotent."""
        if self._open:
            self._open = False
            with contextlib.suppress(pynvml.NVMLError):
                pynvml.nvmlShutdown()


def _ask(question: Callable[[], T]) -> T | None:
    try:
        return question()
    except pynvml.NVMLError:  # a slice of a GPU (MIG) has no utilization of its own
        return None


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name, uuid = pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle)
    size = _ask(partial(_size, handle))
    memory_mb = None if size is None else size // 2**20
    return Gpu(index, gpu_type(_text(name)), _text(uuid), memory_mb=memory_mb)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _percent(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu)


def _size(handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).total)


def _used(handle: Any) -> int:
    # version 1 counts what the driver reserves, too (615 MiB of an H200); nvidia-smi does not
    try:
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2).used)
    except pynvml.NVMLError_FunctionNotFound:
        # a driver before 510, such as 470, the last one for a K80, knows version 1 only
        return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


# What this machine has: processors, memory, disk, GPUs; and whether one of its ports is free.

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
        gpus=find_gpus(),
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
