"""How long until notebook servers are ready: ours on Docker, and DockerSpawner's, with the same image.

    python -m tests.benchmarks.notebooks [--at-once 1 5 20] [--rounds 3] [--their-command pai-singleuser]

Two real Hubs on one Docker Engine, each with its proxy. A round asks one Hub for so many servers of different
people at once and waits until it calls each of them ready; then the other Hub. Printed are the median of the
seconds until the last one is ready, and the ratio of both. Nobody's home is new: each had a server before.
Each side starts the server with the command that is its default; with `--their-command pai-singleuser` the
containers do the same, so that what is compared is all that is around them.
Needs `dockerspawner` (the extra `bench`).
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import docker
import httpx
import yaml

from hub_config.images.build import Recipe, build
from pai_scheduler.testing.ports import free_port
from tests.hub import REPOSITORY, Hub
from tests.testbed.docker import bridge_address, docker_host
from tests.testbed.images import debian_image
from tests.testbed.scheduler import clean_environ

from .rows import Against, Goal, Row, UnavailableError

_PATIENCE = 300.0
_LOOK_SECONDS = 0.1
_CLUSTER = {
    "nodes": [{"name": "here", "cpus": 64, "memoryMB": 64_000, "storageGB": 1000}],
    "virtualClusters": {"default": {"capacity": 100}},
}

_DOCKER_SPAWNER = """
import shutil
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_ip = "{bridge}"
c.JupyterHub.hub_port = {hub_port}
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.command = [shutil.which("node"), "{proxy}"]
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 2}}
c.JupyterHub.concurrent_spawn_limit = 0
c.JupyterHub.spawner_class = "dockerspawner.DockerSpawner"
c.DockerSpawner.image = "{image}"
c.DockerSpawner.cmd = ["{command}"]
c.DockerSpawner.remove = True
c.DockerSpawner.start_timeout = c.DockerSpawner.http_timeout = 300
c.DockerSpawner.volumes = {{"bench-home-{{username}}": "/home/jovyan"}}
c.DockerSpawner.default_url = "/lab"
c.JupyterHub.services = [{{"name": "bench", "api_token": "token-of-the-bench"}}]
c.JupyterHub.load_roles = [
    {{"name": "bench", "scopes": ["admin:users", "admin:servers"], "services": ["bench"]}}
]
"""


class Side(Protocol):
    """A Hub that is measured."""

    def request(self, user: str, method: str, path: str) -> httpx.Response:
        """Ask the Hub about a user."""


class Ours:
    """The Hub as `make run ENGINE=docker` starts it."""

    def __init__(self, hub: Hub) -> None:
        self._hub, self._client = hub, httpx.Client(timeout=60, trust_env=False)

    def request(self, user: str, method: str, path: str) -> httpx.Response:
        """Ask it as the user."""
        return self._client.request(
            method,
            f"{self._hub.url}/hub/api/users/{user}{path}",
            headers={"Authorization": f"Bearer {self._hub.token(user)}"},
            json={"memory_mb": 2048, "cpus": 1} if method == "POST" else None,
        )


class Theirs:
    """A Hub with DockerSpawner."""

    def __init__(self, url: str) -> None:
        self._url, self._client = url, httpx.Client(timeout=60, trust_env=False)
        self._client.headers["Authorization"] = "Bearer token-of-the-bench"

    def request(self, user: str, method: str, path: str) -> httpx.Response:
        """Ask it as a service that may."""
        return self._client.request(method, f"{self._url}/hub/api/users/{user}{path}")


@contextmanager
def _ours(folder: Path, host: str, image: str) -> Iterator[Side]:
    (folder / "cluster.yaml").write_text(yaml.safe_dump(_CLUSTER))
    arguments = ("--engine", "docker", "--cluster", str(folder / "cluster.yaml"))
    hub = Hub(folder / "run", *arguments, environment={"DOCKER_HOST": host, "PAI_NOTEBOOK_IMAGE": image})
    hub.start()
    try:
        yield Ours(hub)
    finally:
        hub.close()


@contextmanager
def _theirs(folder: Path, host: str, image: str, command: str) -> Iterator[Side]:
    engine = docker.DockerClient(base_url=host)
    bridge = bridge_address(engine)
    port = free_port()
    proxy = REPOSITORY / "build/proxy/node_modules/configurable-http-proxy/bin/configurable-http-proxy"
    text = _DOCKER_SPAWNER.format(
        port=port,
        bridge=bridge,
        hub_port=free_port(),
        proxy_port=free_port(),
        proxy=proxy,
        folder=folder,
        image=image,
        command=command,
    )
    (folder / "jupyterhub_config.py").write_text(text)
    with (folder / "hub.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "jupyterhub", "-f", str(folder / "jupyterhub_config.py")],
            cwd=folder,
            env={**clean_environ(), "DOCKER_HOST": host},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    side = Theirs(f"http://127.0.0.1:{port}")
    try:
        _await(lambda: _answers(f"http://127.0.0.1:{port}/hub/api"), folder / "hub.log")
        yield side
    finally:
        process.terminate()
        process.wait(60)
        for container in engine.containers.list(all=True, filters={"ancestor": image}):
            if str(container.name).startswith("jupyter-bench"):
                container.remove(force=True)
        for volume in engine.volumes.list():
            if volume.name.startswith("bench-home-"):
                volume.remove(force=True)


def _answers(url: str) -> bool:
    try:
        return httpx.get(url, trust_env=False).status_code == 200
    except httpx.TransportError:
        return False


def _await(holds: Any, log: Path | None = None) -> None:
    give_up = time.monotonic() + _PATIENCE
    while not holds():
        if time.monotonic() > give_up:
            raise SystemExit(f"waited too long\n{log.read_text()[-4000:] if log else ''}")
        time.sleep(_LOOK_SECONDS)


def _measure(side: Side, users: list[str]) -> float:
    """Return the seconds until a server of each user is ready; they are stopped again."""
    with ThreadPoolExecutor(len(users)) as people:
        begin = time.monotonic()
        list(people.map(lambda user: _start(side, user), users))
        seconds = time.monotonic() - begin
        list(people.map(lambda user: _stop(side, user), users))
    return seconds


def _start(side: Side, user: str) -> None:
    answer = side.request(user, "POST", "/server")
    if answer.status_code not in (201, 202):
        raise SystemExit(f"no server for {user}: {answer.text}")
    _await(lambda: _is_ready(side, user))


def _stop(side: Side, user: str) -> None:
    side.request(user, "DELETE", "/server")
    _await(lambda: "" not in side.request(user, "GET", "").json()["servers"])


def _is_ready(side: Side, user: str) -> bool:
    server = side.request(user, "GET", "").json()["servers"].get("")
    if server is None:
        raise SystemExit(f"{user}'s server did not start")
    return bool(server["ready"])


def _sides(at_once: Sequence[int], rounds: int, command: str) -> Iterator[tuple[int, dict[str, list[float]]]]:
    """Measure both Hubs in turn; for each number of servers at once, the seconds of each."""
    theirs = partial(_theirs, command=command)
    host = docker_host()
    image = build(Recipe(debian_image(host)), host)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        sides: dict[str, Side] = {}
        for name, start in (("DockerSpawner", theirs), ("PAI", _ours)):
            (folder / name).mkdir()
            sides[name] = stack.enter_context(start(folder / name, host, image))
        people = [f"bench{number}" for number in range(max(at_once))]
        for side, user in itertools.product(sides.values(), people):
            side.request(user, "POST", "")  # (a person whom the Hub knows already is no error)
        for side in sides.values():  # everybody's home, and what Docker keeps of the image
            _measure(side, people)
        for count in at_once:
            seconds: dict[str, list[float]] = {name: [] for name in sides}
            for _, name in itertools.product(range(rounds), sides):
                seconds[name].append(_measure(sides[name], people[:count]))
            yield count, seconds


def rows(*, short: bool) -> Iterator[Row]:
    """Measure one, five and twenty servers at once beside DockerSpawner."""
    if importlib.util.find_spec("dockerspawner") is None:
        raise UnavailableError("dockerspawner is not installed (the extra `bench`)")
    goals = {1: 0.8, 5: 0.7, 20: 1.0}
    for count, seconds in _sides([1] if short else list(goals), 1 if short else 3, "jupyterhub-singleuser"):
        yield Row(
            measure=f"notebook servers ready, {count} at once",
            unit="s",
            ours=tuple(seconds["PAI"]),
            peer="DockerSpawner",
            theirs=tuple(seconds["DockerSpawner"]),
            goal=Goal(Against.RATIO, at_most=goals[count]),
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--at-once", type=int, nargs="+", default=[1, 5, 20])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--their-command", default="jupyterhub-singleuser")
    given = parser.parse_args()
    for count, seconds in _sides(given.at_once, given.rounds, given.their_command):
        for name, found in seconds.items():
            print(
                f"{count:3} at once, {name:14} median {statistics.median(found):6.2f} s,"
                f" {min(found):.2f} to {max(found):.2f}",
                flush=True,
            )
        ratio = statistics.median(seconds["PAI"]) / statistics.median(seconds["DockerSpawner"])
        print(f"{count:3} at once: {ratio:.2f} of DockerSpawner's time", flush=True)


if __name__ == "__main__":
    main()
