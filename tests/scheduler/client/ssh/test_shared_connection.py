"""One connection for many, on a real sshd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import asyncssh
import pytest

from pai_scheduler.client.ssh.connection import SharedConnection
from tests.testbed.sshd import RunningSshd


@pytest.fixture
async def opened() -> list[asyncssh.SSHClientConnection]:
    return []


@pytest.fixture
async def shared(
    sshd: RunningSshd, opened: list[asyncssh.SSHClientConnection]
) -> AsyncIterator[SharedConnection]:
    async def connect() -> asyncssh.SSHClientConnection:
        opened.append(await sshd.connect())
        return opened[-1]

    made = SharedConnection(connect, idle=0.05)
    yield made
    await made.close()


async def test_simultaneous_requests_get_the_same_connection(shared: SharedConnection, opened) -> None:
    async def use() -> asyncssh.SSHClientConnection:
        async with shared.use() as connection:
            await connection.run("true")
            return connection

    assert len(set(await asyncio.gather(*(use() for _ in range(10))))) == 1
    assert len(opened) == 1


async def test_it_is_closed_when_unused_and_not_before(shared: SharedConnection, opened) -> None:
    async with shared.use() as connection:
        async with shared.use():
            pass
        await asyncio.sleep(0.2)
        assert not connection.is_closed()
    async with asyncio.timeout(30):
        await connection.wait_closed()
    assert shared.unused
    async with shared.use() as another:
        assert another is not connection
    assert len(opened) == 2


async def test_a_connection_that_broke_is_opened_anew(shared: SharedConnection) -> None:
    async with shared.use() as connection:
        connection.abort()
        await connection.wait_closed()
        async with shared.use() as another:
            assert (await another.run("echo back")).stdout == "back\n"


async def test_a_connection_that_cannot_be_opened_is_not_in_use(
    shared: SharedConnection, sshd: RunningSshd
) -> None:
    sshd.close()
    for _ in range(2):
        with pytest.raises(ConnectionRefusedError):
            await shared.take()
    assert shared.unused
