"""The agent's API over real mutual TLS: sessions, ports of tasks, folders, and what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.swarm.connection import (
    AgentConnection,
    AgentRefusedError,
    AgentUnreachableError,
    SessionOverError,
)
from pai_scheduler.engine.swarm.protocol import Heard, Listen, Open, Opened
from pai_scheduler.engine.swarm.session import Tunnels
from pai_scheduler.engine.swarm.tunnel import FarEnd, reset_at_close, scheduler_tls, splice
from pai_scheduler.job.task import TaskRef
from pai_scheduler.workers.tunnel_server.server import reach
from tests.scheduler.client.storage.cutting import cutting

from .small_agent import SmallAgent

TASK = TaskRef("0123456789ab", 0, "main", 0)
INSTANCE = Open("0123456789abcdef", LogKeeping())
KEY = "0" * 64
MUCH = bytes(range(256)) * 16384


@pytest.fixture
async def session(connection: AgentConnection) -> str:
    opened: Opened = await connection.call("open", INSTANCE, Opened)
    return opened.session


def carrying(agent: SmallAgent, connection: AgentConnection, session: str) -> Tunnels:
    """Return tunnels whose bytes this process carries."""

    async def carry(plain: socket.socket, task: TaskRef, port: int) -> None:
        await splice(plain, *await asked(agent, connection.task_port(task, port, session)))

    return Tunnels(carry)


async def asked(agent: SmallAgent, far: FarEnd) -> tuple[socket.socket, bytes]:
    """Ask the agent for the far end of a connection."""
    return await reach(far, scheduler_tls(agent.credentials))


@pytest.fixture
async def tunnels(agent: SmallAgent, connection: AgentConnection, session: str) -> AsyncIterator[Tunnels]:
    tunnels = carrying(agent, connection, session)
    yield tunnels
    await tunnels.close()


async def at_a_task(tunnels: Tunnels, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a port of a task through its tunnel."""
    return await asyncio.open_connection("127.0.0.1", await tunnels.open(TASK, port))


async def test_who_has_ended_its_way_still_gets_the_whole_answer(tunnels: Tunnels) -> None:
    async def answer_all(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked = await reader.read()
        writer.write(asked[::-1])
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer_all, "127.0.0.1", 0) as server:
        reader, writer = await at_a_task(tunnels, server.sockets[0].getsockname()[1])
        writer.write(MUCH)
        writer.write_eof()
        async with asyncio.timeout(30):
            assert await reader.read() == MUCH[::-1]
        writer.close()


async def test_a_task_that_has_ended_its_way_still_gets_what_is_sent(tunnels: Tunnels) -> None:
    got: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def say_and_listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"go on")
        writer.write_eof()
        got.set_result(await reader.read())
        writer.close()

    async with await asyncio.start_server(say_and_listen, "127.0.0.1", 0) as server:
        reader, writer = await at_a_task(tunnels, server.sockets[0].getsockname()[1])
        async with asyncio.timeout(30):
            assert await reader.read() == b"go on"
            writer.write(MUCH)
            writer.close()
            assert await got == MUCH


async def test_a_connection_that_a_task_broke_off_does_not_look_like_its_end(tunnels: Tunnels) -> None:
    async def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"half of")
        await reader.readexactly(1)
        reset_at_close(writer.get_extra_info("socket"))
        writer.transport.abort()

    async with await asyncio.start_server(begin, "127.0.0.1", 0) as server:
        reader, writer = await at_a_task(tunnels, server.sockets[0].getsockname()[1])
        async with asyncio.timeout(30):
            assert await reader.readexactly(7) == b"half of"
            writer.write(b"xy")
            with pytest.raises(ConnectionResetError):
                await reader.read()
        writer.close()


async def test_a_connection_that_breaks_on_its_way_does_not_look_like_its_end(
    agent: SmallAgent, session: str
) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() is None, "it looks like the end"
        broken.set()
        writer.close()

    broken = asyncio.Event()
    async with (
        cutting(f"http://127.0.0.1:{agent.port}") as way,
        await asyncio.start_server(wait, "127.0.0.1", 0) as server,
    ):
        connection = agent.connection(int(way.url.rpartition(":")[2]))
        tunnels = carrying(agent, connection, session)
        reader, writer = await at_a_task(tunnels, server.sockets[0].getsockname()[1])
        async with asyncio.timeout(30):
            assert await reader.readexactly(5) == b"hello"
            for end in way.ends:
                end.abort()
            with pytest.raises(ConnectionResetError):
                await reader.read()
            await broken.wait()
        writer.close()
        await tunnels.close()


@pytest.mark.parametrize("port", [1, 0, 65536, 99999])
async def test_a_port_at_which_nothing_listens_is_refused(
    agent: SmallAgent, connection: AgentConnection, session: str, port: int
) -> None:
    with pytest.raises(ConnectionError, match="status 502"):
        await asked(agent, connection.task_port(TASK, port, session))


async def test_only_what_is_of_the_latest_session_is_answered(
    agent: SmallAgent, connection: AgentConnection, session: str
) -> None:
    await connection.call("open", INSTANCE, Opened)

    async def archive() -> AsyncIterator[bytes]:
        yield b"x"

    for old in (session, "", "0" * 32):
        with pytest.raises(SessionOverError):
            await connection.call("listen", Listen(0), Heard, old)
        with pytest.raises(SessionOverError):
            await connection.call("forget", TASK, None, old)
        with pytest.raises(SessionOverError):
            await connection.find_folder(KEY, "code", old)
        # (who is still sending may not see the answer)
        with pytest.raises((SessionOverError, AgentUnreachableError)):
            await connection.send_folder(KEY, "code", archive(), old)
        with pytest.raises(SessionOverError):
            await connection.remove_folder(KEY, "code", old)
        with pytest.raises(ConnectionError, match="status 409"):
            await asked(agent, connection.task_port(TASK, 1, old))
        with pytest.raises(ConnectionError, match="status 409"):
            await asked(agent, connection.caller("0" * 32, old))


async def test_a_call_that_there_is_not_or_that_says_nothing_is_refused(
    connection: AgentConnection, session: str
) -> None:
    with pytest.raises(AgentRefusedError, match="404"):
        await connection.call("remove_all", None, None, session)
    with pytest.raises(AgentRefusedError, match="400"):
        await connection.call("forget", {"a": 1}, None, session)


@pytest.mark.parametrize("name", ["..", ".", "a/../../b", "/etc", "a\0b"])
async def test_no_name_of_a_folder_leads_out_of_the_agents_own(
    connection: AgentConnection, session: str, agent: SmallAgent, name: str
) -> None:
    async def archive() -> AsyncIterator[bytes]:
        yield b"x"

    before = _files(agent.folder)
    with pytest.raises((AgentRefusedError, AgentUnreachableError)):
        await connection.find_folder(KEY, name, session)
    with pytest.raises((AgentRefusedError, AgentUnreachableError)):
        await connection.send_folder(KEY, name, archive(), session)
    for key in ("..", "%2e%2e", KEY[1:], "G" * 64):
        with pytest.raises((AgentRefusedError, AgentUnreachableError)):
            await connection.remove_folder(key, "code", session)
    assert _files(agent.folder) == before


def _files(folder: Path) -> list[Path]:
    """Return what is below an agent's folder, but for the task folders that it makes ahead meanwhile."""
    spare = folder / "engine" / "spare"
    return sorted(path for path in folder.rglob("*") if spare not in path.parents)
