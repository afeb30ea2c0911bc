"""A tunnel server: takes connections one after another, and carries each to its far end and back."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable
from http import HTTPStatus

from pai_scheduler.engine.swarm.protocol import SESSION
from pai_scheduler.engine.swarm.tunnel import AGENT_NAME, FarEnd, LoopSocket, connect, splice

# Reaches the far end of a connection: its agent is asked, and after its answer carries bytes.


_CONNECT_SECONDS = 5.0
_HEAD_BYTES = 2**14
_END = b"\r\n\r\n"
_STRANGE = "the answer is none of an agent"


async def reach(far: FarEnd, tls: ssl.SSLContext | None) -> tuple[socket.socket, bytes]:
    """Return a connection to the far end, and what has come of it already; OSError, with a sentence."""
    try:
        async with asyncio.timeout(_CONNECT_SECONDS):
            return await _reach(far, tls)
    except TimeoutError as error:
        raise ConnectionError(f"{far.path}: no answer within {_CONNECT_SECONDS:g} s") from error
    except OSError as error:
        raise ConnectionError(f"{far.path}: {error}") from error


async def _reach(far: FarEnd, tls: ssl.SSLContext | None) -> tuple[socket.socket, bytes]:
    connection = await connect(far.host, far.port)
    try:
        if tls is not None:
            connection = tls.wrap_socket(
                connection, server_hostname=AGENT_NAME, do_handshake_on_connect=False
            )
        agent = LoopSocket(connection)
        await agent.handshake()
        head = f"POST {far.path} HTTP/1.1\r\nHost: {AGENT_NAME}\r\n{SESSION}: {far.session}\r\n"
        await agent.send(memoryview(f"{head}Content-Length: 0\r\n\r\n".encode()))
        status, begun = await _answer(agent)
        if status != HTTPStatus.SWITCHING_PROTOCOLS:
            raise ConnectionRefusedError(f"status {status}")
    except BaseException:
        connection.close()
        raise
    return connection, begun


async def _answer(agent: LoopSocket) -> tuple[int, bytes]:
    """Read the head of the answer; return its status, and what came behind it."""
    buffer, filled = bytearray(_HEAD_BYTES), 0
    while _END not in buffer[:filled]:
        if filled == len(buffer):
            raise ConnectionError(_STRANGE)
        size = await agent.receive(memoryview(buffer)[filled:])
        if not size:
            raise ConnectionResetError("the agent has ended the connection")
        filled += size
    head, _, begun = bytes(buffer[:filled]).partition(_END)
    try:
        return int(head.split(b" ", 2)[1]), begun
    except (IndexError, ValueError) as error:
        raise ConnectionError(_STRANGE) from error


_log = logging.getLogger(__name__)


class TunnelServer:
    """Speaks to agents by `tls` (None in tests only); `ended` gets the number of each ended connection."""

    def __init__(self, tls: ssl.SSLContext | None, ended: Callable[[int], None]) -> None:
        self._tls, self._ended = tls, ended
        self._carrying: dict[int, asyncio.Task[None]] = {}

    def take(self, number: int, connection: socket.socket, about: FarEnd) -> None:
        """Begin to carry a connection, and close it at the end."""
        self._carrying[number] = asyncio.create_task(self._carry(connection, about))
        self._carrying[number].add_done_callback(lambda _: self._end(number))

    def break_off(self, number: int) -> None:
        """Break off a connection, unless it has ended."""
        if (carrying := self._carrying.get(number)) is not None:
            carrying.cancel()

    async def close(self) -> None:
        """Break off all."""
        carrying = list(self._carrying.values())
        for each in carrying:
            each.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    def _end(self, number: int) -> None:
        del self._carrying[number]
        self._ended(number)

    async def _carry(self, connection: socket.socket, far: FarEnd) -> None:
        with connection:
            try:
                protected, begun = await reach(far, self._tls)
            except OSError as error:
                _log.warning("%s failed: %s", far.what, error)
                return
            try:
                await splice(connection, protected, begun)
            except OSError as error:
                _log.info("%s broke off: %s", far.what, error)
