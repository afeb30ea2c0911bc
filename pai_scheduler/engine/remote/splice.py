"""Carries a plain connection over one that TLS protects, both ways; each side may end its own way first.

TLS is closed in both ways at once. So bytes cross it in pieces, each behind its length (four bytes, the
highest first): a piece without bytes is the end of that way; a connection that ends without one has broken.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Awaitable, Callable

#: bytes of a piece at most
_PIECE = 2**16
_HEAD = 4

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def splice(
    plain: Streams, read: Callable[[int], Awaitable[bytes]], write: Callable[[bytes], Awaitable[object]]
) -> None:
    """Carry bytes both ways until both sides have no more; what goes wrong breaks the plain connection too.

    `read` gives exactly so many bytes of the protected connection, `write` sends there. OSError and EOFError,
    and what they raise.
    """
    reader, writer = plain

    async def leave() -> None:
        while data := await reader.read(_PIECE):
            await write(len(data).to_bytes(_HEAD) + data)
        await write(bytes(_HEAD))

    async def come() -> None:
        while length := int.from_bytes(await read(_HEAD)):
            if length > _PIECE:
                raise ConnectionError(f"a piece of {length} bytes is none of this connection")
            writer.write(await read(length))
            await writer.drain()
        writer.write_eof()

    ways = [asyncio.create_task(leave()), asyncio.create_task(come())]
    try:
        await asyncio.gather(*ways)
    except BaseException:
        break_off(writer)
        raise
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        writer.close()


async def splice_streams(plain: Streams, protected: Streams) -> None:
    """Carry bytes both ways until both sides have no more, or the connection breaks; close both."""
    reader, writer = protected

    async def write(data: bytes) -> None:
        writer.write(data)
        await writer.drain()

    try:
        await splice(plain, reader.readexactly, write)
    finally:
        writer.close()


def break_off(writer: asyncio.StreamWriter) -> None:
    """Close a TCP connection so that it does not look like the end of what was sent."""
    with contextlib.suppress(OSError):
        reset = struct.pack("ii", 1, 0)
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    writer.transport.abort()
