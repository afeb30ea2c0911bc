"""Fixtures of the tests of the workers: a scheduler with file servers, and a session with a small agent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.protocol import Open, Opened
from pai_scheduler.server.engines import tunnel_servers
from pai_scheduler.workers.supervisor import ConnectionServers
from tests.scheduler.engine.agent.small_agent import SmallAgent
from tests.scheduler.engine.conftest import agent, connection
from tests.scheduler.workers.file_server.clients import Files
from tests.testbed.scheduler import RunningScheduler, StartScheduler

#: its fixtures are ours too
__all__ = ["agent", "connection"]


# A real scheduler with two file servers.


@pytest.fixture(scope="module")
def running(module_scheduler: StartScheduler) -> RunningScheduler:
    return module_scheduler("--file-processes", "2")


@pytest.fixture
def files(running: RunningScheduler) -> Files:
    return Files(running)


# A session with a small agent, and processes that carry what goes to it.


@pytest.fixture
async def session(connection: AgentConnection) -> str:
    opened: Opened = await connection.call("open", Open("0123456789abcdef", LogKeeping()), Opened)
    return opened.session


@pytest.fixture
async def servers(agent: SmallAgent) -> AsyncIterator[ConnectionServers]:
    servers = tunnel_servers(agent.credentials, 2)
    servers.start()
    yield servers
    await servers.close()


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """Return a port at which everybody gets back what they send."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionResetError):
            while data := await reader.read(2**16):
                writer.write(data)
                await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]
