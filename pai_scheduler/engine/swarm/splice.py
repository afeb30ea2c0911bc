"""A plain connection carried over one that TLS protects, both ways; each side may end its own way first.

TLS is closed in both ways at once. So bytes cross it in pieces, each behind its length (four bytes, the
highest first): a piece without bytes is the end of that way; a connection that ends without one has broken.

It is done with the sockets themselves. asyncio's streams take a plain byte through two more buffers, and one
under TLS through four: twice the time of a core for each, and a third of the throughput.
"""

from __future__ import annotations

import asyncio
import socket
import struct

from .sockets import LoopSocket

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
