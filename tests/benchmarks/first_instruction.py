"""How long until a task's command runs in a container: as Docker alone has it, through the engine, with SSH.

    python -m tests.benchmarks.first_instruction [rounds]

Milliseconds from the asking until the command reads the clock, the three ways in turn; median and worst of
all rounds but the first, in which Docker warms up.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiodocker

from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.ssh.runtime.container.build import build
from tests.scheduler.engine.lab import Lab
from tests.scheduler.engine.ssh_tasks import with_ssh
from tests.testbed.docker import docker_host
from tests.testbed.images import debian_image

from .rows import Against, Goal, Row

_COMMAND = "date +%s%N"


async def _by_docker(docker: aiodocker.Docker, image: str) -> float:
    """Run it as `docker run` does, with as much around it as a task has: an init, a network of its own."""
    name = f"first-instruction-{time.time_ns()}"
    network = await docker.networks.create({"Name": name, "Driver": "bridge"})
    begin = time.time_ns()
    container = await docker.containers.create(
        {
            "Image": image,
            "Cmd": ["bash", "-c", _COMMAND],
            "HostConfig": {"Init": True, "NetworkMode": name},
        },
        name=name,
    )
    await container.start()
    await container.wait()
    said = "".join(await container.log(stdout=True))
    await container.delete()
    await network.delete()
    return (int(said) - begin) / 1e6


async def _by_engine(lab: Lab, *, ssh: bool) -> float:
    (launch,) = await lab.prepare(lab.make(_COMMAND))
    if ssh:
        (launch,) = with_ssh(launch)
    begin = time.time_ns()
    await lab.engine.launch(launch)
    await lab.ended(launch.task)
    said = lab.output(launch.task)
    await lab.engine.release(lab.gangs.pop())
    return (int(said) - begin) / 1e6


async def _measure(rounds: int) -> dict[str, list[float]]:
    host = docker_host()
    image = debian_image(host)
    runtime = build(image, host)
    times: dict[str, list[float]] = {"Docker alone": [], "engine": [], "engine, with SSH": []}
    with tempfile.TemporaryDirectory() as folder:
        engine = DockerEngine(Path(folder), host=host, runtime_image=runtime)
        await engine.start()
        lab = await Lab.over(engine, image)
        async with aiodocker.Docker(url=host) as docker:
            for _ in range(rounds + 1):
                times["Docker alone"].append(await _by_docker(docker, image))
                times["engine"].append(await _by_engine(lab, ssh=False))
                times["engine, with SSH"].append(await _by_engine(lab, ssh=True))
        await lab.clean()
        await engine.close()
    return {name: found[1:] for name, found in times.items()}


def rows(*, short: bool) -> Iterator[Row]:
    """Measure the ways of the engine beside Docker alone."""
    times = asyncio.run(_measure(1 if short else 20))
    theirs = tuple(times.pop("Docker alone"))
    for way, found in times.items():
        yield Row(
            measure=f"first instruction in a container: {way}",
            unit="ms",
            ours=tuple(found),
            peer="docker run, with init and network",
            theirs=theirs,
            goal=Goal(Against.MORE, at_most=20),
        )


if __name__ == "__main__":
    for name, found in asyncio.run(_measure(int(sys.argv[1]) if len(sys.argv) > 1 else 20)).items():
        print(f"{name:18} median {statistics.median(found):6.1f} ms, worst {max(found):6.1f} ms")
