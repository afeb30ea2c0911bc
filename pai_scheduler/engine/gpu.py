"""The GPUs of this machine, asked from NVML (NVIDIA's nvidia-ml-py); none where there is no driver."""

from __future__ import annotations

import logging
import re

import pynvml  # type: ignore[import-untyped]  # the module of nvidia-ml-py

from ..cluster.node import Gpu

_log = logging.getLogger(__name__)

#: What stands in a product's name beside the model: who made it, which line, how it is plugged in, its size.
_NOISE = re.compile(
    r"\b(NVIDIA|GeForce|Tesla|Quadro|Graphics|Device|Generation|PCIe|PCIE|SXM\d*|HBM\d\w*|NVL|HGX|OEM"
    r"|\d+\s?GB|GTX(?=\sTITAN)|MIG\s+\S+)\b|\(.*\)"
)


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


def _gpu(index: int) -> Gpu:
    handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    name, uuid = pynvml.nvmlDeviceGetName(handle), pynvml.nvmlDeviceGetUUID(handle)
    return Gpu(index, gpu_type(_text(name)), _text(uuid))


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value
