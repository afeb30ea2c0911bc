"""The engine of a node elsewhere, over a real agent and Docker: what every engine promises, and breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tornado.httpserver import HTTPServer
from tornado.testing import bind_unused_port

from pai_scheduler.core.events import NodesChanged
from pai_scheduler.engine.agent.app import make_app
from pai_scheduler.engine.agent.folders import Folders
from pai_scheduler.engine.agent.host import EngineHost
from pai_scheduler.engine.docker.containers import HUB_HOST, STORAGE_HOST
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.protocol import EndCause, EngineError, Started
from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.node_engine import RemoteEngine
from pai_scheduler.engine.swarm.protocol import Open
from pai_scheduler.job.task import TaskRef
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.testing.engine import FOREVER, EngineConformance, Reopen
from pai_scheduler.testing.lab import Lab, eventually, make_task, processes_running
from tests.scheduler.engine.swarm.gangs import ASKED
from tests.testbed.fixtures import REGISTRIES


class Agent:
    """An agent in this process, over a real Docker Engine."""

    def __init__(self, folder: Path, docker_host: str, runtime_image: str) -> None:
        self._folder, self._docker_host, self._runtime_image = folder, docker_host, runtime_image
        self._socket, self.port = bind_unused_port()
        self._port_is_bound = True

    def start(self) -> None:
        """Begin to answer."""
        self._host = EngineHost(self._make, self._folder, disks=[self._folder.parent])
        self._server = HTTPServer(make_app(self._host, Folders(self._folder / "folders")))
        self._server.add_sockets([self._socket.dup()])

    async def stop(self) -> None:
        """Answer no more, as when its process has ended."""
        self._server.stop()
        await self._server.close_all_connections()
        await self._host.close()

    def _make(self, asked: Open, on_output: Callable[[TaskRef], None]) -> DockerEngine:
        settings = DockerSettings(
            host=self._docker_host,
            instance=asked.instance,
            logs=asked.logs,
            registries=REGISTRIES,
            runtime_image=self._runtime_image,
            reached_at_bridge=bool(asked.front_door_ports),
        )
        return DockerEngine(self._folder, settings, on_output)


@pytest.fixture
async def agent(tmp_path: Path, docker_host: str, runtime_image: str) -> AsyncIterator[Agent]:
    agent = Agent(tmp_path / "agent", docker_host, runtime_image)
    agent.start()
    yield agent
    await agent.stop()


@pytest.fixture
async def open_remote(agent: Agent, tmp_path: Path) -> AsyncIterator[Callable[..., Awaitable[RemoteEngine]]]:
    engines: list[RemoteEngine] = []
    servers = tunnel_servers(None, 1)
    servers.start()

    async def open_engine(asked: Open = ASKED, **options: float) -> RemoteEngine:
        if engines:
            await engines[-1].close()
        connection = AgentConnection("127.0.0.1", agent.port, None)
        engine = RemoteEngine(tmp_path / "data", connection, servers, asked, **options)  # type: ignore[arg-type]
        await engine.start()
        engines.append(engine)
        return engine

    yield open_engine
    if engines:
        await engines[-1].adopt([])
        await engines[-1].close()
    await servers.close()


# (the same promises hold in engine/swarm/test_engine.py, over the agents of three nodes)
@pytest.mark.long
class TestRemoteEngine(EngineConformance):
    """The conformance suite."""

    @pytest.fixture
    def reopen(self, open_remote: Callable[..., Awaitable[RemoteEngine]]) -> Reopen:
        return open_remote

    @pytest.fixture
    async def engine(self, open_remote: Callable[..., Awaitable[RemoteEngine]]) -> RemoteEngine:
        return await open_remote()

    @pytest.fixture
    def image(self, debian_image: str) -> str:
        return debian_image


@pytest.fixture
async def lab(open_remote: Callable[..., Awaitable[RemoteEngine]], debian_image: str) -> AsyncIterator[Lab]:
    """Work through an agent whose node is lost after two seconds."""
    lab = await Lab.over(await open_remote(patience=2.0), debian_image)
    await lab.adopt([])
    yield lab
    await lab.clean()


async def test_an_agent_started_anew_goes_on_with_what_runs_and_loses_no_line(lab: Lab, agent: Agent) -> None:
    task = await lab.start("n=0; while [ $n -lt 40 ]; do n=$((n + 1)); echo line $n; sleep 0.1; done")
    await lab.printed(task, "line 2\n")
    await agent.stop()
    await asyncio.sleep(1)
    agent.start()
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 0)
    assert lab.output(task) == "".join(f"line {number}\n" for number in range(1, 41))
    assert len([event for event in lab.told(task) if isinstance(event, Started)]) == 1


async def test_what_is_asked_while_the_agent_is_away_happens_when_it_is_back(lab: Lab, agent: Agent) -> None:
    runs = await lab.start(FOREVER)
    await lab.printed(runs, "ready")
    (waits,) = await lab.prepare(lab.make("echo late"))
    await agent.stop()
    asked = asyncio.gather(lab.engine.launch(waits), lab.engine.kill(runs, 0))
    await asyncio.sleep(0.5)
    agent.start()
    await asked
    assert (await lab.ended(runs)).cause is EndCause.KILLED
    assert (await lab.ended(waits.task)).exit_code == 0
    assert lab.output(waits.task) == "late\n"


async def test_the_tasks_of_a_node_that_stays_away_are_lost_and_ended_when_it_comes_back(
    lab: Lab, agent: Agent
) -> None:
    command = "sleep 100000.7531"
    task = await lab.start(f"echo ready; exec {command}")
    await lab.printed(task, "ready")
    await agent.stop()
    ended = await lab.ended(task)
    assert ended.cause is EndCause.NODE_LOST
    assert "does not answer" in str(ended.reason)
    assert processes_running(command), "nobody can end it yet"
    with pytest.raises(EngineError, match="does not answer"):
        await lab.engine.launch(lab.make("true"))
    agent.start()
    await eventually(lambda: not processes_running(command), "what is lost is ended when its node is back")
    again, _ = await lab.run("echo again")
    assert lab.output(again) == "again\n"


async def test_nothing_is_placed_on_a_node_that_does_not_answer_until_it_does(
    open_remote: Callable[..., Awaitable[RemoteEngine]], agent: Agent, debian_image: str
) -> None:
    lab = await Lab.over(await open_remote(), debian_image)
    await lab.adopt([])

    def health() -> list[bool]:
        return [event.nodes[0].ready for event in lab.events if isinstance(event, NodesChanged)]

    await agent.stop()
    await eventually(lambda: health() == [False], "the node counts as lost")
    agent.start()
    await eventually(lambda: health() == [False, True], "the node is there again")
    await lab.clean()


async def test_a_scheduler_that_was_overtaken_gets_no_session_any_more(
    open_remote: Callable[..., Awaitable[RemoteEngine]], agent: Agent, tmp_path: Path
) -> None:
    await open_remote(replace(ASKED, generation=2))
    overtaken = RemoteEngine(
        tmp_path / "old",
        AgentConnection("127.0.0.1", agent.port, None),
        tunnel_servers(None),
        replace(ASKED, generation=1),
        patience=1.0,
    )
    with pytest.raises(EngineError, match="Another scheduler has taken the lead"):
        await overtaken.start()


async def test_a_folder_is_sent_once_for_all_tasks_of_a_gang_and_removed_with_it(
    lab: Lab, code: Path, tmp_path: Path
) -> None:
    first = make_task()
    launches = await lab.prepare(
        *(lab.make("ls", code=code, task=first._replace(index=number)) for number in range(3))
    )
    folders = tmp_path / "agent" / "folders"
    for launch in launches:
        await lab.engine.launch(launch)
    for launch in launches:
        await lab.ended(launch.task)
    assert len(list(folders.iterdir())) == 1
    await lab.engine.release(lab.gangs[0])
    assert list(folders.iterdir()) == []


async def test_containers_reach_the_hub_through_their_agent_and_the_scheduler(
    open_remote: Callable[..., Awaitable[RemoteEngine]], debian_image: str
) -> None:
    sizes: list[int] = []

    async def hub(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        sizes.append(len(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nfrom here")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(hub, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    lab = await Lab.over(await open_remote(front_doors={port: "127.0.0.1"}), debian_image)
    await lab.adopt([])
    ask = "import urllib.request as u; print(u.urlopen('{}', data=bytes(3000000)).read().decode())"
    urls = [f"http://{host}:{port}" for host in (HUB_HOST, STORAGE_HOST)]
    tasks = [await lab.start(f'python3 -c "{ask.format(url)}"') for url in urls]
    for task in tasks:
        assert (await lab.ended(task)).exit_code == 0, lab.output(task)
        assert lab.output(task) == "from here\n"
    assert sizes == [3000000, 3000000]
    await lab.clean()
    server.close()
