"""How long until a task's command runs: in a container, and on the process engine.

    python -m tests.benchmarks.first_instruction [--processes] [rounds]

In a container that is as Docker alone has it, through the engine, and with SSH. Milliseconds from the asking
until the command reads the clock, the ways in turn; median, 95 % and worst of
all rounds but the first, in which Docker warms up. `--processes`: the process engine only.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import aiodocker

from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.ssh.runtime.container.build import build
from pai_scheduler.testing.lab import Lab
from pai_scheduler.testing.ssh_tasks import with_ssh
from tests.testbed.docker import docker_host
from tests.testbed.images import debian_image

from . import first_instruction_processes as processes
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
        (launch,) = with_ssh(launch, own_server=lab.engine.own_ssh_server)
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
        engine = DockerEngine(Path(folder), DockerSettings(host=host, runtime_image=runtime))
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
    """Measure the process engine beside a shell and sbatch, then the ways of Docker's beside Docker alone."""
    yield from _rows_of_processes(asyncio.run(processes.measure(1 if short else 40)))
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


def _rows_of_processes(times: dict[str, list[float]]) -> Iterator[Row]:
    for way, peer, goal in (
        (processes.ENGINE, processes.SHELL, None),
        (processes.SUBMIT, processes.SBATCH, Goal(Against.VALUE, at_most=15)),
    ):
        yield Row(
            measure=f"first instruction as a process: {way}",
            unit="ms",
            ours=tuple(times[way]),
            peer=peer if peer in times else "",
            theirs=tuple(times.get(peer, ())),
            goal=goal,
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("rounds", type=int, nargs="?", default=20)
    parser.add_argument("--processes", action="store_true")
    options = parser.parse_args()
    times = asyncio.run(processes.measure(options.rounds))
    if not options.processes:
        times |= asyncio.run(_measure(options.rounds))
    for name, found in times.items():
        late = sorted(found)[len(found) * 95 // 100]
        print(
            f"{name:18} median {statistics.median(found):6.1f} ms, 95 % {late:6.1f} ms, "
            f"worst {max(found):6.1f} ms"
        )


if __name__ == "__main__":
    main()
