"""Probe of a node, on which it runs, and of the way to all others: `python -m …doctor.node_probe`."""

from __future__ import annotations

import contextlib
import json
import os
import random
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import docker
import msgspec
from docker import DockerClient
from docker.types import DeviceRequest

from pai_scheduler.engine.docker.sync_client import ERRORS, own_container
from pai_scheduler.engine.protocol import EngineError

# What a machine says of itself and of its way to the others; told by the probe, judged by the doctor.

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


# Looks at a node, on which it runs, and at the way to all others: `python -m …doctor.node_probe`.
#
# Swarm starts one on each node, in an overlay network of their own. It asks every other one for a few
# bytes, then sends it as many as fill the largest packets, says what it found in one line of JSON, and goes
# on answering until it is ended.

PORT = 7948
#: What the doctor sets in the environment of a probe.
NODE, SERVICE, IMAGE, COUNT = "PAI_PROBE_NODE", "PAI_PROBE_SERVICE", "PAI_PROBE_IMAGE", "PAI_PROBE_COUNT"
#: Others are looked for so long (an image may have to be pulled there), each is asked so long.
_FIND_SECONDS, _ASK_SECONDS = 30.0, 4.0
#: A node that has just learnt of another may not reach it yet.
_ATTEMPTS, _PAUSE_SECONDS = 3, 1.0
#: Peers that are asked at most, so that the line stays one of Docker's log; bytes that fill many packets.
MOST_PEERS, _BULK_BYTES = 32, 256 * 1024
_LIFE_SECONDS = 600.0
_COUNT, _TIME = struct.Struct("!I"), struct.Struct("!d")


class _Answer(socketserver.BaseRequestHandler):
    """Takes as many bytes as are announced, and says what time it is here."""

    def handle(self) -> None:
        self.request.settimeout(_ASK_SECONDS)
        with contextlib.suppress(OSError, struct.error):
            (count,) = _COUNT.unpack(_read(self.request, _COUNT.size))
            _read(self.request, min(count, _BULK_BYTES))
            self.request.sendall(_TIME.pack(time.time()))


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads = True, True


def serve(address: str = "0.0.0.0", port: int = PORT) -> socketserver.TCPServer:  # noqa: S104
    """Begin to answer other probes; in a network that only they are in."""
    server = _Server((address, port), _Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def ask(address: str, port: int = PORT) -> PeerReport:
    """Return what the way to another probe is like."""
    for attempt in range(_ATTEMPTS):
        time.sleep(_PAUSE_SECONDS * attempt)
        with contextlib.suppress(OSError, struct.error):
            before = time.time()
            ahead = _exchange(address, port, 0) - (before + time.time()) / 2
            break
    else:
        return PeerReport(address, reached=False)
    try:
        _exchange(address, port, _BULK_BYTES)
    except (OSError, struct.error):
        return PeerReport(address, reached=True, ahead=ahead)
    return PeerReport(address, reached=True, bulk=True, ahead=ahead)


def find_peers(service: str, count: int) -> list[str]:
    """Return the addresses of the other probes, as soon as there are `count`, or as many as came in time."""
    own = {str(info[4][0]) for info in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)}
    give_up = time.monotonic() + _FIND_SECONDS
    found: set[str] = set()
    while len(found) < count and time.monotonic() < give_up:
        with contextlib.suppress(OSError):
            infos = socket.getaddrinfo(f"tasks.{service}", PORT, socket.AF_INET, socket.SOCK_STREAM)
            found = {str(info[4][0]) for info in infos} - own
        time.sleep(0.2)
    return sorted(found)


def main() -> int:
    """Answer, ask, say what was found; stay until ended. Return 1 after a line that says why it cannot."""
    try:
        return _look()
    except (EngineError, *ERRORS) as error:
        print(getattr(error, "explanation", None) or error, file=sys.stderr)
        return 1


def _look() -> int:
    serve()
    peers = find_peers(os.environ[SERVICE], int(os.environ[COUNT]) - 1)
    chosen = random.sample(peers, min(len(peers), MOST_PEERS))
    client = docker.DockerClient(base_url="unix:///var/run/docker.sock")
    own_image = str(own_container(client).attrs["Image"])
    machine = look_at_machine(client, os.environ[IMAGE], own_image)
    report = NodeReport(os.environ[NODE], machine, tuple(ask(peer) for peer in chosen))
    print(msgspec.json.encode(report).decode(), flush=True)
    time.sleep(_LIFE_SECONDS)
    return 0


def _exchange(address: str, port: int, count: int) -> float:
    with socket.create_connection((address, port), _ASK_SECONDS) as connection:
        connection.settimeout(_ASK_SECONDS)
        connection.sendall(_COUNT.pack(count) + bytes(count))
        return cast(float, _TIME.unpack(_read(connection, _TIME.size))[0])


def _read(connection: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count and (piece := connection.recv(count - len(data))):
        data += piece
    return bytes(data)


if __name__ == "__main__":
    sys.exit(main())
