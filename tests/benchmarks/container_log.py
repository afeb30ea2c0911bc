"""How fast a container's log reaches a follower: `python -m tests.benchmarks.container_log --mb 200`.

A container prints as fast as it can; a client follows its log through the scheduler, and another one the log
of a container like it with `docker logs -f`, turn and turn about in one run. Printed: MB/s from the first
byte to the last, their ratio, the processor time of the scheduler's process, and how long other calls took
meanwhile. What it prints is for people to compare, between two states of the code on one machine; nothing is
asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import httpx

from pai_scheduler.client.rest import Client
from tests.testbed.docker import docker_host
from tests.testbed.images import debian_image
from tests.testbed.scheduler import CLUSTER, RunningScheduler

_TICKS = os.sysconf("SC_CLK_TCK")
_CALL_PAUSE = 0.02


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--mb", type=int, default=200, help="what is printed (%(default)s)")
    parser.add_argument("--line", type=int, default=1000, help="bytes of one line (%(default)s)")
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is measured (%(default)s)")
    options = parser.parse_args()
    host = docker_host()
    image = debian_image(host)
    os.environ["DOCKER_HOST"] = host
    with tempfile.TemporaryDirectory(prefix="pai-container-log-") as folder:
        running = RunningScheduler(Path(folder), "--engine", "docker", cluster=CLUSTER)
        try:
            asyncio.run(_measure(running, image, options.mb, options.line, options.rounds))
        finally:
            running.close()


async def _measure(running: RunningScheduler, image: str, mb: int, line: int, rounds: int) -> None:
    lines = mb * 1_000_000 // line
    command = f"sleep 1; yes {'x' * (line - 1)} | head -n {lines}"
    ratios = []
    for number in range(rounds):
        plain = await asyncio.to_thread(_plain, image, command, mb)
        before = _cpu_seconds(running.process.pid)
        ours, waits = await _ours(running, image, command, f"flood-{number}", lines * line)
        cpu = _cpu_seconds(running.process.pid) - before
        ratios.append(ours / plain)
        print(
            f"docker logs -f {plain:6.1f} MB/s   scheduler {ours:6.1f} MB/s   ratio {ours / plain:4.2f}   "
            f"{cpu:5.2f} s of its processor   other calls: median {statistics.median(waits) * 1000:.0f} ms, "
            f"longest {max(waits) * 1000:.0f} ms",
            flush=True,
        )
    print(f"ratio, median of {rounds}: {statistics.median(ratios):.2f}")


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
) -> tuple[float, list[float]]:
    """Return the MB/s of a follower of the scheduler's, and how long other calls took meanwhile (s)."""
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
        async with http.stream("GET", address, timeout=None) as response:
            async for chunk in response.aiter_raw():
                begin = begin or time.perf_counter()
                size += len(chunk)
        took = time.perf_counter() - begin
        ended.set()
        await calls
        assert size == expected, (size, expected)
        await alice.delete("alice", name)
    return size / took / 1e6, waits


async def _call(http: httpx.AsyncClient, address: str, ended: asyncio.Event, waits: list[float]) -> None:
    while not ended.is_set():
        begin = time.perf_counter()
        (await http.get(address)).raise_for_status()
        waits.append(time.perf_counter() - begin)
        await asyncio.sleep(_CALL_PAUSE)


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


if __name__ == "__main__":
    main()
