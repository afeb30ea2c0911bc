"""How soon a task on another node runs: `python -m tests.benchmarks.swarm --rounds 15`.

On three real Docker Engines in one Swarm, turn and turn about in one run: a container by the node's own API
(what `docker run` does), a Swarm service of one task pinned to the node, and a task of the scheduler's engine
through the node's agent. Then a gang of three, one task on each node, in an overlay network of its own: by
the engine, and by three services. Measured from the request to the first instruction, by the machine's one
clock. What it prints is for people to compare; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import docker
from docker.types import RestartPolicy, ServiceMode

from pai_scheduler.engine.remote.certificates import Authority, scheduler_tls
from pai_scheduler.engine.swarm.engine import SwarmEngine
from pai_scheduler.ssh.runtime.container.build import build as build_runtime
from tests.scheduler.engine.lab import Lab, make_task
from tests.testbed.docker import docker_host, private_daemon, use
from tests.testbed.images import debian_image
from tests.testbed.swarm import Swarm, swarm

_NODE = "node-b"


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15, help="how often each is measured (%(default)s)")
    options = parser.parse_args()
    host = docker_host()
    used = use(private_daemon())
    image = debian_image(host)
    with tempfile.TemporaryDirectory(prefix="pai-swarm-", ignore_cleanup_errors=True) as folder:
        Path(folder, "nodes").mkdir()
        with swarm(Path(folder, "nodes"), host, (image, build_runtime(image, host))) as nodes:
            asyncio.run(_measure(nodes, Path(folder), image, options.rounds))
    if used is not None:
        used.close()


async def _measure(nodes: Swarm, folder: Path, image: str, rounds: int) -> None:
    marks = folder / "marks"
    marks.mkdir(mode=0o777)
    marks.chmod(0o777)
    tls = scheduler_tls(Authority(nodes.secret).scheduler().write(folder / "credentials"))
    engine = SwarmEngine(folder / "data", tls, instance="00112233445566aa", host=nodes.manager.host)
    await engine.start()
    lab = await Lab.over(engine, image)
    await lab.adopt([])
    clients = {node.name: docker.DockerClient(base_url=node.host, timeout=120) for node in nodes.nodes}
    manager = clients[nodes.manager.name]
    ids = {str(node.attrs["Description"]["Hostname"]): node.id for node in manager.nodes.list()}

    def plain(name: str) -> None:
        container = clients[_NODE].containers.create(image, _now(), name=name)
        container.start()
        container.wait()
        _note(marks, container.logs())
        container.remove(force=True)

    def service(name: str, *places: str) -> None:
        network = manager.networks.create(name, driver="overlay", attachable=True)
        services = [
            manager.services.create(  # type: ignore[no-untyped-call]
                image,
                _now(),
                name=f"{name}-{place}",
                constraints=[f"node.id=={ids[place]}"],
                networks=[network.id],
                mode=ServiceMode("replicated", 1),
                endpoint_spec=docker.types.EndpointSpec(mode="dnsrr"),
                restart_policy=RestartPolicy(condition="none"),
            )
            for place in places
        ]
        for made in services:
            while not (said := b"".join(made.logs(stdout=True))):
                time.sleep(0.01)
            _note(marks, said)
        for made in services:
            made.remove()
        for _ in range(100):
            with suppress(docker.errors.APIError):
                network.remove()
                break
            time.sleep(0.1)

    async def ours(*places: str) -> None:
        first = make_task()
        launches = await lab.prepare(
            *(
                lab.make("date +%s%N", task=first._replace(index=number), node=place)
                for number, place in enumerate(places)
            )
        )
        await asyncio.gather(*(engine.launch(launch) for launch in launches))
        for launch in launches:
            await lab.ended(launch.task)
            _note(marks, lab.output(launch.task).encode())
        gang = lab.gangs.pop()
        await engine.release(gang)

    def thread(step: Callable[..., None], *places: str) -> Callable[[], Awaitable[None]]:
        return lambda: asyncio.to_thread(step, f"bench-{uuid.uuid4().hex[:8]}", *places)

    ways: dict[str, Callable[[], Awaitable[None]]] = {
        "one task: docker run": thread(plain),
        "one task: service": thread(service, _NODE),
        "one task: this engine": lambda: ours(_NODE),
        "gang of 3: services": thread(service, *ids),
        "gang of 3: this engine": lambda: ours(*ids),
    }
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, way in ways.items():
            begin = time.time_ns()
            await way()
            moments = [int(file.read_text()) for file in marks.iterdir()]
            taken[name].append((max(moments) - begin) / 1e6)
            for file in marks.iterdir():
                file.unlink()
    await engine.close()
    for name, times in taken.items():
        times.sort()
        ninety = times[int(0.9 * (len(times) - 1))]
        print(f"{name:24} median {statistics.median(times):6.0f} ms   90 % within {ninety:6.0f} ms")
    medians: dict[str, Any] = {name: statistics.median(times) for name, times in taken.items()}
    beside = medians["one task: this engine"] - medians["one task: docker run"]
    print(f"one task: {beside:+.0f} ms over docker run, {_ratio(medians, 'one task')} of a service's time")
    print(f"gang of 3: {_ratio(medians, 'gang of 3')} of the services' time")


def _ratio(medians: dict[str, Any], what: str) -> str:
    others = "service" if what == "one task" else "services"
    return f"{medians[f'{what}: this engine'] / medians[f'{what}: {others}']:.2f}"


def _now() -> list[str]:
    return ["date", "+%s%N"]


def _note(folder: Path, said: bytes) -> None:
    # (of a service's log the text may stand behind its time)
    (folder / uuid.uuid4().hex).write_text(said.decode().split()[-1])


if __name__ == "__main__":
    main()
