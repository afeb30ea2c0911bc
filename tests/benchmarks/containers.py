"""How many containers a second, from the making of each to its removal, beside Docker alone.

    python -m tests.benchmarks.containers [--at-once 1 2 4 8] [--rounds 3] [--containers 24]

Jobs of one task are submitted to a real scheduler, and begin all at one moment, on a node with room for so
many at once. The peer makes, starts, awaits and removes containers like theirs, so many at once: on Docker's
own bridge, where all containers reach each other, and on a network of their own, which is there already, as
that of a small job is. Turn and turn about. The time is Docker's own, of its events: from the first container
made to the last one removed. The events are the check too: each container began, ended with 0 and is gone,
and no more of them ran at once than had room.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import aiodocker
import aiohttp
import psutil

from pai_scheduler.client.rest import Client
from tests.testbed.docker import docker_host, info
from tests.testbed.images import debian_image
from tests.testbed.scheduler import RunningScheduler

from .rows import Against, Goal, Row

AT_ONCE = (1, 2, 4, 8)
_CLUSTER = """
nodes:
  - {{name: node-a, cpus: {cpus}, memoryMB: 400000, storageGB: 1000}}
virtualClusters:
  default: {{capacity: 100}}
"""
#: the label of the peer's containers; the value names its turn
_PEER = "containers-benchmark"
_MEMORY_MB = 100
#: how often the removal of a network is tried, and seconds between two tries
_REMOVAL_TRIES, _REMOVAL_SECONDS = 30, 1.0
_PATIENCE_SECONDS = 120


class Seen:
    """What Docker's events told of containers: their times in seconds, and the exit codes, by name."""

    def __init__(self) -> None:
        self.made: dict[str, float] = {}
        self.started: dict[str, float] = {}
        self.died: dict[str, float] = {}
        self.removed: dict[str, float] = {}
        self.codes: dict[str, str] = {}
        self.news = asyncio.Event()

    def hear(self, event: dict[str, Any]) -> None:
        """Note an event; those of containers whose making was not heard are nobody's."""
        about = event["Actor"]["Attributes"]
        name, when = str(about["name"]), event["timeNano"] / 1e9
        if event["Action"] == "create":
            self.made[name] = when
        if name in self.made:
            told = {"start": self.started, "die": self.died, "destroy": self.removed}
            if event["Action"] in told:
                told[event["Action"]][name] = when
            if event["Action"] == "die":
                self.codes[name] = str(about["exitCode"])
        self.news.set()

    async def wait_for(self, containers: int) -> None:
        """Wait until so many were removed."""
        async with asyncio.timeout(_PATIENCE_SECONDS):
            while len(self.removed) < containers:
                self.news.clear()
                await self.news.wait()

    @property
    def seconds(self) -> float:
        """Return how long it took from the first that was made to the last that was removed."""
        return max(self.removed.values()) - min(self.made.values())

    def check(self, containers: int, at_once: int) -> None:
        """Raise AssertionError where one failed, is missing or still there, or too many ran at once."""
        names = set(self.made)
        assert len(names) == containers, f"{len(names)} containers were made, not {containers}"
        for told in (self.started, self.died, self.removed):
            assert set(told) == names, f"not heard of all: {names - set(told)}"
        assert set(self.codes.values()) == {"0"}, f"exit codes: {Counter(self.codes.values())}"
        steps = [(when, 1) for when in self.started.values()] + [(when, -1) for when in self.died.values()]
        running = 0
        for _, step in sorted(steps):
            running += step
            assert running <= at_once, f"{running} ran at once, where {at_once} had room"


@dataclass(frozen=True)
class Turn:
    """Containers a second, and ms of CPU each: of dockerd and containerd, and of the scheduler."""

    rate: float
    docker_ms: float
    scheduler_ms: float = 0.0


class Way(NamedTuple):
    """All ways in their turns; `theirs`: on the bridge, `apart`: on a network of their own."""

    ours: list[Turn]
    theirs: list[Turn]
    apart: list[Turn]


class CpuOf:
    """Counts the CPU seconds of processes (user and system) from its making on."""

    def __init__(self, *processes: psutil.Process) -> None:
        self._processes = processes
        self._begin = self._sum()

    def seconds(self) -> float:
        """Return what they took since then."""
        return self._sum() - self._begin

    def _sum(self) -> float:
        return sum(sum(process.cpu_times()[:2]) for process in self._processes)


