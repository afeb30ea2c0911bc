"""Ports of tasks on another machine, as ports on this one's loopback address."""

from __future__ import annotations

import asyncio
import socket
import zlib
from collections.abc import Awaitable, Callable
from functools import partial

from pai_scheduler.job.task import TaskRef

from .sockets import accept_all

#: the first port on loopback that is chosen, and how many there are: below those that Linux gives out
_PORTS = 22000, 10000
_HOST, _MOST_WAITING = "127.0.0.1", 100

#: Carries a connection to a port of a task; returns when it has ended.
Carry = Callable[[socket.socket, TaskRef, int], Awaitable[None]]


class Tunnels:
    """Listens on loopback for each port of a task that was asked for, and has carried what comes.

    Who may use such a port is decided by what listens at its other end, as it is for the task's own.
    """

    def __init__(self, carry: Carry) -> None:
        self._carry = carry
        #: by task and port: the port on loopback, and who accepts
        self._listening: dict[tuple[TaskRef, int], tuple[int, asyncio.Task[None]]] = {}
        self._open: set[asyncio.Task[None]] = set()

    async def open(self, task: TaskRef, port: int) -> int:
        """Return the port on loopback that leads to a port of a task."""
        if (task, port) not in self._listening:
            listening = _listen(task, port)
            accepting = accept_all(listening, partial(self._take, task, port))
            self._listening[task, port] = listening.getsockname()[1], accepting
        return self._listening[task, port][0]

    def forget(self, task: TaskRef) -> None:
        """Listen for a task no more; what is open goes on."""
        for key in [key for key in self._listening if key[0] == task]:
            self._listening.pop(key)[1].cancel()

    async def close(self) -> None:
        """End all."""
        ending = [*self._open, *(accepting for _, accepting in self._listening.values())]
        self._listening.clear()
        for each in ending:
            each.cancel()
        await asyncio.gather(*ending, return_exceptions=True)

    def _take(self, task: TaskRef, port: int, connection: socket.socket) -> None:
        carrying = asyncio.ensure_future(self._carry(connection, task, port))
        self._open.add(carrying)
        carrying.add_done_callback(self._open.discard)


def _listen(task: TaskRef, port: int) -> socket.socket:
    """Listen at a port that is the same after a restart, unless somebody else has it."""
    first, count = _PORTS
    likely = first + zlib.crc32(f"{task.name}:{port}".encode()) % count
    try:
        return socket.create_server((_HOST, likely), backlog=_MOST_WAITING)
    except OSError:
        return socket.create_server((_HOST, 0), backlog=_MOST_WAITING)
