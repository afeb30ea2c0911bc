"""How soon a line that a task writes is at a follower, and what silent followers cost.

    python -m tests.benchmarks.log_lines [--engine docker] [--lines 100] [--followers 20] [--containers 0]

A task prints the time, at uneven gaps; a client that follows its log through the scheduler compares what it
reads with its own clock (the same machine's). Then `--followers` clients follow the log of a task that writes
nothing, for `--seconds`. Printed: median, 95 % and worst of the lines' times, and how much of a core the
scheduler's process takes while nobody follows, and while all of them do. `--containers`: how many silent
tasks run meanwhile. What it prints is for people to compare, between two states of the code on one machine;
nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import NamedTuple

import httpx

from pai_scheduler.client.rest import Client
from tests.testbed.docker import docker_host
from tests.testbed.images import debian_image
from tests.testbed.scheduler import CLUSTER, RunningScheduler

from .rows import Against, Goal, Row

_TICKS = os.sysconf("SC_CLK_TCK")
#: the gaps are 100 to 200 ms: equal ones would meet a look in turns always at the same point
_LINES = "for i in $(seq {count}); do date +%s%N; sleep 0.1$(date +%N | cut -c7-8); done"


class Measured(NamedTuple):
    """The ms that each line took, and the percent of a core that the scheduler took at rest and followed."""

    times: list[float]
    at_rest: float
    followed: float


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--engine", choices=["process", "docker"], default="process")
    parser.add_argument("--lines", type=int, default=100, help="lines that are timed (%(default)s)")
    parser.add_argument("--followers", type=int, default=20, help="silent followers (%(default)s)")
    parser.add_argument("--containers", type=int, default=0, help="silent tasks beside them (%(default)s)")
    parser.add_argument("--seconds", type=float, default=20, help="of each measure at rest (%(default)s)")
    options = parser.parse_args()
    found = _run(options.engine, options.lines, options.followers, options.containers, options.seconds)
    print(
        f"a line to a follower: median {statistics.median(found.times):.1f} ms, 95 % "
        f"{_late(found.times):.1f} ms, worst {max(found.times):.1f} ms ({len(found.times)} lines)\n"
        f"nobody follows: {found.at_rest:.2f} % of a core\n"
        f"{options.followers} silent followers: {found.followed:.2f} % of a core"
    )


def rows(*, short: bool) -> Iterator[Row]:
    """Measure with both engines."""
    for engine in ("process", "docker"):
        lines, seconds = (20, 3.0) if short else (100, 20.0)
        found = _run(engine, lines, followers=20, others=0, seconds=seconds)
        measure = f"a log line to a follower, {engine}"
        goal = Goal(Against.VALUE, at_most=20)
        yield Row(measure=f"{measure}, median", unit="ms", ours=(statistics.median(found.times),), goal=goal)
        yield Row(measure=f"{measure}, 95 %", unit="ms", ours=(_late(found.times),))
        yield Row(
            measure=f"CPU of 20 silent followers, {engine}",
            unit="% of a core",
            ours=(found.followed,),
            goal=Goal(Against.VALUE, at_most=2),
        )


def _late(times: list[float]) -> float:
    return statistics.quantiles(times, n=20)[-1]


def _run(engine: str, lines: int, followers: int, others: int, seconds: float) -> Measured:
    image = "none"
    if engine == "docker":
        os.environ["DOCKER_HOST"] = host = docker_host()
        image = debian_image(host)
    with tempfile.TemporaryDirectory(prefix="pai-log-lines-") as folder:
        running = RunningScheduler(Path(folder), "--engine", engine, cluster=CLUSTER)
        try:
            return asyncio.run(_measure(running, image, lines, followers, others, seconds))
        finally:
            running.close()


async def _measure(
    running: RunningScheduler, image: str, lines: int, followers: int, others: int, seconds: float
) -> Measured:
    async with Client(running.url, "token-of-alice") as alice:

        async def begin(name: str, command: str, tasks: int = 1) -> None:
            role = {"name": "main", "command": command, "memoryMB": 100, "taskNumber": tasks}
            await alice.submit({"jobName": name, "image": image, "taskRoles": [role]})
            async for event in alice.events("alice", name):
                if event["type"] == "running":
                    return

        await begin("lines", _LINES.format(count=lines))
        times = await _line_times(running.url)
        await begin("silent", "sleep 3600", 1 + others)
        await asyncio.sleep(3)
        at_rest = await _share(running, seconds)
        async with AsyncExitStack() as stack:
            http = await stack.enter_async_context(_http())
            for _ in range(followers):
                await stack.enter_async_context(http.stream("GET", _address(running.url, "silent")))
            followed = await _share(running, seconds)
        await alice.stop("alice", "silent")
    return Measured(times, at_rest, followed)


async def _line_times(url: str) -> list[float]:
    """Return the ms from when each line was written until it was here, but for those that waited for us."""
    async with _http() as http, http.stream("GET", _address(url, "lines")) as response:
        begin = time.time_ns()
        return [
            (time.time_ns() - int(line)) / 1e6 async for line in response.aiter_lines() if int(line) > begin
        ]


async def _share(running: RunningScheduler, seconds: float) -> float:
    """Return the percent of a core that the scheduler's process takes."""
    began, before = time.perf_counter(), _cpu_seconds(running.process.pid)
    await asyncio.sleep(seconds)
    return 100 * (_cpu_seconds(running.process.pid) - before) / (time.perf_counter() - began)


def _http() -> httpx.AsyncClient:
    limits = httpx.Limits(max_connections=None)
    return httpx.AsyncClient(
        headers={"Authorization": "Bearer token-of-alice"},
        timeout=httpx.Timeout(30, read=None),
        limits=limits,
    )


def _address(url: str, job: str) -> str:
    return f"{url}/api/v1/user/alice/jobs/{job}/taskRoles/main/tasks/0/logs/all?follow=1"


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
