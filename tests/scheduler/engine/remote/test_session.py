"""A session with an agent whose clock is wrong, and over a way on which answers are lost."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from pai_scheduler.agent.app import make_app
from pai_scheduler.agent.folders import Folders
from pai_scheduler.agent.host import EngineHost
from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.cluster.node import DiskSpace, NodeState
from pai_scheduler.engine.protocol import NodesChanged
from pai_scheduler.engine.remote.connection import AgentConnection
from pai_scheduler.engine.remote.engine import RemoteEngine
from pai_scheduler.engine.remote.messages import Heard, Listen, Open, read_event
from pai_scheduler.job.task import TaskRef
from pai_scheduler.server.swarm_nodes import tunnel_servers
from tests.scheduler.engine.lab import Lab, make_task
from tests.testbed.agents import StandInEngine

MINUTE, SOON = 60_000, 20_000


class Agent:
    """An agent in this process, whose tasks are only said to run and whose clock is `ahead` (ms)."""

    def __init__(self, folder: Path) -> None:
        self.ahead = 0
        self.folder = folder
        self.host = EngineHost(self.make, folder, clock=self.now)
        self.engines: list[StandInEngine] = []

    def now(self) -> int:
        """Return what its clock shows."""
        return time.time_ns() // 10**6 + self.ahead

    def make(self, asked: Open, on_output: Callable[[TaskRef], None]) -> StandInEngine:  # noqa: ARG002
        """Make the engine of a session."""
        engine = StandInEngine(["node-b"], 4, self.folder / "logs", on_output=on_output, clock=self.now)
        self.engines.append(engine)
        return engine


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
        instance="0123456789abcdef",
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


async def test_nothing_new_comes_to_a_node_whose_disk_is_almost_full(
    agent: Agent, small_disk: Path, tmp_path: Path
) -> None:
    agent.host = EngineHost(agent.make, tmp_path / "agent", disks=[small_disk])
    opened = await agent.host.open(Open("0123456789abcdef", LogKeeping(), least_free_mb=8))
    assert [node.state for node in opened.nodes] == [NodeState.READY]

    async def told() -> NodeState:
        """Return the state that is told next."""
        nonlocal last
        while True:
            heard = await agent.host.listen(opened.session, Listen(last, 0))
            last = heard.last
            for event in map(read_event, heard.events):
                assert isinstance(event, NodesChanged)
                return event.nodes[0].state

    last = 0
    (small_disk / "data").write_bytes(bytes(39 * 2**20))
    assert await told() is NodeState.FULL
    # in a session that begins later, too, and whatever else changes
    opened, last = await agent.host.open(Open("0123456789abcdef", LogKeeping(), least_free_mb=8)), 0
    assert [node.state for node in opened.nodes] == [NodeState.FULL]
    (small_disk / "data").unlink()
    assert await told() is NodeState.READY
    await agent.host.close()


async def test_the_room_on_a_node_s_disk_is_told_where_it_changed_and_comes_with_other_news(
    agent: Agent, small_disk: Path, tmp_path: Path
) -> None:
    agent.host = EngineHost(agent.make, tmp_path / "agent", disks=[tmp_path, small_disk])
    opened = await agent.host.open(Open("0123456789abcdef", LogKeeping()))
    assert opened.disk is not None
    assert opened.disk.free_mb == opened.disk.total_mb == 40
    engine, task = agent.engines[-1], make_task()

    async def listen(after: int, answer: int) -> Heard:
        return await agent.host.listen(opened.session, Listen(after, answer))

    waiting = asyncio.create_task(listen(0, 0))
    (small_disk / "data").write_bytes(bytes(10 * 2**20))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    engine.on_output(task)
    lost = await waiting
    assert lost.disk == DiskSpace(30, 40)
    # that answer did not come: all of it is told again
    again = await listen(0, 0)
    assert (again.output, again.disk) == ((task,), DiskSpace(30, 40))
    # it did come: what has not changed is told no more
    engine.on_output(task)
    assert (await listen(again.last, again.answer)).disk is None
    await agent.host.close()


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


async def test_what_a_lost_answer_told_is_told_again(agent: Agent) -> None:
    opened = await agent.host.open(Open("0123456789abcdef", LogKeeping()))
    engine, task = agent.engines[-1], make_task()

    async def listen(after: int, answer: int) -> Heard:
        return await agent.host.listen(opened.session, Listen(after, answer))

    engine.on_output(task)
    lost = await listen(0, 0)
    assert lost.output == (task,)
    again = await listen(0, 0)
    assert again.output == (task,)
    # that one came: nothing is left to tell, until there is news
    waiting = asyncio.create_task(listen(again.last, again.answer))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    # who asks again has given up the question before, which takes no news away any more
    latest = asyncio.create_task(listen(again.last, again.answer))
    assert (await waiting).output == ()
    engine.on_output(task)
    assert (await latest).output == (task,)
    await agent.host.close()
