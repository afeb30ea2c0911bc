"""Keeps the file servers running while the scheduler runs, and gives each connection to one of them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress

from pai_scheduler.api.webhdfs.handover import Transfer

from .messages import Ended, Report, Settings, pass_on, read_report

#: Seconds: the pause after a process that died, at first and at most, and after which one has lasted.
_FIRST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS, _LASTED_SECONDS = 0.1, 30.0, 60.0
#: Seconds that a connection waits where no process runs.
_PATIENCE_SECONDS = 30.0
#: Seconds in which a process ends whose scheduler is gone.
_LAST_SECONDS = 10.0
_MOST_PROCESSES = 4

_log = logging.getLogger(__name__)


class FileServerProcesses:
    """Starts `processes` of them (None: one for each core, 4 at most); `count` gets their reports."""

    def __init__(
        self, settings: Settings, count: Callable[[Report], None], processes: int | None = None
    ) -> None:
        self._settings, self._count = settings, count
        self._wanted = processes or min(_MOST_PROCESSES, os.cpu_count() or 1)
        self._running: set[_FileServer] = set()
        self._changed = asyncio.Event()
        self._keepers: list[asyncio.Task[None]] = []

    @property
    def process_ids(self) -> list[int]:
        """The processes that run now."""
        return sorted(server.process.pid for server in self._running)

    def start(self) -> None:
        """Start them; who comes meanwhile waits."""
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self._wanted)]

    async def close(self) -> None:
        """End them; what is being transferred is broken off."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def serve(self, connection: socket.socket, transfer: Transfer) -> None:
        """Have a request answered; return when its connection has ended, whatever became of it."""
        with connection:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    while not self._running:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                _log.error("no file server runs: a connection is closed")
                return
            server = min(self._running, key=lambda server: server.load)
            ended = await server.take(connection, transfer)
        await ended

    async def _keep(self) -> None:
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE_SECONDS
        while True:
            begun = loop.time()
            code = await self._run()
            if loop.time() - begun > _LASTED_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            _log.error("a file server ended with %s; another one starts in %g s", code, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_SECONDS)

    async def _run(self) -> int | None:
        """Run one process to its end; when this is cancelled, it is told that the scheduler is gone."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", str(__package__), str(theirs.fileno())),
                    stdin=PIPE,
                    stdout=PIPE,
                    pass_fds=[theirs.fileno()],
                    # ^C in the scheduler's terminal is not for it
                    start_new_session=True,
                    cwd="/",
                )
            server = _FileServer(process, ours)
            try:
                await server.begin(self._settings)
                self._running.add(server)
                self._changed.set()
                await server.listen(self._count)
            finally:
                self._running.discard(server)
                server.forget()
                # it ends by itself when it sees that, and lets go of what it writes
                ours.close()
                await _end(process)
        return process.returncode


async def _end(process: Process) -> None:
    try:
        async with asyncio.timeout(_LAST_SECONDS):
            await process.wait()
    except TimeoutError:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


class _FileServer:
    """One process, and the connections that it has."""

    def __init__(self, process: Process, channel: socket.socket) -> None:
        self.process = process
        self._channel = channel
        self._turn = asyncio.Lock()
        self._number = 0
        self._serving: dict[int, asyncio.Future[None]] = {}

    @property
    def load(self) -> int:
        """How many connections it has."""
        return len(self._serving)

    async def begin(self, settings: Settings) -> None:
        """Send it its settings."""
        if self.process.stdin is not None:
            self.process.stdin.write(settings.to_line())
            await self.process.stdin.drain()

    async def take(self, connection: socket.socket, transfer: Transfer) -> asyncio.Future[None]:
        """Pass a connection on; return what is done when it has ended."""
        self._number += 1
        number = self._number
        ended = self._serving[number] = asyncio.get_running_loop().create_future()
        try:
            # two messages must not be mixed
            async with self._turn:
                await pass_on(self._channel, number, connection, transfer)
        except OSError:
            self._end(number)  # its process has just died
        return ended

    async def listen(self, count: Callable[[Report], None]) -> None:
        """Take its reports until it ends."""
        if self.process.stdout is None:
            return
        async for line in self.process.stdout:
            report = read_report(line)
            if isinstance(report, Ended):
                self._end(report.number)
            else:
                count(report)

    def forget(self) -> None:
        """Note that all its connections are gone with it."""
        for number in list(self._serving):
            self._end(number)

    def _end(self, number: int) -> None:
        ended = self._serving.pop(number, None)
        if ended is not None and not ended.done():
            ended.set_result(None)
