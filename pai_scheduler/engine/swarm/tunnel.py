"""Tunnels of bytes to a node: sockets plain or under TLS, spliced, and where they go on."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

# How a scheduler and its agents speak to each other: mutual TLS 1.3, by credentials of one authority.

#: the name in an agent's certificate, whatever its machine is called
AGENT_NAME = "pai-agent"


def agent_tls(bundle: Path) -> ssl.SSLContext:
    """Return how an agent speaks: to those only who show a certificate of a scheduler of this authority."""
    return _tls(ssl.PROTOCOL_TLS_SERVER, bundle)


def scheduler_tls(bundle: Path) -> ssl.SSLContext:
    """Return how a scheduler speaks to agents, whose certificate must be of this authority."""
    return _tls(ssl.PROTOCOL_TLS_CLIENT, bundle)


def _tls(protocol: int, bundle: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(bundle)
    context.load_verify_locations(bundle)
    return context


# Where a connection of the scheduler's goes on, through an agent, and who carries it there.


@dataclass(frozen=True, slots=True)
class FarEnd:
    """The agent at `host`:`port` is asked for `path` in `session`. `what`: the connection, for the log."""

    what: str
    host: str
    port: int
    path: str
    session: str


class TunnelServers(Protocol):
    """Carry connections to their far ends and back, outside of the scheduler's loop."""

    def start(self) -> None:
        """Get ready; who comes meanwhile waits."""

    async def close(self) -> None:
        """End, and break off what goes on."""

    async def serve(self, connection: socket.socket, about: FarEnd) -> None:
        """Carry a connection; return when it has ended. It is broken off where this is cancelled."""


# Sockets that are waited for in asyncio's loop, plain or under TLS: its own functions refuse the latter.

#: More parts than this are joined before they are sent.
_MOST_PARTS = 64
#: Seconds until connections are accepted again, where the system has no room for another one.
_NO_ROOM_SECONDS = 1.0

_log = logging.getLogger(__name__)


class LoopSocket:
    """A socket of which several may wait at once, some to read and some to write. Who made it closes it."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setblocking(False)
        self.connection = connection
        self._loop = asyncio.get_running_loop()
        self._readers: list[asyncio.Future[None]] = []
        self._writers: list[asyncio.Future[None]] = []

    async def readable(self) -> None:
        """Wait until something has come, or the end."""
        await self._wait(self._readers, self._loop.add_reader, self._loop.remove_reader)

    async def writable(self) -> None:
        """Wait until something can be sent."""
        await self._wait(self._writers, self._loop.add_writer, self._loop.remove_writer)

    async def handshake(self) -> None:
        """Do the handshake of TLS; OSError."""
        if not isinstance(self.connection, ssl.SSLSocket):
            return
        while True:
            try:
                self.connection.do_handshake()
                return
            except ssl.SSLWantReadError:
                await self.readable()
            except ssl.SSLWantWriteError:
                await self.writable()

    async def receive(self, into: memoryview) -> int:
        """Read what there is, waiting for something; return how many bytes, 0 at the end. OSError."""
        while (size := self.receive_now(into)) is None:
            await self.readable()
        return size

    def receive_now(self, into: memoryview) -> int | None:
        """Fill `into` with what there is; return how many bytes, None for none yet, 0 at the end. OSError."""
        filled = 0
        while filled < len(into):
            try:
                size = self.connection.recv_into(into[filled:])
            except (BlockingIOError, ssl.SSLWantReadError):
                return filled or None
            if not size:
                break
            filled += size
        return filled

    async def send(self, data: memoryview) -> None:
        """Send all of it; OSError."""
        while data:
            try:
                data = data[self.connection.send(data) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                await self.writable()
            except ssl.SSLWantReadError:
                await self.readable()

    async def send_parts(self, parts: list[memoryview]) -> None:
        """Send one after the other, through a plain socket; OSError. The list is empty then."""
        if len(parts) > _MOST_PARTS:
            parts[:] = [memoryview(b"".join(parts))]
        while parts:
            try:
                sent = self.connection.sendmsg(parts)
            except BlockingIOError:
                await self.writable()
                continue
            while parts and sent >= len(parts[0]):
                sent -= len(parts.pop(0))
            if sent:
                parts[0] = parts[0][sent:]

    async def _wait(
        self,
        waiting: list[asyncio.Future[None]],
        add: Callable[..., None],
        remove: Callable[[Any], bool],
    ) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        if not waiting:
            add(self.connection, self._wake, waiting, remove)
        waiting.append(ready)
        try:
            await ready
        finally:
            if ready in waiting:
                waiting.remove(ready)
                if not waiting:
                    remove(self.connection)

    def _wake(self, waiting: list[asyncio.Future[None]], remove: Callable[[Any], bool]) -> None:
        remove(self.connection)
        for ready in waiting:
            if not ready.done():
                ready.set_result(None)
        waiting.clear()


async def connect(host: str, port: int) -> socket.socket:
    """Connect to the first address of a host that answers; OSError where none does."""
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        connection = socket.socket(family, kind, protocol)
        connection.setblocking(False)
        try:
            await loop.sock_connect(connection, address)
            return connection
        except OSError as error:
            connection.close()
            failure = error
        except BaseException:
            connection.close()
            raise
    raise failure or OSError(f"{host} has no address")


def accept_all(listening: socket.socket, take: Callable[[socket.socket], None]) -> asyncio.Task[None]:
    """Begin to give each connection that comes to `take`; `listening` is closed at the task's end."""
    listening.setblocking(False)
    accepting = asyncio.create_task(_accept(listening, take))
    # also where it is cancelled before it has begun
    accepting.add_done_callback(lambda _: listening.close())
    return accepting


