"""Real processes that carry connections to a real agent, and what becomes of these when one of them dies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
from pathlib import Path

import pytest

from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.tunnel import FarEnd, scheduler_tls
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.lab import eventually
from pai_scheduler.workers.supervisor import ConnectionServers
from pai_scheduler.workers.tunnel_server.server import TunnelServer
from tests.scheduler.engine.agent.small_agent import SmallAgent

TASK = TaskRef("0123456789ab", 0, "main", 0)


def pair() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return socket.create_connection(listening.getsockname()), listening.accept()[0]


class Client:
    """Somebody whose connection is carried to a far end."""

    def __init__(self, servers: ConnectionServers, far: FarEnd) -> None:
        end, self._theirs = pair()
        self.local = self._theirs.getpeername()
        self._opening = asyncio.open_connection(sock=end)
        self.serving = asyncio.create_task(servers.serve(self._theirs, far))

    async def begin(self) -> None:
        self.reader, self.writer = await self._opening

    async def echo(self, data: bytes) -> None:
        self.writer.write(data)
        async with asyncio.timeout(60):
            assert await self.reader.readexactly(len(data)) == data

    async def leave(self) -> None:
        self.writer.close()
        async with asyncio.timeout(60):
            await self.serving


def carrier_of(client: Client, pids: list[int]) -> int:
    """Return the process that has a client's connection."""
    sockets = {
        f"socket:[{line.split()[9]}]"
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if int(line.split()[2].split(":")[1], 16) == client.local[1]
    }
    for pid in pids:
        for link in Path(f"/proc/{pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # (what is closed meanwhile)
                if str(link.readlink()) in sockets:
                    return pid
    raise AssertionError("no process has it")


async def two_clients(servers: ConnectionServers, far: FarEnd) -> list[Client]:
    """Return clients of the two processes, both of which have been answered."""
    async with asyncio.timeout(60):
        while len(servers.process_ids) < 2:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    clients = [Client(servers, far) for _ in range(2)]
    for client in clients:
        await client.begin()
        await client.echo(b"hello")
    return clients


@pytest.fixture
def far(connection: AgentConnection, session: str, echo: int) -> FarEnd:
    return connection.task_port(TASK, echo, session)


async def test_bytes_go_through_a_process_of_their_own_and_come_whole(
    servers: ConnectionServers, far: FarEnd
) -> None:
    clients = await two_clients(servers, far)
    pids = servers.process_ids

    def are_handed_over() -> bool:
        return sorted(carrier_of(client, [os.getpid(), *pids]) for client in clients) == pids

    # (this process closes its own end a moment after it has passed it on)
    await eventually(are_handed_over, "each process carries a connection, and this one none")
    await asyncio.gather(*(client.echo(os.urandom(5 * 2**20)) for client in clients))
    for client in clients:
        await client.leave()


async def test_a_process_that_is_killed_breaks_off_its_connections_and_no_others(
    servers: ConnectionServers, far: FarEnd
) -> None:
    clients, pids = await two_clients(servers, far), servers.process_ids
    killed = carrier_of(clients[0], pids)
    os.kill(killed, signal.SIGKILL)
    async with asyncio.timeout(60):
        with pytest.raises(ConnectionResetError):
            await clients[0].reader.read()
        await clients[0].serving
    await clients[1].echo(b"still here")
    again = Client(servers, far)
    await again.begin()
    await again.echo(b"and again")
    for client in (clients[1], again):
        await client.leave()


async def test_what_nobody_waits_for_is_broken_off_at_both_ends(
    servers: ConnectionServers, connection: AgentConnection, session: str
) -> None:
    broken: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        try:
            await reader.read()
            broken.set_result(None)
        except ConnectionResetError as error:
            broken.set_result(error)
        writer.close()

    async with await asyncio.start_server(listen, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        client = Client(servers, connection.task_port(TASK, port, session))
        await client.begin()
        async with asyncio.timeout(60):
            assert await client.reader.readexactly(5) == b"hello"
            client.serving.cancel()
            with pytest.raises(ConnectionResetError):
                await client.reader.read()
            assert isinstance(await broken, ConnectionResetError)
    client.writer.close()


async def test_a_far_end_that_is_not_there_ends_the_connection_and_is_said(
    agent: SmallAgent,
    connection: AgentConnection,
    session: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ended: asyncio.Queue[int] = asyncio.Queue()
    server = TunnelServer(scheduler_tls(agent.credentials), ended.put_nowait)
    client, theirs = pair()
    server.take(7, theirs, connection.caller("0" * 32, session))
    async with asyncio.timeout(60):
        assert await ended.get() == 7
    assert client.recv(1) == b""
    client.close()
    assert f"a connection of a container failed: /v1/callers/{'0' * 32}: status 404" in caplog.text
    await server.close()


async def test_when_it_is_closed_what_it_carries_is_broken_off(agent: SmallAgent, far: FarEnd) -> None:
    ended: asyncio.Queue[int] = asyncio.Queue()
    server = TunnelServer(scheduler_tls(agent.credentials), ended.put_nowait)
    end, theirs = pair()
    server.take(1, theirs, far)
    reader, writer = await asyncio.open_connection(sock=end)
    writer.write(b"hello")
    async with asyncio.timeout(60):
        assert await reader.readexactly(5) == b"hello"
        await server.close()
        with pytest.raises(ConnectionResetError):
            await reader.read()
        assert await ended.get() == 1
    server.break_off(1)  # (which has ended)
    writer.close()
