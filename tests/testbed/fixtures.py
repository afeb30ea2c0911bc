"""Fixtures for the real parts; the root conftest has them by `pytest_plugins`."""

from __future__ import annotations

import contextlib
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import aiodocker
import certifi
import pytest

from hub_config.images.build import Recipe, build
from pai_scheduler.cluster.definition import Registries
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.ssh.runtime.container.build import build as build_runtime
from tests.hub import Hub, open_hub
from tests.testbed.browser import chromium_path
from tests.testbed.disk import mount_disk, unmount
from tests.testbed.docker import client
from tests.testbed.docker import docker_host as start_docker
from tests.testbed.hdfs import Hdfs
from tests.testbed.images import debian_image as make_debian
from tests.testbed.machine import CannotError, locked
from tests.testbed.postgres import Postgres
from tests.testbed.registry import registry
from tests.testbed.scheduler import RunningScheduler, StartScheduler
from tests.testbed.swarm import Swarm, swarm
from tests.testbed.warm import WarmScheduler

Part = TypeVar("Part")

#: the tests' own registries are on this machine
REGISTRIES = Registries(("*", "127.0.0.1"))
#: of the users of `private_registry`
REGISTRY_PASSWORDS = {"alice": "alice's own", "bob": "bob's own"}


def provide(make: Callable[..., Part], *arguments: str) -> Part:
    """Make a part; where this machine cannot, skip by name with the reason (with CI=true: fail)."""
    try:
        return make(*arguments)
    except CannotError as error:
        if os.environ.get("CI") == "true":
            pytest.fail(str(error))
        pytest.skip(str(error))


@pytest.fixture(scope="session", autouse=True)
def certificates_read_once() -> Iterator[None]:
    """Let all HTTP clients share the certificates that come with httpx: reading them takes 16 ms of CPU."""
    make, theirs = ssl.create_default_context, certifi.where()
    shared = cache(lambda: make(cafile=theirs))

    def create(*arguments: Any, **options: Any) -> ssl.SSLContext:
        return shared() if not arguments and options == {"cafile": theirs} else make(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ssl, "create_default_context", create)
        yield


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a real browser."""
    return provide(chromium_path)


@pytest.fixture(scope="session")
def docker_host() -> str:
    """Return the DOCKER_HOST of a running Docker Engine."""
    return provide(start_docker)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 40 MB, of which 2 are to stay free at most."""
    folder = tmp_path / "small"
    folder.mkdir()
    provide(mount_disk, str(folder))
    yield folder
    unmount(folder)


@pytest.fixture
def own_scheduler(tmp_path: Path) -> Iterator[StartScheduler]:
    """Start a scheduler that a test may kill or configure, in the test's folder; it is closed in the end."""
    with contextlib.ExitStack() as stack:

        def start(*options: str, **more: Any) -> RunningScheduler:
            running = WarmScheduler(tmp_path, *options, **more)
            stack.callback(running.close)
            return running

        yield start


@pytest.fixture(scope="module")
def module_scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartScheduler]:
    """Start a scheduler for the tests of a module, in a folder of its own; it is closed in the end."""
    with contextlib.ExitStack() as stack:

        def start(*options: str, **more: Any) -> RunningScheduler:
            running = WarmScheduler(tmp_path_factory.mktemp("scheduler"), *options, **more)
            stack.callback(running.close)
            return running

        yield start


