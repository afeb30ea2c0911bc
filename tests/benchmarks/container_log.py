"""How fast a container's log reaches a follower: `python -m tests.benchmarks.container_log --mb 200`.

A container prints as fast as it can; a client follows its log through the scheduler, and another one the log
of a container like it with `docker logs -f`, turn and turn about in one run. Printed: MB/s from the first
byte to the last, their ratio, the processor time of the scheduler's process, and how long other calls took
meanwhile; beside them, how late a process woke that did nothing but sleep: so long whoever is there waits for
a core of this machine. What it prints is for people to compare, between two states of the code on one
machine; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx

from pai_scheduler.client.rest import Client
from tests.testbed.docker import docker_host
from tests.testbed.images import debian_image
from tests.testbed.scheduler import CLUSTER, RunningScheduler

from .rows import Against, Goal, Row

_TICKS = os.sysconf("SC_CLK_TCK")
_CALL_PAUSE = 0.02
#: Sleeps until its input ends, then says by how many seconds it woke too late at the most.
_SLEEPER = """
import select, sys, time
latest = 0.0
while True:
    until = time.perf_counter() + 0.005
    if select.select([sys.stdin], [], [], 0.005)[0]:
        break
    latest = max(latest, time.perf_counter() - until)
print(latest)
"""


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mb", type=int, default=200, help="what is printed (%(default)s)")
    parser.add_argument("--line", type=int, default=1000, help="bytes of one line (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is measured (%(default)s)")
    options = parser.parse_args()
    found = _rounds(options.mb, options.line, options.rounds)
    for one in found:
        print(
            f"docker logs -f {one.plain:6.1f} MB/s   scheduler {one.ours:6.1f} MB/s   "
            f"ratio {one.ours / one.plain:4.2f}   {one.cpu:5.2f} s of its processor   other calls: "
            f"median {statistics.median(one.waits) * 1000:.0f} ms, longest {max(one.waits) * 1000:.0f} ms "
            f"(a sleeping process {one.woke_late * 1000:.0f} ms)"
        )
    ratio = statistics.median(one.ours / one.plain for one in found)
    print(f"ratio, median of {options.rounds}: {ratio:.2f}")


class Round(NamedTuple):
    """MB/s of `docker logs -f` and of the scheduler, its CPU seconds, and what other calls waited (s).

    `woke_late`: how late (s) a process woke meanwhile, at the most, that did nothing but sleep.
    """

    plain: float
    ours: float
    cpu: float
    waits: list[float]
    woke_late: float


def rows(*, short: bool) -> Iterator[Row]:
    """Measure both ways in turn."""
    mb = 10 if short else 200
    found = _rounds(mb, 1000, 1 if short else 3)
    yield Row(
        measure="log of a container to a follower",
        unit="MB/s",
        ours=tuple(one.ours for one in found),
        peer="docker logs -f",
        theirs=tuple(one.plain for one in found),
        goal=Goal(Against.RATIO, at_least=1),
    )
    yield Row(
        measure=f"CPU of the scheduler for {mb} MB of a container's log",
        unit="s",
        ours=tuple(one.cpu for one in found),
    )
    yield Row(
        measure="longest other call meanwhile",
        unit="ms",
        ours=tuple(1000 * max(one.waits) for one in found),
        peer="a process that sleeps, how late it wakes",
        theirs=tuple(1000 * one.woke_late for one in found),
    )


def _rounds(mb: int, line: int, rounds: int) -> list[Round]:
    host = docker_host()
    image = debian_image(host)
    os.environ["DOCKER_HOST"] = host
    with tempfile.TemporaryDirectory(prefix="pai-container-log-") as folder:
        running = RunningScheduler(Path(folder), "--engine", "docker", cluster=CLUSTER)
        try:
            return asyncio.run(_measure(running, image, mb, line, rounds))
        finally:
            running.close()


async def _measure(running: RunningScheduler, image: str, mb: int, line: int, rounds: int) -> list[Round]:
    lines = mb * 1_000_000 // line
    command = f"sleep 1; yes {'x' * (line - 1)} | head -n {lines}"
    found = []
    for number in range(rounds):
        plain = await asyncio.to_thread(_plain, image, command, mb)
        before = _cpu_seconds(running.process.pid)
        ours, waits, woke_late = await _ours(running, image, command, f"flood-{number}", lines * line)
        found.append(Round(plain, ours, _cpu_seconds(running.process.pid) - before, waits, woke_late))
    return found


def _plain(image: str, command: str, mb: int) -> float:
    """Return the MB/s of `docker logs -f`, of a container that logs as tasks do."""
    options = ("--log-driver", "local", "--log-opt", "max-size=256m", "--log-opt", "max-file=4")
    start = ("docker", "run", "-d", *options, "--log-opt", "compress=false", image, "sh", "-c", command)
    container = subprocess.run(start, check=True, capture_output=True, text=True).stdout.strip()
    try:
        with subprocess.Popen(("docker", "logs", "-f", container), stdout=subprocess.PIPE) as follower:
            assert follower.stdout is not None
            begin, size = 0.0, 0
            while chunk := os.read(follower.stdout.fileno(), 2**20):
                begin = begin or time.perf_counter()
                size += len(chunk)
        assert size >= mb * 990_000, size
        return size / (time.perf_counter() - begin) / 1e6
    finally:
        subprocess.run(("docker", "rm", "-f", container), check=True, capture_output=True)


async def _ours(
    running: RunningScheduler, image: str, command: str, name: str, expected: int
) -> tuple[float, list[float], float]:
    """Return a follower's MB/s, and how long other calls took and how late a sleeper woke meanwhile (s)."""
    roles = [{"name": "main", "command": command, "memoryMB": 500}]
    headers = {"Authorization": "Bearer token-of-alice"}
    waits: list[float] = []
    async with Client(running.url, "token-of-alice") as alice, httpx.AsyncClient(headers=headers) as http:
        await alice.submit({"jobName": name, "image": image, "taskRoles": roles})
        async for event in alice.events("alice", name):
            if event["type"] == "running":
                break
        ended = asyncio.Event()
        calls = asyncio.create_task(_call(http, f"{running.url}/api/v1/jobs", ended, waits))
        address = f"{running.url}/api/v1/user/alice/jobs/{name}/taskRoles/main/tasks/0/logs/all?follow=1"
        begin, size = 0.0, 0
        with _sleeper() as woken:
            async with http.stream("GET", address, timeout=None) as response:
                async for chunk in response.aiter_raw():
                    begin = begin or time.perf_counter()
                    size += len(chunk)
            took = time.perf_counter() - begin
            ended.set()
            await calls
            woke_late = woken()
        assert size == expected, (size, expected)
        await alice.delete("alice", name)
    return size / took / 1e6, waits, woke_late


async def _call(http: httpx.AsyncClient, address: str, ended: asyncio.Event, waits: list[float]) -> None:
    while not ended.is_set():
        begin = time.perf_counter()
        (await http.get(address)).raise_for_status()
        waits.append(time.perf_counter() - begin)
        await asyncio.sleep(_CALL_PAUSE)


@contextmanager
def _sleeper() -> Iterator[Callable[[], float]]:
    """Have a process sleep; gives what ends it and returns how late it woke at the most (s)."""
    # in a session of its own: to the kernel it is not a part of what the client computes
    with subprocess.Popen(
        (sys.executable, "-c", _SLEEPER),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            yield lambda: float(process.communicate()[0])
        finally:
            process.kill()


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
