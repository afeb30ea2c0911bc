"""GPU types from product names, what GPUs do, and machines without a driver."""

from __future__ import annotations

import logging

import pytest

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.engine.hardware import GpuMeter, GpuUse, find_gpus, gpu_type
from tests.testbed.nvml import Device, StandInNvml


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        ("NVIDIA H100 80GB HBM3", "H100"),
        ("NVIDIA H100 PCIe", "H100"),
        ("NVIDIA H100 NVL", "H100"),
        ("NVIDIA H200", "H200"),
        ("NVIDIA GH200 480GB", "GH200"),
        ("NVIDIA A100-SXM4-80GB", "A100"),
        ("NVIDIA A100 80GB PCIe", "A100"),
        ("NVIDIA A10G", "A10G"),
        ("NVIDIA L40S", "L40S"),
        ("Tesla V100-SXM2-32GB", "V100"),
        ("Tesla P100-PCIE-16GB", "P100"),
        ("Tesla M40 24GB", "M40"),
        ("Tesla K80", "K80"),
        ("Tesla T4", "T4"),
        ("NVIDIA TITAN X (Pascal)", "TITANX"),
        ("GeForce GTX TITAN X", "TITANX"),
        ("NVIDIA TITAN RTX", "TITANRTX"),
        ("NVIDIA GeForce RTX 4090", "RTX4090"),
        ("NVIDIA GeForce RTX 3080 Ti", "RTX3080Ti"),
        ("NVIDIA GeForce GTX 1080 Ti", "GTX1080Ti"),
        ("NVIDIA RTX A6000", "RTXA6000"),
        ("NVIDIA RTX 6000 Ada Generation", "RTX6000Ada"),
        ("Quadro RTX 8000", "RTX8000"),
        ("NVIDIA Graphics Device", "NVIDIAGraphicsDevice"),
        ("", "GPU"),
    ],
)
def test_a_product_becomes_a_type_as_people_write_it(product: str, expected: str) -> None:
    assert gpu_type(product) == expected


def test_a_machine_without_a_driver_has_no_gpus_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def no_library(name: str, *_: object) -> None:
        raise OSError(f"{name}: cannot open shared object file")

    monkeypatch.setattr("pynvml.nvmlLib", None)
    monkeypatch.setattr("pynvml.CDLL", no_library)
    with caplog.at_level(logging.INFO):
        assert find_gpus() == ()
    assert caplog.text == ""


def test_the_gpus_of_this_machine_are_numbered_and_have_a_type_and_an_identity() -> None:
    gpus = find_gpus()
    assert [gpu.index for gpu in gpus] == list(range(len(gpus)))
    assert all(gpu.type and gpu.uuid and not gpu.simulated for gpu in gpus)


def test_gpus_are_listed_with_their_types_and_identities(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml = StandInNvml(
        monkeypatch, [Device("GPU-a", 0, 0), Device("GPU-b", 0, 0, "Tesla P100-PCIE-16GB", 16 * 2**30)]
    )
    assert find_gpus() == (
        Gpu(0, "H100", "GPU-a", memory_mb=81_920),
        Gpu(1, "P100", "GPU-b", memory_mb=16_384),
    )
    assert (nvml.opened, nvml.closed) == (1, 1)


# what they do


#: The second is a slice of one.
DEVICES = (Device("GPU-0", 40, 2**30), Device("MIG-1", None, 2**20), Device("GPU-2", 80, 2**31))


def test_the_gpus_of_a_task_are_measured_together(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml, meter = StandInNvml(monkeypatch, DEVICES), GpuMeter()
    assert meter.measure([]) is None
    assert nvml.opened == 0
    assert meter.measure(["GPU-0", "GPU-2"]) == GpuUse(60.0, 3072.0)
    assert meter.measure(["GPU-0", "MIG-1"]) == GpuUse(40.0, 1025.0)
    assert meter.measure(["MIG-1"]) == GpuUse(None, 1.0)
    meter.close()
    meter.close()
    assert (nvml.opened, nvml.closed) == (1, 1)


def test_a_lost_gpu_is_not_measured_and_the_driver_is_asked_anew_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nvml, meter = StandInNvml(monkeypatch, DEVICES), GpuMeter()
    nvml.gone = True
    assert meter.measure(["GPU-0"]) is None
    nvml.gone = False
    assert meter.measure(["GPU-0"]) == GpuUse(40.0, 1024.0)
    assert (nvml.opened, nvml.closed) == (2, 1)


def test_an_old_driver_tells_the_memory_in_use_in_its_own_way(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml, meter = StandInNvml(monkeypatch, DEVICES), GpuMeter()
    nvml.old = True
    assert meter.measure(["GPU-0"]) == GpuUse(40.0, 1024.0)


def test_without_a_driver_nothing_is_measured() -> None:
    if not find_gpus():
        assert GpuMeter().measure(["GPU-0"]) is None
