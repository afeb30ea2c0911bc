"""Protocol between the scheduler and its workers: connections one way, reports the other."""

from __future__ import annotations

import asyncio
import os
import pickle
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Protocol

# What the scheduler and a connection server say to each other: connections one way, reports the other.
#
# A connection goes over a pair of sockets that only the two have: the length of a message, with the
# descriptor of the connection's socket, then the pickled message. A message without a descriptor breaks off
# a connection that was passed on before. Reports come back as lines; one with a number alone says that the
# connection of this number has ended. A connection server is our own child, run by our own interpreter:
# both ends trust each other.

_LENGTH = 8


@dataclass(frozen=True, slots=True)
class PassedOn:
    """A connection with its number, and what is to be known of it."""

    number: int
    connection: socket.socket
    about: Any


@dataclass(frozen=True, slots=True)
class BrokenOff:
    """The connection of this number is to be broken off."""

    number: int


async def pass_on(channel: socket.socket, number: int, connection: socket.socket, about: object) -> None:
    """Send a connection through a channel that does not block; OSError where the other end is gone."""
    await _send(channel, [connection.fileno()], (number, about))


async def break_off(channel: socket.socket, number: int) -> None:
    """Have a connection broken off; OSError where the other end is gone."""
    await _send(channel, [], (number, None))


async def receive(channel: socket.socket) -> PassedOn | BrokenOff | None:
    """Wait for the next message; None: the scheduler has gone."""
    await _ready(channel, write=False)
    head, descriptors, _, _ = socket.recv_fds(channel, _LENGTH, 1)
    if not head:
        return None
    connection = socket.socket(fileno=descriptors[0]) if descriptors else None
    left, parts = int.from_bytes(head), []
    while left:
        part = await asyncio.get_running_loop().sock_recv(channel, left)
        if not part:
            if connection is not None:
                connection.close()
            return None
        parts.append(part)
        left -= len(part)
    number, about = pickle.loads(b"".join(parts))  # noqa: S301 - from the scheduler, which started us
    return BrokenOff(number) if connection is None else PassedOn(number, connection, about)


def ended_line(number: int) -> bytes:
    """Write as a line that a connection has ended."""
    return b"%d\n" % number


def read_ended(line: bytes) -> int | None:
    """Return the number of the connection that has ended; None where the line is another report."""
    return int(line) if line.strip().isdigit() else None


async def _send(channel: socket.socket, descriptors: list[int], message: tuple[int, object]) -> None:
    body = pickle.dumps(message)
    while True:
        try:
            socket.send_fds(channel, [len(body).to_bytes(_LENGTH)], descriptors)
            break
        except BlockingIOError:
            await _ready(channel, write=True)
    await asyncio.get_running_loop().sock_sendall(channel, body)


async def _ready(channel: socket.socket, *, write: bool) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    add(channel, ready.set)
    try:
        await ready.wait()
    finally:
        remove(channel)


# What every connection server is: it serves the connections that it is given until the scheduler is gone.

#: Seconds that the last steps may take.
_LAST_SECONDS = 5.0


class ConnectionWorker(Protocol):
    """Serves connections, each under a number; `tell_ended` is to be called with it at the end of each."""

    def take(self, number: int, connection: socket.socket, about: Any) -> None:
        """Begin to serve a connection, which is the server's to close."""

    def break_off(self, number: int) -> None:
        """End a connection, unless it has ended."""


def run(open_server: Callable[[bytes], AbstractAsyncContextManager[ConnectionWorker]]) -> int:
    """Serve until the scheduler is gone. `open_server` gets the settings, the line that comes first."""
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # ^C and SIGTERM are for the scheduler, whose end we see
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1])), open_server(line)))
    # a thread that waits for something keeps nobody waiting
    os._exit(0)


def tell(report: bytes) -> None:
    """Write a report, which is a line, to the scheduler, which reads all the time."""
    sys.stdout.buffer.write(report)
    sys.stdout.buffer.flush()


def tell_ended(number: int) -> None:
    """Report that a connection has ended."""
    tell(ended_line(number))


async def _serve(channel: socket.socket, opening: AbstractAsyncContextManager[ConnectionWorker]) -> None:
    channel.setblocking(False)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(opening)
        while (message := await receive(channel)) is not None:
            if isinstance(message, PassedOn):
                server.take(message.number, message.connection, message.about)
            else:
                server.break_off(message.number)
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_SECONDS):
                await stack.aclose()
