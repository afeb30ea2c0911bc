"""Sockets that are waited for in asyncio's loop, plain or under TLS: its own functions refuse the latter."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any

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