def docker_processes(host: str) -> list[psutil.Process]:
    """Find the daemon of a socket (`unix://…`) and its containerd; none where they are somewhere else."""
    socket = host.removeprefix("unix://")
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        if process.info["name"] == "dockerd" and host in (process.info["cmdline"] or ()):
            found += [process, *(child for child in process.children() if child.name() == "containerd")]
    return found if info(Path(socket)) is not None else []


@asynccontextmanager
async def watched(docker: aiodocker.Docker, label: str) -> AsyncIterator[Seen]:
    """Hear of all containers with a label."""
    seen = Seen()
    params = {
        "since": f"{time.time():.9f}",
        "filters": json.dumps({"type": ["container"], "label": [label]}),
    }
    await docker.version()  # only then it knows which version of the API to speak
    url = f"{docker.docker_host}/{docker.api_version}/events"
    timeout = aiohttp.ClientTimeout(total=None)
    async with docker.session.get(url, params=params, timeout=timeout) as response:
        response.raise_for_status()

        async def listen() -> None:
            async for line in response.content:
                seen.hear(json.loads(line))

        listening = asyncio.create_task(listen())
        try:
            yield seen
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def _by_docker(
    docker: aiodocker.Docker,
    cpu: Sequence[psutil.Process],
    image: str,
    containers: int,
    at_once: int,
    network: str = "bridge",
) -> Turn:
    """Run containers as tasks are: with an init, limits and their log driver."""
    turn = f"{time.time_ns()}"
    config: dict[str, Any] = {
        "Image": image,
        "Cmd": ["bash", "-c", "true"],
        "Labels": {_PEER: turn},
        "HostConfig": {
            "Init": True,
            "NetworkMode": network,
            "Memory": _MEMORY_MB * 2**20,
            "MemorySwap": _MEMORY_MB * 2**20,
            "NanoCpus": 10**9,
            "LogConfig": {"Type": "local", "Config": {}},
        },
    }
    todo = iter(range(containers))

    async def work() -> None:
        for number in todo:
            container = await docker.containers.create(config, name=f"{_PEER}-{turn}-{number}")
            await container.start()
            await container.wait()
            await container.delete()

    used = CpuOf(*cpu)
    async with watched(docker, f"{_PEER}={turn}") as seen:
        await asyncio.gather(*(work() for _ in range(at_once)))
        await seen.wait_for(containers)
    seen.check(containers, at_once)
    return Turn(containers / seen.seconds, 1e3 * used.seconds() / containers)


class Ours:
    """A scheduler with room for so many tasks at once."""

    def __init__(self, folder: Path, docker: aiodocker.Docker, image: str, at_once: int) -> None:
        self._docker, self._image, self._at_once = docker, image, at_once
        cluster = _CLUSTER.format(cpus=at_once)
        self._running = RunningScheduler(folder, "--engine", "docker", cluster=cluster)
        (mark,) = self._running.data_dir.rglob("docker-instance")
        self._label = f"pai.instance={mark.read_text().strip()}"
        self._turns = 0

    def close(self) -> None:
        """End it."""
        self._running.close()

    async def turn(self, cpu: Sequence[psutil.Process], containers: int) -> Turn:
        """Run jobs, submitted while another one has all the room."""
        self._turns += 1
        async with Client(self._running.url, "token-of-alice") as alice:
            gate = f"gate-{self._turns}"
            await alice.submit(self._job(gate, "sleep 1000", self._at_once))
            await until_runs(alice, gate)
            slots = asyncio.Semaphore(8)

            async def submit(number: int) -> None:
                async with slots:
                    await alice.submit(self._job(f"one-{self._turns}-{number}", "true", 1))

            await asyncio.gather(*(submit(number) for number in range(containers)))
            async with watched(self._docker, self._label) as seen:
                used = CpuOf(*cpu)
                mine = CpuOf(psutil.Process(self._running.process.pid))
                await alice.stop("alice", gate)
                await seen.wait_for(containers)
                docker_ms, scheduler_ms = (1e3 * one.seconds() / containers for one in (used, mine))
            seen.check(containers, self._at_once)
        return Turn(containers / seen.seconds, docker_ms, scheduler_ms)

    def _job(self, name: str, command: str, cpus: int) -> dict[str, Any]:
        role = {"name": "main", "command": command, "cpuNumber": cpus, "memoryMB": _MEMORY_MB}
        return {"jobName": name, "image": self._image, "taskRoles": [role]}


async def until_runs(client: Client, job: str) -> None:
    """Wait until a job of alice's runs."""
    async for event in client.events("alice", job):
        if event["type"] == "running":
            return


