"""A connection server for tests: it says who it is and what it was told, and sends back what comes."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from pai_scheduler.workers.protocol import run, tell, tell_ended


class Greeter:
    """`settings`: what was said to it at its start. A connection about `die` is its end."""

    def __init__(self, settings: bytes) -> None:
        self._settings = settings
        self._serving: dict[int, asyncio.Task[None]] = {}

    def take(self, number: int, connection: socket.socket, about: str) -> None:
        if about == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        connection.setblocking(False)
        self._serving[number] = asyncio.create_task(self._greet(number, connection, about))

    def break_off(self, number: int) -> None:
        self._serving[number].cancel()

    async def _greet(self, number: int, connection: socket.socket, about: str) -> None:
        loop = asyncio.get_running_loop()
        with connection, suppress(OSError):
            tell(f"a greeting of {about}\n".encode())
            await loop.sock_sendall(connection, f"{os.getpid()} {self._settings.decode()}".encode())
            while data := await loop.sock_recv(connection, 2**16):
                await loop.sock_sendall(connection, data)
        tell_ended(number)


@asynccontextmanager
async def _open(settings: bytes) -> AsyncIterator[Greeter]:
    yield Greeter(settings)


if __name__ == "__main__":
    sys.exit(run(_open))
