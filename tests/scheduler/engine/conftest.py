"""Fixtures of the engine tests: a disk that is quickly full, Docker, an engine of each kind."""

from __future__ import annotations

import asyncio
import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.loopback_proxy import _splice
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.swarm.certificates import Authority
from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.engine import SwarmEngine, SwarmSettings
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.engine.swarm.tunnel import scheduler_tls
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.testing.engine import Reopen
from pai_scheduler.testing.lab import Lab, make_code
from pai_scheduler.testing.ssh_tasks import server_files
from tests.scheduler.engine.agent.small_agent import SmallAgent
from tests.scheduler.engine.swarm.gangs import ASKED, OpenSwarm
from tests.testbed.swarm import Swarm


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 1 MB in memory."""
    folder = tmp_path / "tiny-disk"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mount.returncode:
        reason = f"a tmpfs (mounting one needs root): {mount.stderr.strip()}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
async def tcp_docker(docker_host: str) -> AsyncIterator[str]:
    """Return the address of a daemon whose machine, for all one can tell, is another one."""
    socket = docker_host.removeprefix("unix://")

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _splice((reader, writer), await asyncio.open_unix_connection(socket))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@pytest.fixture
async def docker_lab(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str
) -> AsyncIterator[Lab]:
    """Work on a Docker engine."""
    lab = await Lab.over(await open_docker(), debian_image)
    yield lab
    await lab.clean()


@pytest.fixture
async def walled_lab(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str, runtime_image: str
) -> AsyncIterator[Lab]:
    """Work on an engine that has the runtime's image, as every installation should."""
    lab = await Lab.over(await open_docker(runtime_image=runtime_image), debian_image)
    yield lab
    await lab.clean()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return code as it is kept for a job: nobody may write to it."""
    return make_code(tmp_path)


# A process engine for each test.


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def reopen(data_dir: Path) -> AsyncIterator[Reopen]:
    engines: list[ProcessEngine] = []

    async def open_engine() -> ProcessEngine:
        engines.append(ProcessEngine(data_dir, ssh_files=server_files, rescan_seconds=0.2))
        await engines[-1].start()
        return engines[-1]

    yield open_engine
    for engine in engines:
        await engine.close()


@pytest.fixture
async def engine(reopen: Reopen) -> ProcessEngine:
    opened = await reopen()
    assert isinstance(opened, ProcessEngine)
    return opened


@pytest.fixture
def image() -> str:
    return "any/image:will-do"


@pytest.fixture
async def lab(engine: ProcessEngine, image: str) -> AsyncIterator[Lab]:
    lab = await Lab.over(engine, image)
    yield lab
    await lab.clean()


@pytest.fixture(params=["with cgroups", "without cgroups"])
def cgroups_or_none(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: as root, and as somebody to whom no cgroup was delegated."""
    if request.param == "without cgroups":
        monkeypatch.setattr(Cgroups, "find", lambda _owner: Cgroups(None, (), {}, "not for you"))


@pytest.fixture
def marker() -> str:
    """Return a number that stands in no other process's command line."""
    return str(uuid.uuid4().int)[:9]


@pytest.fixture
async def limited(engine: ProcessEngine) -> None:
    """Skip where tasks cannot be limited."""
    if engine.limits:
        reason = f"cgroups: {engine.limits}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)


# A small agent for each test.


@pytest.fixture
async def agent(tmp_path: Path) -> AsyncIterator[SmallAgent]:
    agent = SmallAgent(tmp_path / "agent")
    agent.start()
    yield agent
    await agent.close()


@pytest.fixture
async def connection(agent: SmallAgent) -> AsyncIterator[AgentConnection]:
    connection = agent.connection()
    await connection.open()
    yield connection
    await connection.close()


# Engines over a real Swarm of three.


@pytest.fixture
async def open_swarm(three_nodes: Swarm, tmp_path: Path) -> AsyncIterator[OpenSwarm]:
    """Open one engine after the other over the same state; the one before is let go first."""
    engines: list[SwarmEngine] = []
    credentials = Authority(three_nodes.secret).scheduler().write(tmp_path / "credentials")

    async def open_engine(asked: Open = ASKED, **options: object) -> SwarmEngine:
        if engines:
            await engines[-1].close()
        settings = SwarmSettings(
            host=three_nodes.manager.host,
            agent_port=three_nodes.agent_port,
            **options,  # type: ignore[arg-type]
        )
        engine = SwarmEngine(
            tmp_path / "data", scheduler_tls(credentials), tunnel_servers(credentials, 1), asked, settings
        )
        await engine.start()
        engines.append(engine)
        return engine

    yield open_engine
    if engines:
        await engines[-1].adopt({})
        await engines[-1].close()
