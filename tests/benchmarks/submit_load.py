"""What the benchmarks of submits and restarts share: clients on kept connections, and long queues."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psutil
from msgspec.structs import replace

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, JobEvent
from pai_scheduler.i18n import msg
from pai_scheduler.job.validation import parse_job
from pai_scheduler.store.store import Store

#: One GPU, so that one job runs and all others wait, as in any full cluster.
CLUSTER = """
nodes:
  - {name: node-a, cpus: 64, memoryMB: 400000, storageGB: 1000, gpus: {A100: 1}}
defaults: {jobsPerUser: 10000000}
"""
#: jobs that are written in one transaction when a queue is made
_CHUNK = 10_000

Connect = Callable[
    [Callable[[], asyncio.Protocol]], Awaitable[tuple[asyncio.BaseTransport, asyncio.Protocol]]
]


def job_of_one_gpu(name: str, command: str = "sleep 1000", **extras: Any) -> dict[str, Any]:
    """Make a job as a person submits it: one task, one GPU."""
    role = {"name": "main", "command": command, "cpuNumber": 4, "memoryMB": 8192, "gpuNumber": 1}
    job = {"jobName": name, "image": "registry.lab/train:1", "taskRoles": [role], "jobEnvs": {"EPOCHS": "10"}}
    return {**job, "extras": extras} if extras else job


def seed(store: Store, count: int, user: str) -> None:
    """Put so many waiting jobs into a store that no scheduler has open, as if `user` had submitted them."""
    spec, first = parse_job(job_of_one_gpu("seeded")), store.last_order() + 1
    begun = time.time_ns() // 1_000_000 - count
    for begin in range(0, count, _CHUNK):
        outcome, configs = Outcome(), {}
        for number in range(begin, min(count, begin + _CHUNK)):
            name = f"seeded-{number}"
            now = begun + number
            job = Job(f"seed{number:012}", user, replace(spec, name=name), now, order=first + number)
            outcome.jobs[job.id] = job
            configs[job.id] = job_of_one_gpu(name)
            told = msg("Submitted by {user}.", user=user)
            outcome.job_events.append(JobEvent(job.id, now, "submitted", told))
        store.commit(outcome, configs)


def http_request(path: str, body: object, headers: dict[str, str]) -> bytes:
    """Write a POST as it goes over the wire."""
    content = json.dumps(body).encode()
    head = {"Host": "127.0.0.1", "Content-Type": "application/json", "Content-Length": str(len(content))}
    lines = [f"POST {path} HTTP/1.1", *(f"{key}: {value}" for key, value in (head | headers).items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


@dataclass
class Load:
    """What one load of submits came to. `seconds` and `cpu` (of the server, all its processes) in seconds."""

    names: list[str] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0

    def __str__(self) -> str:
        count, times = max(1, len(self.times)), sorted(self.times) or [0.0]
        median, most = (1e3 * times[len(times) * share // 100] for share in (50, 99))
        return (
            f"{len(self.names) / self.seconds:8,.0f} /s  {1e3 * self.cpu / count:7.3f} ms of a core each"
            f"  median {median:6.1f} ms  99 % {most:7.1f} ms  worst {1e3 * times[-1]:7.1f} ms"
        )


class _Client(asyncio.Protocol):
    """Submits one job after another on one connection, each when the one before is acknowledged."""

    def __init__(self, request: Callable[[], tuple[str, bytes]], load: Load, until: float) -> None:
        self._request, self._load, self._until = request, load, until
        self._answer = bytearray()
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._next()

    def data_received(self, data: bytes) -> None:
        """Count an answer when it is whole."""
        self._answer += data
        head, found, body = bytes(self._answer).partition(b"\r\n\r\n")
        if not found or len(body) < _length(head):
            return
        status = head[9:12]
        if status not in (b"200", b"202"):
            self._end(RuntimeError(f"the answer is {bytes(self._answer)!r}"))
            return
        self._load.names.append(self._name)
        self._load.times.append(time.perf_counter() - self._begin)
        self._answer.clear()
        self._next()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """The server is gone: what was not acknowledged does not count."""
        self._end(None)

    def _next(self) -> None:
        self._begin = time.perf_counter()
        if self._begin > self._until:
            self._end(None)
            return
        try:
            self._name, request = self._request()
        except StopIteration:
            self._end(None)
            return
        self._transport.write(request)

    def _end(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error) if error else self.done.set_result(None)
        self._transport.close()


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0


async def submit(
    connect: Connect,
    request: Callable[[], tuple[str, bytes]],
    clients: int,
    seconds: float,
    servers: Sequence[psutil.Process],
) -> Load:
    """Submit with so many clients for so long; `request` makes the next job's name and its request.

    It raises StopIteration where there is no other: then the load ends before its time.
    """
    load = Load()
    cpu, begin = cpu_seconds(servers), time.perf_counter()
    made = [await connect(lambda: _Client(request, load, begin + seconds)) for _ in range(clients)]
    await asyncio.gather(*(client.done for _, client in made if isinstance(client, _Client)))
    load.seconds = time.perf_counter() - begin
    with suppress(psutil.NoSuchProcess):
        load.cpu = cpu_seconds(servers) - cpu
    return load


def cpu_seconds(servers: Sequence[psutil.Process]) -> float:
    """Return what processes, and those that they started, have taken of a core."""
    total = 0.0
    for process in (each for server in servers for each in (server, *server.children(recursive=True))):
        with suppress(psutil.NoSuchProcess):
            times = process.cpu_times()
            total += times.user + times.system
    return total
