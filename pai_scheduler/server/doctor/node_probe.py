"""Looks at a node, on which it runs, and at the way to all others: `python -m …doctor.node_probe`.

Swarm starts one on each node, in an overlay network of their own. It asks every other one for a few bytes,
then sends it as many as fill the largest packets, says what it found in one line of JSON, and goes on
answering until it is ended.
"""

from __future__ import annotations

import contextlib
import os
import random
import socket
import socketserver
import struct
import sys
import threading
import time
from typing import cast

import docker
import msgspec

from pai_scheduler.engine.docker.sync_client import ERRORS, own_container
from pai_scheduler.engine.protocol import EngineError

from .machine_report import NodeReport, PeerReport, look_at_machine

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
