"""What a scheduler takes while containers run that say nothing, and nobody looks.

    python -m tests.benchmarks.idle [--containers 0 50] [--seconds 60]

One job with so many tasks that sleep, on a real scheduler; when all have run for a while, so that no start is
counted. Printed: how much of a core the scheduler's process takes, and Docker's daemon and its containerd
because of it (less what they take with the same containers when the scheduler has gone).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import psutil

from pai_scheduler.client.rest import Client
from tests.testbed.docker import client, docker_host
from tests.testbed.images import debian_image
from tests.testbed.scheduler import CLUSTER, RunningScheduler

from .containers import CpuOf, docker_processes, until_runs
from .rows import Against, Goal, Row

#: seconds after which a task that has begun is measured no oftener than any other
_SETTLE_SECONDS = 15
#: for fifty containers on a busy machine; what stays would be measured with whatever comes next
_REMOVAL_SECONDS = 300


class Shares(NamedTuple):
    """Percent of a core: of the scheduler, and of Docker with it and without it."""

    scheduler: float
    docker: float
    docker_alone: float


def rows(*, short: bool) -> Iterator[Row]:
    """Measure without containers and with many."""
    for containers in (0, 2) if short else (0, 50):
        found = _run(containers, 2 if short else 60, 1 if short else _SETTLE_SECONDS)
        yield Row(
            measure=f"CPU of the scheduler at rest, {containers} containers",
            unit="% of a core",
            ours=(found.scheduler,),
            goal=Goal(Against.VALUE, at_most=1),
        )
        yield Row(
            measure=f"CPU of Docker at rest, {containers} containers",
            unit="% of a core",
            ours=(found.docker,),
            peer="without the scheduler",
            theirs=(found.docker_alone,),
        )


def _run(containers: int, seconds: float, settle: float) -> Shares:
    os.environ["DOCKER_HOST"] = host = docker_host()
    image = debian_image(host)
    cpu = docker_processes(host)
    with tempfile.TemporaryDirectory(prefix="pai-idle-") as folder:
        running = RunningScheduler(Path(folder), "--engine", "docker", cluster=CLUSTER)
        try:
            asyncio.run(_start(running, image, containers))
            time.sleep(settle)
            scheduler, docker = _shares(seconds, [psutil.Process(running.process.pid)], cpu)
            running.kill()
            (docker_alone,) = _shares(seconds, cpu)
            running.start()
            if containers:
                asyncio.run(_end(running))
        finally:
            running.close()
    return Shares(scheduler, docker, docker_alone)


async def _start(running: RunningScheduler, image: str, containers: int) -> None:
    if containers:
        role: dict[str, Any] = {
            "name": "main",
            "command": "exec sleep 100000",
            "taskNumber": containers,
            "memoryMB": 100,
        }
        async with Client(running.url, "token-of-alice") as alice:
            await alice.submit({"jobName": "silent", "image": image, "taskRoles": [role]})
            await until_runs(alice, "silent")


async def _end(running: RunningScheduler) -> None:
    """End the job, and see that its containers were there until now and are gone then."""
    (mark,) = running.data_dir.rglob("docker-instance")
    label = f"pai.instance={mark.read_text().strip()}"
    with client(os.environ["DOCKER_HOST"]) as docker:
        assert docker.containers.list(filters={"label": label}), "the containers have ended meanwhile"
    async with Client(running.url, "token-of-alice") as alice:
        await alice.delete("alice", "silent")
    with client(os.environ["DOCKER_HOST"]) as docker:
        for _ in range(_REMOVAL_SECONDS):
            if not docker.api.containers(all=True, quiet=True, filters={"label": label}):
                return
            await asyncio.sleep(1)
    raise AssertionError(f"its containers were still there after {_REMOVAL_SECONDS} s")


def _shares(seconds: float, *groups: Sequence[psutil.Process]) -> list[float]:
    """Return the percent of a core that each of these groups of processes takes."""
    used, begin = [CpuOf(*group) for group in groups], time.perf_counter()
    time.sleep(seconds)
    took = time.perf_counter() - begin
    return [100 * one.seconds() / took for one in used]


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--containers", type=int, nargs="+", default=[0, 50])
    parser.add_argument("--seconds", type=float, default=60, help="of each measure (%(default)s)")
    options = parser.parse_args()
    for containers in options.containers:
        found = _run(containers, options.seconds, _SETTLE_SECONDS)
        print(
            f"{containers} containers: the scheduler {found.scheduler:.2f} % of a core, Docker "
            f"{found.docker:.2f} % (without the scheduler {found.docker_alone:.2f} %)",
            flush=True,
        )


if __name__ == "__main__":
    main()
