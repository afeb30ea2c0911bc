"""A connection's way out: full while its peer reads nothing, and told of as soon as there is room."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest

from pai_scheduler.ssh.gateway.relay import FlowControl


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    with near, far:
        near.setblocking(False)
        yield near, far


def fill(sock: socket.socket) -> int:
    """Send until there is no room; return how much that was."""
    sent = 0
    with suppress(BlockingIOError):
        while True:
            sent += sock.send(b"x" * 65536)
    return sent


async def test_it_is_full_until_the_peer_reads_and_tells_once(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    outlet = FlowControl(near)
    assert not outlet.full
    sent = fill(near)
    assert outlet.full
    told = asyncio.Event()
    times = []

    def ready() -> None:
        times.append(outlet.full)
        told.set()

    outlet.wait(ready)
    while sent:
        sent -= len(far.recv(65536))
    async with asyncio.timeout(30):
        await told.wait()
    assert times == [False]
    outlet.close()


async def test_a_cancelled_wait_is_not_called(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    outlet = FlowControl(near)
    sent = fill(near)
    told = asyncio.Event()
    outlet.wait(pytest.fail)
    outlet.wait(told.set)
    outlet.call_off(pytest.fail)
    while sent:
        sent -= len(far.recv(65536))
    async with asyncio.timeout(30):
        await told.wait()
    outlet.close()


async def test_a_closed_one_is_never_full_and_keeps_no_connection_open(
    pair: tuple[socket.socket, socket.socket],
) -> None:
    near, far = pair
    outlet = FlowControl(near)
    sent = fill(near)
    outlet.wait(pytest.fail)
    outlet.close()
    assert not outlet.full
    outlet.wait(pytest.fail)
    near.close()
    while sent:
        sent -= len(far.recv(65536))
    # its end: no other number of the socket is left
    assert far.recv(1) == b""
