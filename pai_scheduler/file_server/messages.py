"""What the scheduler and a file server say to each other: connections one way, reports the other.

A connection goes over a pair of sockets that only the two have: its length, with the descriptor of its
socket, then a pickled `Transfer`. Reports come back as lines of JSON. A file server is our own child, run by
our own interpreter: both ends trust each other.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import socket
from dataclasses import asdict, dataclass

from pai_scheduler.api.webhdfs.handover import Transfer

_LENGTH = 8


@dataclass(frozen=True, slots=True)
class Settings:
    """`storage`: as the option has it, with `folder` for the one that nobody named; `prefix`: of the URLs."""

    storage: str | None
    folder: str
    account: str
    kerberos: bool
    prefix: str
    openpai_compat: bool
    log_level: str = "info"
    log_format: str = "text"

    def to_line(self) -> bytes:
        """Write them as one line."""
        return json.dumps(asdict(self)).encode() + b"\n"

    @classmethod
    def from_line(cls, line: bytes) -> Settings:
        """Return the settings of such a line."""
        return cls(**json.loads(line))


@dataclass(frozen=True, slots=True)
class Sent:
    """So many bytes were sent."""

    size: int


@dataclass(frozen=True, slots=True)
class Answered:
    """A request was answered; `seconds`: None where how long it took says nothing."""

    status: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Ended:
    """The connection with this number has ended."""

    number: int


Report = Sent | Answered | Ended
_REPORTS = {kind.__name__: kind for kind in (Sent, Answered, Ended)}


def report_line(report: Report) -> bytes:
    """Write a report as a line."""
    return json.dumps([type(report).__name__, asdict(report)]).encode() + b"\n"


def read_report(line: bytes) -> Report:
    """Return the report of such a line."""
    kind, values = json.loads(line)
    return _REPORTS[kind](**values)


async def pass_on(channel: socket.socket, number: int, connection: socket.socket, transfer: Transfer) -> None:
    """Send a connection through a channel that does not block; OSError where the other end is gone."""
    body = pickle.dumps((number, transfer))
    head, rights = len(body).to_bytes(_LENGTH), [connection.fileno()]
    while True:
        try:
            socket.send_fds(channel, [head], rights)
            break
        except BlockingIOError:
            await _ready(channel, write=True)
    await asyncio.get_running_loop().sock_sendall(channel, body)


async def receive(channel: socket.socket) -> tuple[int, socket.socket, Transfer] | None:
    """Wait for the next connection and its number; None: the scheduler has gone."""
    await _ready(channel, write=False)
    head, descriptors, _, _ = socket.recv_fds(channel, _LENGTH, 1)
    if not head:
        return None
    connection = socket.socket(fileno=descriptors[0])
    left, parts = int.from_bytes(head), []
    while left:
        part = await asyncio.get_running_loop().sock_recv(channel, left)
        if not part:
            connection.close()
            return None
        parts.append(part)
        left -= len(part)
    number, transfer = pickle.loads(b"".join(parts))  # noqa: S301 - from the scheduler, which started us
    return number, connection, transfer


async def _ready(channel: socket.socket, *, write: bool) -> None:
    loop, ready = asyncio.get_running_loop(), asyncio.Event()
    add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
    add(channel, ready.set)
    try:
        await ready.wait()
    finally:
        remove(channel)
