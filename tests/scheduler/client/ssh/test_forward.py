"""Ports that lead through a real OpenSSH server; the command line's tests kill the gateway under them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncssh
import pytest

from pai_scheduler.client.ssh.connection import RemoteError, SharedConnection, UnreachableGatewayError
from pai_scheduler.client.ssh.forward import keep_open, listening
from pai_scheduler.i18n import Message
from pai_scheduler.testing.ports import free_port
from tests.testbed.sshd import RunningSshd


@pytest.fixture
async def echo() -> AsyncIterator[int]:
    """Run a server that says back what it has heard when all is said."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read())
        writer.write_eof()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


class Complaints(list[str]):
    """What was complained of."""

    def __call__(self, message: Message) -> None:
        self.append(str(message))


async def said_back(port: int, data: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    writer.write_eof()
    heard = await reader.read()
    writer.close()
    return heard


async def test_many_connections_at_once_keep_their_bytes_and_their_ends(sshd: RunningSshd, echo: int) -> None:
    shared, complaints = SharedConnection(sshd.connect), Complaints()
    async with listening(shared, 0, echo, complaints) as port:
        sent = [bytes([number]) * 300_000 for number in range(20)]
        heard = await asyncio.gather(*(said_back(port, data) for data in sent))
    await shared.close()
    assert heard == sent
    assert complaints == []


async def test_a_taken_port_is_replaced_unless_it_was_asked_for(sshd: RunningSshd, echo: int) -> None:
    shared = SharedConnection(sshd.connect)
    # the server there has that number on this machine already
    async with listening(shared, None, echo, Complaints()) as port:
        assert port != echo
        assert await said_back(port, b"x") == b"x"
    with pytest.raises(
        RemoteError, match=f"Port {echo} of this machine cannot be had: Address already in use"
    ):
        async with listening(shared, echo, echo, Complaints()):
            pass
    await shared.close()


async def test_a_port_that_nothing_listens_on_is_said_for_each_try(sshd: RunningSshd) -> None:
    remote = free_port()
    shared, complaints = SharedConnection(sshd.connect), Complaints()
    async with listening(shared, 0, remote, complaints) as port:
        assert await said_back(port, b"") == b""
    await shared.close()
    assert len(complaints) == 1
    assert complaints[0].startswith(f"Port {remote} of the task cannot be reached: ")


async def test_the_way_is_opened_again_after_it_broke(sshd: RunningSshd) -> None:
    opened: asyncio.Queue[asyncssh.SSHClientConnection] = asyncio.Queue()
    complaints, refusals = Complaints(), [UnreachableGatewayError(Message("away"))]

    async def connect() -> asyncssh.SSHClientConnection:
        if opened.qsize() == 0 and complaints_wanted and refusals:
            raise refusals.pop()
        connection = await sshd.connect()
        opened.put_nowait(connection)
        return connection

    complaints_wanted = False
    shared = SharedConnection(connect)
    keeping = asyncio.ensure_future(keep_open(shared, complaints))
    first = await opened.get()
    complaints_wanted = True
    first.abort()
    await opened.get()
    for _ in range(100):
        if len(complaints) == 2:
            break
        await asyncio.sleep(0.05)
    keeping.cancel()
    await shared.close()
    assert complaints == [
        "The way to the task broke; it is opened again as soon as the gateway answers.",
        "The way to the task is open again.",
    ]


async def test_what_never_was_open_is_not_waited_for() -> None:
    async def connect() -> asyncssh.SSHClientConnection:
        raise UnreachableGatewayError(Message("away"))

    with pytest.raises(UnreachableGatewayError, match="away"):
        await keep_open(SharedConnection(connect), Complaints())
