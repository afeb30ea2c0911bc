"""Real processes that serve connections: who serves which, and what becomes of it when one of them dies."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.workers.supervisor import ConnectionServers

MODULE = "tests.scheduler.workers.greeter"


class Client:
    """A connection that is served, and its other end."""

    def __init__(self, servers: ConnectionServers, about: str = "somebody") -> None:
        self._end, theirs = socket.socketpair()
        self._end.setblocking(False)
        self.serving = asyncio.create_task(servers.serve(theirs, about))

    async def read(self) -> bytes:
        async with asyncio.timeout(60):
            return await asyncio.get_running_loop().sock_recv(self._end, 2**16)

    async def greeted_by(self) -> int:
        """Return the process that says so."""
        pid, _, settings = (await self.read()).partition(b" ")
        assert settings == b"welcome\n"
        return int(pid)

    async def echo(self) -> bytes:
        await asyncio.get_running_loop().sock_sendall(self._end, b"hello")
        return await self.read()

    async def leave(self) -> None:
        self._end.close()
        async with asyncio.timeout(60):
            await self.serving


@pytest.fixture
async def reports() -> list[bytes]:
    return []


@pytest.fixture
async def servers(monkeypatch: pytest.MonkeyPatch, reports: list[bytes]) -> AsyncIterator[ConnectionServers]:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    servers = ConnectionServers("greeter", MODULE, b"welcome\n", 2, reports.append)
    servers.start()
    yield servers
    await servers.close()


async def both(servers: ConnectionServers) -> list[int]:
    async with asyncio.timeout(60):
        while len(pids := servers.process_ids) < 2:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    return pids


async def test_who_comes_before_a_process_runs_is_served_when_one_does(servers: ConnectionServers) -> None:
    client = Client(servers)
    assert await client.greeted_by() in servers.process_ids
    assert await client.echo() == b"hello"
    await client.leave()


async def test_each_connection_goes_to_the_process_that_has_the_fewest(servers: ConnectionServers) -> None:
    pids = await both(servers)
    clients = [Client(servers) for _ in range(4)]
    assert sorted([await client.greeted_by() for client in clients]) == sorted(2 * pids)
    for client in clients:
        await client.leave()


async def test_a_process_that_dies_takes_its_connections_only_and_is_started_anew(
    servers: ConnectionServers, caplog: pytest.LogCaptureFixture
) -> None:
    pids = await both(servers)
    clients = {await client.greeted_by(): client for client in (Client(servers), Client(servers))}
    assert sorted(clients) == pids
    os.kill(pids[0], signal.SIGKILL)
    assert await clients[pids[0]].read() == b""
    await clients[pids[0]].leave()
    assert await clients[pids[1]].echo() == b"hello"
    async with asyncio.timeout(60):
        while len(now := servers.process_ids) < 2 or pids[0] in now:  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.01)
    assert pids[1] in now
    await clients[pids[1]].leave()
    assert "a greeter ended with -9; another one starts in 0.1 s" in caplog.text


async def test_a_connection_of_which_a_process_dies_ends_and_comes_to_no_other(
    servers: ConnectionServers,
) -> None:
    pids = await both(servers)
    fatal = Client(servers, "die")
    assert await fatal.read() == b""
    await fatal.leave()
    assert len(set(pids) & set(await both(servers))) == 1


async def test_a_connection_that_is_wanted_no_more_is_broken_off_and_the_next_is_served(
    servers: ConnectionServers,
) -> None:
    first, second = Client(servers), Client(servers)
    for client in (first, second):
        await client.greeted_by()
    first.serving.cancel()
    assert await first.read() == b""
    assert await second.echo() == b"hello"
    await second.leave()
    third = Client(servers)
    await third.greeted_by()
    await third.leave()


async def test_what_processes_report_is_heard_and_ends_are_not_among_it(
    servers: ConnectionServers, reports: list[bytes]
) -> None:
    for name in ("one", "another"):
        client = Client(servers, name)
        await client.greeted_by()
        await client.leave()
    assert reports == [b"a greeting of one\n", b"a greeting of another\n"]


async def test_when_they_are_closed_all_processes_and_connections_end(servers: ConnectionServers) -> None:
    pids, client = await both(servers), Client(servers)
    await client.greeted_by()
    await servers.close()
    assert await client.read() == b""
    await client.leave()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


async def test_a_program_that_does_not_start_is_tried_again_and_said(
    caplog: pytest.LogCaptureFixture,
) -> None:
    said = asyncio.Event()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "another one starts in 0.2 s" in record.getMessage():
                said.set()

    logger, handler = logging.getLogger("pai_scheduler.workers.supervisor"), Heard()
    logger.addHandler(handler)
    servers = ConnectionServers("server of nothing", "pai_scheduler.no_such_module", b"\n", 1)
    servers.start()
    try:
        async with asyncio.timeout(60):
            await said.wait()
    finally:
        logger.removeHandler(handler)
        await servers.close()
    assert "a server of nothing ended with 1; another one starts in 0.1 s" in caplog.text
