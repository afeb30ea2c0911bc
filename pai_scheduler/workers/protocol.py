"""What the scheduler and a connection server say to each other: connections one way, reports the other.

A connection goes over a pair of sockets that only the two have: the length of a message, with the
descriptor of the connection's socket, then the pickled message. A message without a descriptor breaks off a
connection that was passed on before. Reports come back as lines; one with a number alone says that the
connection of this number has ended. A connection server is our own child, run by our own interpreter: both
ends trust each other.
"""

from __future__ import annotations

import asyncio
import pickle
import socket
from dataclasses import dataclass
from typing import Any

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
