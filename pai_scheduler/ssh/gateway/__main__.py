"""Runs one process of the gateway: `python -m pai_scheduler.ssh.gateway`, as the supervisor starts it."""

from __future__ import annotations

import asyncio
import logging
import resource
import signal
import socket
import sys
from functools import partial

from pai_scheduler import logging_config

from .protocol import GatewaySettings
from .server import GatewayServer


def main() -> int:
    """Run until the scheduler is gone and the last connection has ended."""
    line = sys.stdin.buffer.readline()
    if not line:
        return 0
    settings = GatewaySettings.from_line(line)
    logging_config.set_up(settings.log_level, settings.log_format)
    # it says each step of each login, and `info` is for what administrators read
    logging.getLogger("asyncssh").setLevel(logging.WARNING)
    for chatty in ("httpx", "httpcore"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    # ^C is for the scheduler, whose end we see
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    asyncio.run(_run(settings))
    return 0


async def _run(settings: GatewaySettings) -> None:
    alone, replaced = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(partial(_UntilEnd, alone, replaced), sys.stdin.buffer)
    sockets = [socket.socket(fileno=number) for number in settings.sockets]
    await GatewayServer(settings, sockets).run(alone, replaced)


class _UntilEnd(asyncio.Protocol):
    """Sees the end of the standard input: the scheduler holds its other end.

    What the scheduler writes before that says that it is still there, and has started others.
    """

    def __init__(self, ended: asyncio.Event, replaced: asyncio.Event) -> None:
        self._ended, self._replaced = ended, replaced

    def data_received(self, _data: bytes) -> None:
        """Note that others take the new connections."""
        self._replaced.set()

    def connection_lost(self, _error: Exception | None) -> None:
        """Note that the input has ended."""
        self._ended.set()


if __name__ == "__main__":
    sys.exit(main())