@pytest.fixture(scope="session")
def docker_registry(docker_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a registry of images, from which the Docker Engine can pull."""
    del docker_host  # a registry is of no use without one
    with contextlib.ExitStack() as stack:
        folder = tmp_path_factory.mktemp("registry")
        yield provide(lambda: stack.enter_context(registry(folder)))


@pytest.fixture(scope="session")
def private_registry(docker_host: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a registry that wants to know who pulls: alice with her password, or bob."""
    del docker_host  # a registry is of no use without one
    with contextlib.ExitStack() as stack:
        folder = tmp_path_factory.mktemp("private-registry")
        yield provide(lambda: stack.enter_context(registry(folder, REGISTRY_PASSWORDS)))


@pytest.fixture(scope="session")
def notebook_image(docker_host: str, debian_image: str) -> str:
    """Return the name of the image of notebook servers, built by the product's own recipe."""
    with locked("notebook-image"):
        return build(Recipe(debian_image), docker_host)


@pytest.fixture(scope="session")
def process_hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """Run a Hub that root administers; whoever had it clears it for the next."""
    with open_hub(tmp_path_factory.mktemp("hub"), "process", "--admin", "root") as hub:
        yield hub


@pytest.fixture(scope="session")
def docker_hub(
    docker_host: str, notebook_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Hub]:
    """Run one with Docker, and with the image of notebook servers that the product builds."""
    environment = {"DOCKER_HOST": docker_host, "PAI_NOTEBOOK_IMAGE": notebook_image}
    folder = tmp_path_factory.mktemp("hub")
    with open_hub(folder, "docker", "--admin", "root", **environment) as hub:
        yield hub


@pytest.fixture(scope="session")
def runtime_image(docker_host: str, debian_image: str) -> str:
    """Return the name of the image with which containers are logged into, built by our own recipe."""
    with locked("runtime-image"):
        return build_runtime(debian_image, docker_host)


@pytest.fixture(scope="session")
def three_nodes(
    docker_host: str, debian_image: str, runtime_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Swarm]:
    """Return a Swarm of three nodes with an agent on each."""
    with contextlib.ExitStack() as stack:
        folder = tmp_path_factory.mktemp("swarm")
        images = (debian_image, runtime_image)
        yield provide(lambda: stack.enter_context(swarm(folder, docker_host, images)))


@pytest.fixture(scope="session")
def agent_image(three_nodes: Swarm, docker_host: str, debian_image: str) -> str:
    """Return the name of the agents' image, which each node has, of a registry that does not answer."""
    # nobody answers there, at once: Swarm then takes what each node has
    repository = "127.0.0.1:9/pai/agent"
    with locked("agent-image"):
        image = build(Recipe(debian_image, image="agent"), docker_host)
    three_nodes.load(docker_host, image)
    for node in three_nodes.nodes:
        with client(node.host) as engine:
            engine.images.get(image).tag(repository, tag="test")
    return f"{repository}:test"


@pytest.fixture
def swarm_scheduler(
    three_nodes: Swarm,
    own_scheduler: StartScheduler,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> StartScheduler:
    """Start a scheduler on the Swarm's manager, with further options."""
    monkeypatch.setenv("DOCKER_HOST", three_nodes.manager.host)
    data_dir = three_nodes.give_key(tmp_path / "data")

    def start(*options: str, **more: Any) -> RunningScheduler:
        return own_scheduler("--engine", "swarm", *options, data_dir=data_dir, **more)

    return start


@pytest.fixture(scope="session")
def debian_image(docker_host: str) -> str:
    """Return the name of a small image with bash and Python."""
    return provide(make_debian, docker_host)


@pytest.fixture
async def open_docker(
    docker_host: str, tmp_path: Path
) -> AsyncIterator[Callable[..., Awaitable[DockerEngine]]]:
    """Open one Docker engine after the other over the same state; the one before is let go first."""
    engines: list[DockerEngine] = []

    async def open_engine(**options: object) -> DockerEngine:
        if engines:
            await engines[-1].close()  # what is left of a killed service writes nothing any more
        settings = DockerSettings(host=docker_host, registries=REGISTRIES)
        engine = DockerEngine(tmp_path / "data", replace(settings, **options))  # type: ignore[arg-type]
        await engine.start()
        engines.append(engine)
        return engine

    yield open_engine
    if engines:
        await engines[-1].adopt([])  # removes what a failed test has left
        await engines[-1].close()


@pytest.fixture
async def docker(docker_host: str) -> AsyncIterator[aiodocker.Docker]:
    """Talk to Docker past the engine."""
    async with aiodocker.Docker(url=docker_host) as client:
        yield client


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """Run a PostgreSQL server; who stops it starts it again."""
    server = provide(Postgres)
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """Return the address of an empty database, with the password in it."""
    url = postgres.new_database()
    yield url
    postgres.drop(url)


@pytest.fixture(scope="session")
def hdfs() -> Iterator[Hdfs]:
    """Run an HDFS; who stops a part of it starts that again."""
    server = provide(Hdfs)
    yield server
    server.remove()
