"""What every connection server is: it serves the connections that it is given until the scheduler is gone."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from typing import Any, Protocol

from .protocol import PassedOn, ended_line, receive

#: Seconds that the last steps may take.
_LAST_SECONDS = 5.0


class Server(Protocol):
    """Serves connections, each under a number; `tell_ended` is to be called with it at the end of each."""

    def take(self, number: int, connection: socket.socket, about: Any) -> None:
        """Begin to serve a connection, which is the server's to close."""

    def break_off(self, number: int) -> None:
        """End a connection, unless it has ended."""


def run(open_server: Callable[[bytes], AbstractAsyncContextManager[Server]]) -> int:
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


async def _serve(channel: socket.socket, opening: AbstractAsyncContextManager[Server]) -> None:
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
