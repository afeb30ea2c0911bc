"""Ports of tasks on another machine, as ports on this one's loopback address."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import Awaitable, Callable

from pai_scheduler.job.task import TaskRef

from .connection import AgentUnreachableError
from .splice import Streams, splice_streams

#: the first port on loopback that is chosen, and how many there are: below those that Linux gives out
_PORTS = 22000, 10000

_log = logging.getLogger(__name__)

Connect = Callable[[TaskRef, int], Awaitable[Streams]]


class Tunnels:
    """Listens on loopback for each port of a task that was asked for, and passes on what comes.

    Who may use such a port is decided by what listens at its other end, as it is for the task's own.
    """

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._servers: dict[tuple[TaskRef, int], asyncio.Server] = {}
        self._opening = asyncio.Lock()
        self._open: set[asyncio.Task[None]] = set()

    async def open(self, task: TaskRef, port: int) -> int:
        """Return the port on loopback that leads to a port of a task."""
        async with self._opening:
            if (task, port) not in self._servers:

                async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                    passing = asyncio.create_task(self._pass_on((reader, writer), task, port))
                    self._open.add(passing)
                    passing.add_done_callback(self._open.discard)

                self._servers[task, port] = await _listen(accept, task, port)
            return int(self._servers[task, port].sockets[0].getsockname()[1])

    def forget(self, task: TaskRef) -> None:
        """Listen for a task no more; what is open goes on."""
        for key in [key for key in self._servers if key[0] == task]:
            self._servers.pop(key).close()

    async def close(self) -> None:
        """End all."""
        for server in self._servers.values():
            server.close()
        self._servers.clear()
        for passing in self._open:
            passing.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _pass_on(self, near: Streams, task: TaskRef, port: int) -> None:
        try:
            far = await self._connect(task, port)
        except AgentUnreachableError as error:
            _log.warning("a connection to a task failed: %s", error)
            near[1].close()
            return
        try:
            await splice_streams(near, far)
        except (OSError, EOFError) as error:
            _log.info("a connection to a task broke off: %s", error)


async def _listen(
    accept: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]], task: TaskRef, port: int
) -> asyncio.Server:
    """Listen at a port that is the same after a restart, unless somebody else has it."""
    first, count = _PORTS
    likely = first + zlib.crc32(f"{task.name}:{port}".encode()) % count
    try:
        return await asyncio.start_server(accept, "127.0.0.1", likely)
    except OSError:
        return await asyncio.start_server(accept, "127.0.0.1", 0)