async def _accept(listening: socket.socket, take: Callable[[socket.socket], None]) -> None:
    while True:
        try:
            connection, _ = await asyncio.get_running_loop().sock_accept(listening)
        except OSError as error:
            _log.warning("a connection cannot be accepted: %s", error)
            await asyncio.sleep(_NO_ROOM_SECONDS)
        else:
            take(connection)


# A plain connection carried over one that TLS protects, both ways; each side may end its own way first.
#
# TLS is closed in both ways at once. So bytes cross it in pieces, each behind its length (four bytes, the
# highest first): a piece without bytes is the end of that way; a connection that ends without one has
# broken.
#
# It is done with the sockets themselves. asyncio's streams take a plain byte through two more buffers, and
# one under TLS through four: twice the time of a core for each, and a third of the throughput.

_HEAD = 4
#: Bytes of a piece at most; what is sent is four whole records of TLS with its head.
_PIECE = 2**16
_SENT = _PIECE - _HEAD
#: Bytes that are taken of a connection before others have their turn.
_BUFFER = 2**18
_MOST_SPARE = 16

#: Those that nobody uses now: most connections are idle most of the time.
_spare: list[bytearray] = []


async def splice(plain: socket.socket, protected: socket.socket, begun: bytes = b"") -> None:
    """Carry bytes both ways until both sides have no more; close both. OSError where one has broken.

    `begun`: what has been read of `protected` already. A connection that breaks, or whose process is killed,
    never looks like the end of what was sent.
    """
    near, far = LoopSocket(plain), LoopSocket(protected)
    for each in (plain, protected):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # it may be silent for days; a machine that is gone must still be noticed
        each.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    reset_at_close(plain)
    ways = [asyncio.create_task(_leave(near, far)), asyncio.create_task(_come(far, near, begun))]
    try:
        await asyncio.gather(*ways)
        reset_at_close(plain, wanted=False)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        plain.close()
        protected.close()


def reset_at_close(connection: socket.socket, *, wanted: bool = True) -> None:
    """Let the close of a TCP connection look like a break, or like the end of what was sent."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", wanted, 0))


async def _leave(near: LoopSocket, far: LoopSocket) -> None:
    size: int | None = None
    while size != 0:
        buffer = _take_buffer()
        try:
            piece = memoryview(buffer)
            size = near.receive_now(piece[_HEAD : _HEAD + _SENT])
            if size is not None:
                piece[:_HEAD] = size.to_bytes(_HEAD)
                await far.send(piece[: _HEAD + size])
        finally:
            _give_back(buffer)
        await _next_turn(near, size)


async def _come(far: LoopSocket, near: LoopSocket, begun: bytes) -> None:
    pieces = _Pieces()
    await near.send_parts(pieces.read(memoryview(begun)))
    while not pieces.ended:
        buffer = _take_buffer()
        try:
            data = memoryview(buffer)
            size = far.receive_now(data)
            if size == 0:
                raise ConnectionResetError("the other side has gone")
            if size is not None:
                await near.send_parts(pieces.read(data[:size]))
        finally:
            _give_back(buffer)
        if not pieces.ended:
            await _next_turn(far, size)
    near.connection.shutdown(socket.SHUT_WR)


class _Pieces:
    """Takes the heads out of what comes."""

    def __init__(self) -> None:
        self.ended = False
        self._head = b""
        self._left = 0

    def read(self, data: memoryview) -> list[memoryview]:
        """Return the parts of `data` that are no heads; ConnectionError where one cannot be."""
        parts: list[memoryview] = []
        while data and not self.ended:
            if self._left:
                parts.append(data[: self._left])
                data = data[self._left :]
                self._left -= len(parts[-1])
                continue
            missing = _HEAD - len(self._head)
            self._head += bytes(data[:missing])
            data = data[missing:]
            if len(self._head) == _HEAD:
                self._left, self._head = int.from_bytes(self._head), b""
                self.ended = not self._left
            if self._left > _PIECE:
                raise ConnectionError(f"a piece of {self._left} bytes is none of this connection")
        return parts


async def _next_turn(read: LoopSocket, size: int | None) -> None:
    """Wait for the next bytes, or let others have their turn."""
    if size is None:
        await read.readable()
    else:
        await asyncio.sleep(0)


def _take_buffer() -> bytearray:
    return _spare.pop() if _spare else bytearray(_BUFFER)


def _give_back(buffer: bytearray) -> None:
    if len(_spare) < _MOST_SPARE:
        _spare.append(buffer)
