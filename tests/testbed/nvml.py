"""GPUs that this machine does not have: what NVML answers to those who ask it in this process."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import pynvml  # type: ignore[import-untyped]
import pytest


@dataclass(frozen=True)
class Device:
    """One GPU, or a slice of one (MIG), which has no utilization (`percent`) of its own.

    `used`, `total`: bytes of its memory.
    """

    uuid: str
    percent: int | None
    used: int
    product: str = "NVIDIA H100 80GB HBM3"
    total: int = 80 * 2**30


class StandInNvml:
    """NVML with some GPUs, as long as `monkeypatch` lasts.

    `gone`: they have fallen off the bus; `old`: it is that of a driver before 510.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, devices: Sequence[Device]) -> None:
        self._devices = list(devices)
        self.opened = self.closed = 0
        self.gone = self.old = False
        for name, answer in {
            "Init": self._open,
            "Shutdown": self._close,
            "DeviceGetCount": lambda: len(self._devices),
            "DeviceGetHandleByIndex": lambda index: self._devices[index],
            "DeviceGetHandleByUUID": self._find,
            "DeviceGetName": lambda device: device.product,
            "DeviceGetUUID": lambda device: device.uuid,
            "DeviceGetUtilizationRates": _utilization,
            "DeviceGetMemoryInfo": self._memory,
        }.items():
            monkeypatch.setattr(f"pynvml.nvml{name}", answer)

    def _open(self) -> None:
        self.opened += 1

    def _close(self) -> None:
        self.closed += 1

    def _find(self, uuid: str) -> Device:
        if self.gone:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        for device in self._devices:
            if device.uuid == uuid:
                return device
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)

    def _memory(self, device: Device, version: int | None = None) -> SimpleNamespace:
        if version is not None and self.old:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        # (615 MiB of an H200, driver 580.159.04: version 1 said 644,939,776 bytes used with nothing running)
        reserved = 0 if version == pynvml.nvmlMemory_v2 or self.old else 644_939_776
        return SimpleNamespace(used=device.used + reserved, total=device.total)


def _utilization(device: Device) -> SimpleNamespace:
    if device.percent is None:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return SimpleNamespace(gpu=device.percent)
