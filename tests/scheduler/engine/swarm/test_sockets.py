"""Sockets that are waited for: by several at once, by none any more, and where the system has no room."""

from __future__ import annotations

import asyncio
import resource
import socket
from pathlib import Path

import pytest

from pai_scheduler.engine.swarm import tunnel as sockets_module
from pai_scheduler.engine.swarm.tunnel import LoopSocket, accept_all, connect
from pai_scheduler.testing.ports import free_port


def pair() -> tuple[LoopSocket, socket.socket]:
    ours, theirs = socket.socketpair()
    return LoopSocket(ours), theirs


async def test_all_who_wait_for_a_socket_are_woken() -> None:
    ours, theirs = pair()
    waiting = [asyncio.create_task(ours.readable()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[1].cancel()
    theirs.send(b"x")
    async with asyncio.timeout(30):
        await asyncio.gather(waiting[0], waiting[2])
    ours.connection.close()
    theirs.close()


async def test_who_waits_no_more_leaves_nothing_behind() -> None:
    ours, theirs = pair()
    waiting = asyncio.create_task(ours.readable())
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
    assert not asyncio.get_running_loop().remove_reader(ours.connection)
    ours.connection.close()
    theirs.close()


async def test_what_there_is_and_what_there_is_not_are_told_from_the_end() -> None:
    ours, theirs = pair()
    into = memoryview(bytearray(4))
    assert ours.receive_now(into) is None
    theirs.send(b"abcdef")
    assert ours.receive_now(into) == 4
    assert ours.receive_now(into) == 2
    theirs.send(b"g")
    theirs.close()
    assert ours.receive_now(into) == 1
    assert bytes(into[:1]) == b"g"
    assert await ours.receive(into) == 0
    ours.connection.close()


@pytest.mark.parametrize("size", [1, 3, 100])
async def test_parts_arrive_in_their_order_also_where_there_is_no_room_for_all(size: int) -> None:
    ours, theirs = pair()
    parts = [memoryview(bytes([number % 251]) * 2**14) for number in range(size)]
    whole = b"".join(parts)
    sending = asyncio.create_task(ours.send_parts(list(parts)))
    reader, writer = await asyncio.open_connection(sock=theirs)
    async with asyncio.timeout(30):
        assert await reader.readexactly(len(whole)) == whole
        await sending
    ours.connection.close()
    writer.close()


async def test_a_host_is_reached_at_the_address_that_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, port = asyncio.get_running_loop(), free_port()

    async def two_addresses(*_: object, **__: object) -> list[tuple[object, ...]]:
        return [
            (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in ("127.0.0.2", "127.0.0.1")
        ]

    monkeypatch.setattr(loop, "getaddrinfo", two_addresses)
    with pytest.raises(ConnectionRefusedError):
        await connect("a-host", port)
    with socket.create_server(("127.0.0.1", port)):
        connection = await connect("a-host", port)
        assert connection.getpeername() == ("127.0.0.1", port)
        assert not connection.getblocking()
        connection.close()


async def test_a_port_that_there_cannot_be_is_an_error() -> None:
    for port in (65536, 99999):
        with pytest.raises((OSError, OverflowError)):
            await connect("127.0.0.1", port)


async def test_connections_are_accepted_again_once_the_system_has_room(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sockets_module, "_NO_ROOM_SECONDS", 0.01)
    taken: asyncio.Queue[socket.socket] = asyncio.Queue()
    listening = socket.create_server(("127.0.0.1", 0))
    client = socket.socket()
    accepting = accept_all(listening, taken.put_nowait)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(int(link.name) for link in Path("/proc/self/fd").iterdir())
    spare = [socket.socket() for _ in range(highest)]  # (no number below the limit is free)
    limit = max(each.fileno() for each in spare)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit + 1, before[1]))
    try:
        client.connect(listening.getsockname())
        async with asyncio.timeout(30):
            while "a connection cannot be accepted" not in caplog.text:  # noqa: ASYNC110 (the log wakes nobody)
                await asyncio.sleep(0.01)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    async with asyncio.timeout(30):
        accepted = await taken.get()
    accepting.cancel()
    await asyncio.gather(accepting, return_exceptions=True)
    assert listening.fileno() == -1, "it listens no more"
    for each in (accepted, client, *spare):
        each.close()


async def test_who_ends_at_once_what_has_not_begun_leaves_no_port_open() -> None:
    listening = socket.create_server(("127.0.0.1", 0))
    accepting = accept_all(listening, socket.socket.close)
    accepting.cancel()
    await asyncio.gather(accepting, return_exceptions=True)
    assert listening.fileno() == -1
