"""How soon a task on another node runs: `python -m tests.benchmarks.swarm --rounds 15`.

On three real Docker Engines in one Swarm, turn and turn about in one run, with a rest between: a container by
the node's own API (what `docker run` does) on Docker's default bridge, where all containers meet; the same in
a network of its own that was there before, and in one that is made for it (what each job gets here); a Swarm
service of one task pinned to the node; and a task of the scheduler's engine through the node's agent. Then a
gang of three, one task on each node, in an overlay network of its own: by the engine, by `docker stack
deploy`, and by three services asked for by the API at once, with names but without virtual addresses, which
is as soon as Swarm can be. Measured from the request to the first instruction of the last task, by the
machine's one clock. Then how many containers a second come and go on one node. What it prints is for people
to compare; nothing is asserted.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import tempfile
import time
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import docker
from docker.types import RestartPolicy, ServiceMode

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.swarm.certificates import Authority
from pai_scheduler.engine.swarm.engine import SPARE_OVERLAYS, SwarmEngine, SwarmSettings
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.ssh.runtime.container.build import build as build_runtime
from pai_scheduler.testing.lab import Lab, make_gang, make_task
from tests.testbed.docker import docker_host, private_daemon, use
from tests.testbed.images import debian_image
from tests.testbed.swarm import Swarm, swarm

_NODE = "node-b"
#: (Docker takes a container's and a network's remains away after it has answered)
_REST_SECONDS = 1.5
#: For the throughput: how many containers at once, and how many in all for each of them.
_AT_ONCE, _EACH = 4, 4


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
        runtime = build_runtime(image, host)
        with swarm(Path(folder, "nodes"), host, (image, runtime)) as nodes:
            asyncio.run(_measure(nodes, Path(folder), image, runtime, options.rounds))
    if used is not None:
        used.close()


async def _measure(nodes: Swarm, folder: Path, image: str, runtime: str, rounds: int) -> None:
    marks = folder / "marks"
    marks.mkdir(mode=0o777)
    marks.chmod(0o777)
    credentials = Authority(nodes.secret).scheduler().write(folder / "credentials")
    engine = SwarmEngine(
        folder / "data",
        scheduler_tls(credentials),
        tunnel_servers(credentials),
        Open("00112233445566aa", LogKeeping()),
        SwarmSettings(host=nodes.manager.host, spare_networks=SPARE_OVERLAYS, runtime_image=runtime),
    )
    await engine.start()
    lab = await Lab.over(engine, image)
    await lab.adopt([])
    clients = {node.name: docker.DockerClient(base_url=node.host, timeout=120) for node in nodes.nodes}
    manager = clients[nodes.manager.name]
    ids = {str(node.attrs["Description"]["Hostname"]): str(node.id) for node in manager.nodes.list()}

    def plain(name: str, network: str = "bridge") -> None:
        container = clients[_NODE].containers.create(image, _now(), name=name, network=network)
        container.start()
        container.wait()
        _note(marks, container.logs())
        container.remove(force=True)

    ready = clients[_NODE].networks.create(f"bench-{uuid.uuid4().hex[:8]}", driver="bridge")

    def in_ready_network(name: str) -> None:
        plain(name, str(ready.name))

    def in_its_network(name: str) -> None:
        network = clients[_NODE].networks.create(name, driver="bridge")
        plain(name, name)
        network.remove()

    def service(name: str, *places: str) -> None:
        network = manager.networks.create(name, driver="overlay", attachable=True)
        services = [
            manager.services.create(
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
            _note(marks, _heard(made))
        for made in services:
            made.remove()
        _remove_network(manager, name)

    def stack(name: str, *places: str) -> None:
        definition = folder / f"{name}.json"
        definition.write_text(json.dumps(_stack(image, [ids[place] for place in places])))
        run = ["docker", "--host", nodes.manager.host, "stack"]
        deploy = [*run, "deploy", "--resolve-image=never", "--detach=true", f"--compose-file={definition}"]
        subprocess.run([*deploy, name], check=True, capture_output=True)
        for number in range(len(places)):
            made = manager.services.get(f"{name}_worker-{number}")
            _note(marks, _heard(made))
        subprocess.run([*run, "rm", name], check=True, capture_output=True)
        _remove_network(manager, f"{name}_default")

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
        gang = make_gang(*launches)
        lab.gangs.remove(gang)
        await engine.release(gang)

    def thread(step: Callable[..., None], *places: str) -> Callable[[], Awaitable[None]]:
        return lambda: asyncio.to_thread(step, f"bench-{uuid.uuid4().hex[:8]}", *places)

    ways: dict[str, Callable[[], Awaitable[None]]] = {
        "one task: docker run": thread(plain),
        "one task: network is there": thread(in_ready_network),
        "one task: network is made": thread(in_its_network),
        "one task: service": thread(service, _NODE),
        "one task: this engine": lambda: ours(_NODE),
        "gang of 3: stack": thread(stack, *ids),
        "gang of 3: services": thread(service, *ids),
        "gang of 3: this engine": lambda: ours(*ids),
    }
    taken: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds):
        for name, way in ways.items():
            await asyncio.sleep(_REST_SECONDS)
            begin = time.time_ns()
            await way()
            moments = [int(file.read_text()) for file in marks.iterdir()]
            taken[name].append((max(moments) - begin) / 1e6)
            for file in marks.iterdir():
                file.unlink()
    throughput: dict[str, list[float]] = defaultdict(list)
    for _ in range(rounds // 3 + 1):
        for name in ("one task: docker run", "one task: network is made", "one task: this engine"):
            await asyncio.sleep(_REST_SECONDS)
            throughput[name].append(await _a_second(ways[name]))
    await engine.close()
    ready.remove()
    for name, times in taken.items():
        times.sort()
        ninety = times[int(0.9 * (len(times) - 1))]
        print(f"{name:28} median {statistics.median(times):6.0f} ms   90 % within {ninety:6.0f} ms")
    for name, rates in throughput.items():
        print(f"{name:28} {_AT_ONCE} at once: {statistics.median(rates):.2f} a second, start to removal")
    medians = {name: statistics.median(times) for name, times in taken.items()}
    one, gang = medians["one task: this engine"], medians["gang of 3: this engine"]
    print(
        f"one task: {one - medians['one task: docker run']:+.0f} ms over docker run, "
        f"{one - medians['one task: network is there']:+.0f} ms over one whose network is there, "
        f"{one - medians['one task: network is made']:+.0f} ms over one whose network is made, "
        f"{one / medians['one task: service']:.2f} of a service's time"
    )
    print(
        f"gang of 3: {gang / medians['gang of 3: stack']:.2f} of a stack's time, "
        f"{gang / medians['gang of 3: services']:.2f} of the services'"
    )


async def _a_second(way: Callable[[], Awaitable[None]]) -> float:
    """Return how many containers a second go from the request to their removal, so many at once."""
    begin = time.monotonic()

    async def one_after_the_other() -> None:
        for _ in range(_EACH):
            await way()

    await asyncio.gather(*(one_after_the_other() for _ in range(_AT_ONCE)))
    return _AT_ONCE * _EACH / (time.monotonic() - begin)


def _stack(image: str, places: list[str]) -> dict[str, Any]:
    """Return what a stack of a service on each of these nodes (ids) is deployed from."""
    return {
        "version": "3.8",
        "services": {
            f"worker-{number}": {
                "image": image,
                "command": _now(),
                "deploy": {
                    "placement": {"constraints": [f"node.id=={place}"]},
                    "restart_policy": {"condition": "none"},
                },
            }
            for number, place in enumerate(places)
        },
        "networks": {"default": {"driver": "overlay", "attachable": True}},
    }


def _heard(service: Any) -> bytes:
    """Wait for what a service's task prints."""
    for _ in range(6000):
        if said := b"".join(service.logs(stdout=True)):
            return bytes(said)
        time.sleep(0.01)
    raise RuntimeError(f"the service {service.name} says nothing within a minute")


def _remove_network(client: docker.DockerClient, name: str) -> None:
    """Remove a network once the last container has left it."""
    for _ in range(100):
        try:
            client.networks.get(name).remove()
        except docker.errors.NotFound:
            return
        except docker.errors.APIError:
            time.sleep(0.1)


def _now() -> list[str]:
    return ["date", "+%s%N"]


def _note(folder: Path, said: bytes) -> None:
    # (of a service's log the text may stand behind its time)
    (folder / uuid.uuid4().hex).write_text(said.decode().split()[-1])


if __name__ == "__main__":
    main()
