"""A session with an agent: whose clock is wrong, who tells of a disk, who is away."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from pai_scheduler.cluster.node import DiskSpace
from pai_scheduler.engine.agent.app import make_app
from pai_scheduler.engine.agent.folders import Folders
from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.node_engine import RemoteEngine
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.testing.lab import Lab
from tests.scheduler.engine.agent.stand_in import Agent
from tests.scheduler.engine.swarm.gangs import ASKED

MINUTE, SOON = 60_000, 20_000


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    return Agent(tmp_path / "agent")


@pytest.fixture
async def port(agent: Agent, tmp_path: Path) -> AsyncIterator[int]:
    """Let the agent answer at a port."""
    socket, port = bind_unused_port()
    server = HTTPServer(make_app(agent.host, Folders(tmp_path / "folders")))
    server.add_sockets([socket])
    yield port
    server.stop()
    await server.close_all_connections()
    await agent.host.close()


@pytest.fixture
async def engine(port: int, tmp_path: Path) -> AsyncIterator[RemoteEngine]:
    engine = RemoteEngine(
        tmp_path / "data",
        AgentConnection("127.0.0.1", port, None),
        tunnel_servers(None),
        ASKED,
    )
    yield engine
    await engine.close()


@pytest.mark.parametrize("ahead", [MINUTE, -MINUTE])
async def test_a_node_whose_clock_is_wrong_tells_of_its_tasks_in_our_time(
    agent: Agent, engine: RemoteEngine, ahead: int
) -> None:
    agent.ahead = ahead
    begin = time.time_ns() // 10**6
    await engine.start()
    await engine.ready()
    lab = await Lab.over(engine, "none")
    await engine.adopt([])
    task = await lab.start("true")
    started = await lab.started(task)
    usage = await engine.usage(task)
    assert usage is not None
    agent.engines[-1].end_all()
    ended = await lab.ended(task)
    end = time.time_ns() // 10**6
    # (as exact as the fastest answer)
    assert all(begin - SOON < each.time < end + SOON for each in (started, usage, ended))
    await lab.stop_listening()


async def test_a_scheduler_knows_the_room_on_a_disk_as_long_as_its_node_answers(
    agent: Agent, engine: RemoteEngine, small_disk: Path
) -> None:
    agent.host._disk_folders = (small_disk,)
    assert engine.disk("node-b") is None
    await engine.start()
    assert engine.disk("node-b") == DiskSpace(40, 40)
    (small_disk / "data").write_bytes(bytes(10 * 2**20))
    async with asyncio.timeout(30):
        while engine.disk("node-b") == DiskSpace(40, 40):  # noqa: ASYNC110 (nobody is told of it by itself)
            await asyncio.sleep(0.01)
    assert engine.disk("node-b") == DiskSpace(30, 40)
    engine._set_health(False)
    assert engine.disk("node-b") is None
