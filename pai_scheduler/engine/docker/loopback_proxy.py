"""A proxy for containers: what listens on loopback for browsers is reached from Docker's bridge too.

A notebook in a container talks to the Hub through the same public proxy as a browser does. That proxy
listens on loopback only; this forwards to it, from the bridge's address on this host and from nowhere else.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket

from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.i18n import msg

MOST_CONNECTIONS = 2048
_CONNECT_SECONDS = 10.0
_CHUNK = 2**16

_log = logging.getLogger(__name__)


class LoopbackProxy:
    """Forwards TCP connections from `address`:`port` to `port` on loopback."""

    def __init__(self, address: str, port: int, most_connections: int = MOST_CONNECTIONS) -> None:
        self.address, self.port = address, port
        self._most = most_connections
        self._server: asyncio.Server | None = None
        self._guests: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        """Return the address that containers use."""
        return f"http://{self.address}:{self.port}"

    async def open(self) -> None:
        """Begin to listen; EngineError where something else listens there."""
        try:
            self._server = await asyncio.start_server(self._receive, self.address, self.port)
        except OSError as error:
            why = msg("another program listens there") if error.errno == errno.EADDRINUSE else str(error)
            raise EngineError(
                msg(
                    "Containers cannot be let in at {address}:{port}: {why}. "
                    "Choose another port for the Hub, or for the scheduler.",
                    address=self.address,
                    port=self.port,
                    why=why,
                )
            ) from error

    async def close(self) -> None:
        """Stop to listen and end what is open."""
        if self._server is not None:
            self._server.close()
        for guest in list(self._guests):
            guest.cancel()
        await asyncio.gather(*self._guests, return_exceptions=True)

    async def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        guest = asyncio.current_task()
        if guest is None or len(self._guests) >= self._most:
            _log.warning("proxy for containers: more than %d connections at once, one is refused", self._most)
            writer.transport.abort()
            return
        self._guests.add(guest)
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                inner_reader, inner_writer = await asyncio.open_connection("127.0.0.1", self.port)
        except OSError:  # nobody is there yet, or no more: the guest sees a connection that ends
            writer.transport.abort()
        else:
            await _splice((reader, writer), (inner_reader, inner_writer))
        finally:
            self._guests.discard(guest)


async def open_proxy(address: str | None, port: int, *, needed: bool) -> LoopbackProxy | None:
    """Open the proxy at this host's address for containers; EngineError if `needed` and it cannot be."""
    try:
        if address is None:
            raise EngineError(
                msg(
                    "Docker has no default bridge, over which containers reach the Hub. "
                    "Start dockerd without --bridge=none."
                )
            )
        proxy = LoopbackProxy(address, port)
        await proxy.open()
    except EngineError as error:
        if needed:
            raise
        _log.warning("containers do not reach port %d of this machine: %s", port, error)
        return None
    return proxy


Side = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _splice(outer: Side, inner: Side) -> None:
    """Pass bytes both ways until both sides have ended, or one has broken."""
    writers = (outer[1], inner[1])
    for writer in writers:
        # a notebook's connection may be silent for days; a machine that is gone must still be noticed
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(_pass_on(outer[0], inner[1]))
            both.create_task(_pass_on(inner[0], outer[1]))
    except* OSError:
        pass
    finally:
        for writer in writers:
            writer.close()
        for writer in writers:
            with contextlib.suppress(OSError):
                await writer.wait_closed()


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