async def _measure(at_once: int, containers: int, rounds: int) -> Way:
    host = docker_host()
    image = debian_image(host)
    cpu = docker_processes(host)
    os.environ["DOCKER_HOST"] = host
    found = Way([], [], [])
    with tempfile.TemporaryDirectory(prefix="pai-containers-") as folder:
        async with aiodocker.Docker(url=host) as docker:
            network = await docker.networks.create({"Name": f"{_PEER}-{time.time_ns()}", "Driver": "bridge"})
            ours = await asyncio.to_thread(Ours, Path(folder), docker, image, at_once)
            try:
                await ours.turn(cpu, 2 * at_once)  # what is made once, such as networks, is there then
                for _ in range(rounds):
                    found.theirs.append(await _by_docker(docker, cpu, image, containers, at_once))
                    found.ours.append(await ours.turn(cpu, containers))
                    found.apart.append(await _by_docker(docker, cpu, image, containers, at_once, network.id))
            finally:
                await asyncio.to_thread(ours.close)
                await remove_network(network)
    return found


async def remove_network(network: aiodocker.networks.DockerNetwork) -> None:
    """Remove a network: Docker may let go of it only after it has told the end of its last container.

    Docker 20.10 sometimes counts a container for ever that it lists no more; then the network is left to it.
    """
    for left in reversed(range(_REMOVAL_TRIES)):
        try:
            await network.delete()
        except aiodocker.DockerError as error:
            if not left:
                if (await network.show())["Containers"]:
                    raise
                print(f"Docker keeps a network in which nothing is: {error.message}", file=sys.stderr)
                return
            await asyncio.sleep(_REMOVAL_SECONDS)
        else:
            return


def rows(*, short: bool) -> Iterator[Row]:
    """Measure with 1, 2, 4 and 8 at once, both ways in turn."""
    for at_once in AT_ONCE:
        containers, rounds = (2 * at_once, 1) if short else (16 + 4 * at_once, 3)
        found = asyncio.run(_measure(at_once, containers, rounds))
        yield Row(
            measure=f"containers, {at_once} at once",
            unit="/s",
            ours=tuple(turn.rate for turn in found.ours),
            peer="Docker alone",
            theirs=tuple(turn.rate for turn in found.theirs),
            goal=Goal(Against.RATIO, at_least=0.95),
        )
        yield Row(
            measure=f"the same, {at_once} at once",
            unit="/s",
            ours=tuple(turn.rate for turn in found.ours),
            peer="Docker alone, a network of their own",
            theirs=tuple(turn.rate for turn in found.apart),
        )
        yield Row(
            measure=f"CPU of Docker for a container, {at_once} at once",
            unit="ms",
            ours=tuple(turn.docker_ms for turn in found.ours),
            peer="Docker alone, a network of their own",
            theirs=tuple(turn.docker_ms for turn in found.apart),
        )
        yield Row(
            measure=f"CPU of the scheduler for a container, {at_once} at once",
            unit="ms",
            ours=tuple(turn.scheduler_ms for turn in found.ours),
        )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--at-once", type=int, nargs="+", default=AT_ONCE)
    parser.add_argument("--rounds", type=int, default=3, help="how often each way is measured (%(default)s)")
    parser.add_argument("--containers", type=int, default=24, help="of each turn (%(default)s)")
    options = parser.parse_args()
    for at_once in options.at_once:
        found = asyncio.run(_measure(at_once, options.containers, options.rounds))
        for ours, theirs, apart in zip(found.ours, found.theirs, found.apart, strict=True):
            print(
                f"{at_once} at once: scheduler {ours.rate:5.2f}/s   Docker alone {theirs.rate:5.2f}/s, ratio "
                f"{ours.rate / theirs.rate:4.2f}; with a network {apart.rate:5.2f}/s, ratio "
                f"{ours.rate / apart.rate:4.2f}   CPU of Docker {ours.docker_ms:4.0f}, alone "
                f"{theirs.docker_ms:4.0f} and {apart.docker_ms:4.0f} ms each, of the scheduler "
                f"{ours.scheduler_ms:4.0f} ms",
                flush=True,
            )
        for peer, turns in (("Docker alone", found.theirs), ("with a network", found.apart)):
            ratio = statistics.median(
                ours.rate / theirs.rate for ours, theirs in zip(found.ours, turns, strict=True)
            )
            print(f"{at_once} at once, {peer}: ratio, median of {options.rounds}: {ratio:.2f}", flush=True)


if __name__ == "__main__":
    main()
