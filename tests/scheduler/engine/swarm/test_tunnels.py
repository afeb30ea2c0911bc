"""Ports of tasks on loopback: where they are, how long, and what goes through where a node is away."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Callable

import pytest

from pai_scheduler.engine.swarm.node_engine import RemoteEngine
from pai_scheduler.engine.swarm.session import Tunnels
from pai_scheduler.job.task import TaskRef
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.testing.ports import free_port
from tests.scheduler.engine.agent.small_agent import SmallAgent
from tests.scheduler.engine.swarm.gangs import ASKED

TASK, OTHER = (TaskRef("0123456789ab", 0, "main", index) for index in range(2))


class Carried:
    """What tunnels have had carried; each connection until it is let go."""

    def __init__(self) -> None:
        self.taken: asyncio.Queue[tuple[socket.socket, TaskRef, int]] = asyncio.Queue()
        self.broken = 0
        self._over = asyncio.Event()

    async def carry(self, connection: socket.socket, task: TaskRef, port: int) -> None:
        self.taken.put_nowait((connection, task, port))
        with connection:
            try:
                await self._over.wait()
            except asyncio.CancelledError:
                self.broken += 1
                raise


@pytest.fixture
async def carried() -> Carried:
    return Carried()


@pytest.fixture
async def tunnels(carried: Carried) -> AsyncIterator[Tunnels]:
    tunnels = Tunnels(carried.carry)
    yield tunnels
    await tunnels.close()


async def test_each_port_of_a_task_has_a_port_of_loopback_that_stays(
    tunnels: Tunnels, carried: Carried
) -> None:
    found = {(task, port): await tunnels.open(task, port) for task in (TASK, OTHER) for port in (22, 8888)}
    assert len(set(found.values())) == 4
    assert {key: await tunnels.open(*key) for key in found} == found
    for key, port in found.items():
        client = socket.create_connection(("127.0.0.1", port))
        connection, *asked = await carried.taken.get()
        assert tuple(asked) == key
        assert connection.getpeername() == client.getsockname()
        client.close()


async def test_a_task_has_the_same_port_after_a_restart_unless_somebody_else_has_it(
    tunnels: Tunnels, carried: Carried
) -> None:
    first = await tunnels.open(TASK, 8888)
    meanwhile = Tunnels(carried.carry)
    assert await meanwhile.open(TASK, 8888) != first
    await meanwhile.close()
    await tunnels.close()
    assert await tunnels.open(TASK, 8888) == first


async def test_a_task_that_is_forgotten_has_no_port_and_what_is_open_goes_on(
    tunnels: Tunnels, carried: Carried
) -> None:
    port, other = await tunnels.open(TASK, 8888), await tunnels.open(OTHER, 8888)
    client = socket.create_connection(("127.0.0.1", port))
    await carried.taken.get()
    tunnels.forget(TASK)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))
    assert carried.broken == 0
    socket.create_connection(("127.0.0.1", other)).close()
    await carried.taken.get()
    client.close()


async def test_when_they_are_closed_what_is_open_is_broken_off(tunnels: Tunnels, carried: Carried) -> None:
    client = socket.create_connection(("127.0.0.1", await tunnels.open(TASK, 8888)))
    await carried.taken.get()
    await tunnels.close()
    assert carried.broken == 1
    client.close()


@pytest.fixture
async def hub() -> AsyncIterator[tuple[int, list[int]]]:
    """Return a port of 127.0.0.1 at which everybody's bytes are counted and answered."""
    sizes: list[int] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        sizes.append(len(await reader.read()))
        writer.write(b"from here")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", free_port())
    async with server:
        yield server.sockets[0].getsockname()[1], sizes


@pytest.fixture
async def open_engine(agent: SmallAgent) -> AsyncIterator[Callable[..., RemoteEngine]]:
    async with contextlib.AsyncExitStack() as stack:

        def make(**options: object) -> RemoteEngine:
            servers = tunnel_servers(agent.credentials, 1)
            servers.start()
            stack.push_async_callback(servers.close)
            engine = RemoteEngine(
                agent.folder.parent / "data",
                agent.connection(),
                servers,
                ASKED,
                **options,  # type: ignore[arg-type]
            )
            stack.push_async_callback(engine.close)
            return engine

        yield make


async def test_a_port_of_a_task_leads_there_and_nowhere_while_its_node_is_away(
    open_engine: Callable[..., RemoteEngine],
    agent: SmallAgent,
    hub: tuple[int, list[int]],
    caplog: pytest.LogCaptureFixture,
) -> None:
    engine = open_engine(patience=1)  # (in which it has to answer first)
    await engine.start()
    _, port = await engine.reach(TASK, hub[0])

    async def ask() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with contextlib.suppress(ConnectionResetError):
            writer.write_eof()
            return await reader.read()
        return b"broken off"

    async with asyncio.timeout(60):
        assert await ask() == b"from here"
        await agent.stop()
        while engine.answers:  # noqa: ASYNC110 (nobody is told)
            await asyncio.sleep(0.01)
        assert await ask() == b""
        assert "a connection to a task failed: " in caplog.text
        agent.start()
        while not engine.answers:  # noqa: ASYNC110 (nobody is told)
            await asyncio.sleep(0.01)
        assert await ask() == b"from here"


async def test_what_is_open_to_a_node_is_broken_off_when_its_engine_is_closed(
    open_engine: Callable[..., RemoteEngine],
) -> None:
    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        with contextlib.suppress(ConnectionResetError):
            await reader.read()
        writer.close()

    engine = open_engine()
    await engine.start()
    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server, asyncio.timeout(60):
        _, port = await engine.reach(TASK, server.sockets[0].getsockname()[1])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        assert await reader.readexactly(5) == b"hello"
        await engine.close()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        writer.close()


async def test_a_container_comes_through_its_agent_to_what_listens_here(
    open_engine: Callable[..., RemoteEngine], agent: SmallAgent, hub: tuple[int, list[int]]
) -> None:
    agent.bridge_address = "127.0.0.2"
    port, sizes = hub
    await open_engine(front_doors={port: "127.0.0.1"}).start()
    reader, writer = await asyncio.open_connection("127.0.0.2", port)
    async with asyncio.timeout(60):
        writer.write(bytes(3_000_000))
        writer.write_eof()
        assert await reader.read() == b"from here"
    assert sizes == [3_000_000]
    writer.close()


async def test_a_container_whose_port_nobody_has_here_is_given_up_and_said(
    open_engine: Callable[..., RemoteEngine],
    agent: SmallAgent,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.agent.host._WAIT_SECONDS", 0.5)
    agent.bridge_address = "127.0.0.2"
    port = free_port()
    await open_engine(front_doors={port: "127.0.0.1"}).start()
    reader, writer = await asyncio.open_connection("127.0.0.2", port)
    async with asyncio.timeout(60):
        with pytest.raises(ConnectionResetError):
            await reader.read()
    assert "a container cannot be let in: " in caplog.text
    writer.close()
