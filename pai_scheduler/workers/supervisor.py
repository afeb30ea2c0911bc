"""Keeps connection servers of one kind running while the scheduler runs, and gives each connection to one."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable
from contextlib import suppress

from .protocol import break_off, pass_on, read_ended

#: Seconds: the pause after a process that died, at first and at most, and after which one has lasted.
_FIRST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS, _LASTED_SECONDS = 0.1, 30.0, 60.0
#: Seconds that a connection waits where no process runs.
_PATIENCE_SECONDS = 30.0
#: Seconds in which a process ends whose scheduler is gone.
_LAST_SECONDS = 10.0
_MOST_PROCESSES = 4

_log = logging.getLogger(__name__)


class ConnectionServers:
    """Runs `module` in `processes` processes (None: one for each core, 4 at most).

    `name` is what the log calls one of them. Each begins with `settings`, which is a line. `on_report` gets
    the lines that they write, less those that say that a connection has ended.
    """

    def __init__(
        self,
        name: str,
        module: str,
        settings: bytes,
        processes: int | None = None,
        on_report: Callable[[bytes], None] = lambda _: None,
    ) -> None:
        self._name, self._module, self._settings, self._on_report = name, module, settings, on_report
        self._wanted = processes or min(_MOST_PROCESSES, os.cpu_count() or 1)
        self._running: set[_ConnectionServer] = set()
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
        """End them; what goes on is broken off."""
        for keeper in self._keepers:
            keeper.cancel()
        await asyncio.gather(*self._keepers, return_exceptions=True)

    async def serve(self, connection: socket.socket, about: object) -> None:
        """Have a connection served; return when it has ended, whatever became of it.

        It is broken off where this is cancelled. `about` can be pickled.
        """
        with connection:
            try:
                async with asyncio.timeout(_PATIENCE_SECONDS):
                    while not self._running:
                        self._changed.clear()
                        await self._changed.wait()
            except TimeoutError:
                _log.error("no %s runs: a connection is closed", self._name)
                return
            server = min(self._running, key=lambda server: server.load)
            number, ended = server.take(connection.dup(), about)
        try:
            await ended
        except asyncio.CancelledError:
            server.break_off(number)
            raise

    async def _keep(self) -> None:
        loop, pause = asyncio.get_running_loop(), _FIRST_PAUSE_SECONDS
        while True:
            begun = loop.time()
            try:
                how = f"ended with {await self._run()}"
            except OSError as error:
                how = f"cannot be started: {error}"
            if loop.time() - begun > _LASTED_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            _log.error("a %s %s; another one starts in %g s", self._name, how, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_SECONDS)

    async def _run(self) -> int | None:
        """Run one process to its end; when this is cancelled, it is told that the scheduler is gone."""
        ours, theirs = socket.socketpair()
        with ours:
            ours.setblocking(False)
            with theirs:
                process = await asyncio.create_subprocess_exec(
                    *(sys.executable, "-P", "-m", self._module, str(theirs.fileno())),
                    stdin=PIPE,
                    stdout=PIPE,
                    pass_fds=[theirs.fileno()],
                    # ^C in the scheduler's terminal is not for it
                    start_new_session=True,
                    cwd="/",
                )
            server = _ConnectionServer(process, ours)
            try:
                await server.begin(self._settings)
                self._running.add(server)
                self._changed.set()
                await server.listen(self._on_report)
            finally:
                self._running.discard(server)
                await server.forget()
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


class _ConnectionServer:
    """One process, and the connections that it has."""

    def __init__(self, process: Process, channel: socket.socket) -> None:
        self.process = process
        self._channel = channel
        self._number = 0
        self._serving: dict[int, asyncio.Future[None]] = {}
        #: number, socket and what is to be known of it; no socket: it is to be broken off
        self._messages: asyncio.Queue[tuple[int, socket.socket | None, object]] = asyncio.Queue()
        self._sending: asyncio.Task[None] | None = None

    @property
    def load(self) -> int:
        """Return the number of its connections."""
        return len(self._serving)

    async def begin(self, settings: bytes) -> None:
        """Send it its settings, then whatever there is to send."""
        if self.process.stdin is not None:
            self.process.stdin.write(settings)
            await self.process.stdin.drain()
        self._sending = asyncio.create_task(self._send())

    def take(self, connection: socket.socket, about: object) -> tuple[int, asyncio.Future[None]]:
        """Pass a connection on; return its number, and what is done when it has ended."""
        self._number += 1
        ended = self._serving[self._number] = asyncio.get_running_loop().create_future()
        self._messages.put_nowait((self._number, connection, about))
        return self._number, ended

    def break_off(self, number: int) -> None:
        """Have a connection broken off, unless it has ended."""
        if self._serving.pop(number, None) is not None:
            self._messages.put_nowait((number, None, None))

    async def listen(self, on_report: Callable[[bytes], None]) -> None:
        """Take its reports until it ends."""
        if self.process.stdout is None:
            return
        async for line in self.process.stdout:
            if (number := read_ended(line)) is not None:
                self._end(number)
            else:
                on_report(line)

    async def forget(self) -> None:
        """Note that all its connections are gone with it."""
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)
        while not self._messages.empty():
            _, connection, _ = self._messages.get_nowait()
            if connection is not None:
                connection.close()
        for number in list(self._serving):
            self._end(number)

    async def _send(self) -> None:
        """Send one message after the other, whole: two must not be mixed."""
        while True:
            number, connection, about = await self._messages.get()
            try:
                if connection is None:
                    await break_off(self._channel, number)
                    continue
                with connection:
                    await pass_on(self._channel, number, connection, about)
            except OSError:
                self._end(number)  # its process has just died

    def _end(self, number: int) -> None:
        ended = self._serving.pop(number, None)
        if ended is not None and not ended.done():
            ended.set_result(None)
