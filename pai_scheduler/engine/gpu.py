"""The GPUs of this machine, asked from NVML (NVIDIA's nvidia-ml-py); none where there is no driver."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import pynvml  # type: ignore[import-untyped]  # the module of nvidia-ml-py

from pai_scheduler.cluster.node import Gpu

_log = logging.getLogger(__name__)

#: What stands in a product's name beside the model: who made it, which line, how it is plugged in, its size.
_NOISE = re.compile(
    r"\b(NVIDIA|GeForce|Tesla|Quadro|Graphics|Device|Generation|PCIe|PCIE|SXM\d*|HBM\d\w*|NVL|HGX|OEM"
    r"|\d+\s?GB|GTX(?=\sTITAN)|MIG\s+\S+)\b|\(.*\)"
)


T = TypeVar("T")


class GpuUse(NamedTuple):
    """What some GPUs do: mean utilization in per cent, memory in use in MB; None: they do not tell."""

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
