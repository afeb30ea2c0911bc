"""What a machine says of itself and of its way to the others; told by the probe, judged by the doctor."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from docker import DockerClient
from docker.types import DeviceRequest

from pai_scheduler.engine.docker.sync_client import ERRORS

_PCI, _NVIDIA, _DISPLAY = Path("/sys/bus/pci/devices"), "0x10de", "0x03"
_DRIVER = Path("/proc/driver/nvidia/version")
_GPU_LIST = (
    "import json; from pai_scheduler.engine.hardware import find_gpus; "
    "print(json.dumps([gpu.type for gpu in find_gpus()]))"
)


class MachineReport(msgspec.Struct, frozen=True):
    """A machine. Disk in GB (of 2³⁰ bytes, as everywhere), of the file system with Docker's containers."""

    docker: str
    disk_free_gb: float
    disk_gb: float
    #: graphics processors of NVIDIA's on the PCI bus, and the version of the driver (empty: none is loaded)
    gpus_on_bus: int
    gpu_driver: str
    #: Docker can give GPUs to containers
    gpu_runtime: bool
    #: the types that a container sees; empty where there is no runtime, or where it fails
    gpus: tuple[str, ...] = ()
    gpu_error: str = ""
    #: what the registry says of our image; empty: it has it
    registry_error: str = ""


class PeerReport(msgspec.Struct, frozen=True):
    """The way to another machine. `ahead`: seconds that its clock is ahead of this machine's."""

    address: str
    reached: bool
    #: large packets arrive as well
    bulk: bool = False
    ahead: float = 0.0


class NodeReport(msgspec.Struct, frozen=True):
    """All that the probe of one node of a Swarm says. `node`: the node's id."""

    node: str
    machine: MachineReport
    peers: tuple[PeerReport, ...]


def look_at_machine(client: DockerClient, image: str = "", gpu_image: str = "") -> MachineReport:
    """Return the report on the machine of a Docker Engine, on which this process runs too.

    `image`: one that its registry should have. `gpu_image`: one with this package, in which GPUs are listed.
    """
    info = client.info()
    disk = _disk(str(info.get("DockerRootDir") or "/"))
    runtime = "nvidia" in info.get("Runtimes", {})
    gpus, gpu_error = _gpus_of_container(client, gpu_image) if runtime and gpu_image else ((), "")
    return MachineReport(
        docker=str(info["ServerVersion"]),
        disk_free_gb=disk[0],
        disk_gb=disk[1],
        gpus_on_bus=_gpus_on_bus(_PCI),
        gpu_driver=_gpu_driver(_DRIVER),
        gpu_runtime=runtime,
        gpus=tuple(gpus),
        gpu_error=gpu_error,
        registry_error=_registry_error(client, image) if image else "",
    )


def _disk(folder: str) -> tuple[float, float]:
    # within a container the folder is not there, and its own root is on the same file system
    place = os.statvfs(folder if Path(folder).is_dir() else "/")
    return place.f_bavail * place.f_frsize / 2**30, place.f_blocks * place.f_frsize / 2**30


def _gpus_on_bus(bus: Path) -> int:
    devices = list(bus.iterdir()) if bus.is_dir() else []
    return sum(
        (device / "vendor").read_text().strip() == _NVIDIA
        and (device / "class").read_text().startswith(_DISPLAY)
        for device in devices
    )


def _gpu_driver(version: Path) -> str:
    return " ".join(version.read_text().split("\n", 1)[0].split()) if version.exists() else ""


def _gpus_of_container(client: DockerClient, image: str) -> tuple[Sequence[str], str]:
    try:
        said: Any = client.containers.run(
            image,
            ["python3", "-c", _GPU_LIST],
            device_requests=[DeviceRequest(count=-1, capabilities=[["utility"]])],
            network_mode="none",
            remove=True,
        )
        return [str(gpu) for gpu in json.loads(said)], ""
    except (*ERRORS, ValueError) as error:
        return (), _reason(error)


def _registry_error(client: DockerClient, image: str) -> str:
    try:
        client.images.get_registry_data(image)
    except ERRORS as error:
        return _reason(error)
    return ""


def _reason(error: Exception) -> str:
    return str(getattr(error, "explanation", None) or error)[:300]
