"""Keeps the gateway's processes running while the scheduler runs; they outlive it while somebody is in."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

from tornado.netutil import bind_sockets

from .protocol import GatewaySettings

#: Seconds: the pause after a process that died, at first and at most, and after which one has lasted.
_FIRST_PAUSE_SECONDS, _MOST_PAUSE_SECONDS, _LASTED_SECONDS = 0.1, 30.0, 60.0
#: the processes of a scheduler that has just ended let go of the port within this time
_TAKEN_TRIES, _TAKEN_SECONDS = 20, 0.1
_MOST_PROCESSES = 4
#: what a process reads before the end of its standard input when others take its place
_REPLACED = b"replaced\n"

_log = logging.getLogger(__name__)


class PortTakenError(Exception):
    """The port that was asked for is another program's; `port` says which."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"port {port} of {host} is taken")
        self.host, self.port = host, port


class GatewaySupervisor:
    """Starts the processes at one address. `port` is where they listen, once `listen` has been awaited.

    `asked`: that port or none; otherwise a taken one is given up for a free one. `sockets` of `settings` are
    filled in here.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        host: str,
        port: int,
        *,
        asked: bool = False,
        processes: int | None = None,
    ) -> None:
        self.port = port
        self._settings = settings
        self.host = host
        self._asked = asked
        self._count = processes or min(_MOST_PROCESSES, os.cpu_count() or 1)
        self._sockets: list[socket.socket] = []
        self._processes: set[subprocess.Popen[bytes]] = set()
        self._keepers: list[asyncio.Task[None]] = []
        #: of processes that new ones have replaced, until they know it
        self._replaced: set[asyncio.Task[None]] = set()

    @property
    def process_ids(self) -> list[int]:
        """The processes that run now."""
        return sorted(process.pid for process in self._processes)

    async def listen(self) -> None:
        """Take the port; who comes waits. PortTakenError, OSError where that address cannot be had."""
        self._sockets = await self._at_own_host()
        self.port = int(self._sockets[0].getsockname()[1])

    async def start(self, also: str | None = None) -> None:
        """Start the processes, and listen unless we do. `also`: another address, if it can be had."""
        if not self._sockets:
            await self.listen()
        if also is not None:
            try:
                self._sockets += await self._bind(also)
            except OSError as error:
                _log.warning(
                    "containers do not reach the SSH gateway at %s, port %d: %s",
                    *(also, self.port, error.strerror),
                )
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self._count)]
        _log.info("SSH gateway at %s, port %d", self.host, self.port)

    def renew(self) -> None:
        """Replace the processes by new ones, as they are installed now; nobody who comes is refused.

        Those before take no new ones, let those log in who have come, and end with their last client.
        """
        if not self._keepers:
            return  # not started yet, or closed
        for process in self._processes:
            if process.stdin is not None:
                with suppress(BrokenPipeError):
                    process.stdin.write(_REPLACED)
                    process.stdin.flush()
        before = self._keepers
        self._keepers = [asyncio.create_task(self._keep()) for _ in range(self._count)]
        self._replaced.update(before)
        for keeper in before:
            keeper.add_done_callback(self._replaced.discard)
            keeper.cancel()
        _log.info("the processes of the SSH gateway are replaced; what is open goes on")

    async def close(self) -> None:
        """Tell the processes to accept no new connections; each ends with its last client."""
        keepers = [*self._keepers, *self._replaced]
        self._keepers = []
        for keeper in keepers:
            keeper.cancel()
        await asyncio.gather(*keepers, return_exceptions=True)
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    async def _at_own_host(self) -> list[socket.socket]:
        try:
            return await self._bind(self.host)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
        if self._asked:
            raise PortTakenError(self.host, self.port)
        _log.warning("port %d of %s is taken: the SSH gateway takes a free one", self.port, self.host)
        return bind_sockets(0, self.host)

    async def _bind(self, host: str) -> list[socket.socket]:
        for _ in range(_TAKEN_TRIES - 1):
            try:
                return bind_sockets(self.port, host, reuse_port=False)
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise
                await asyncio.sleep(_TAKEN_SECONDS)
        return bind_sockets(self.port, host, reuse_port=False)

    async def _keep(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            begun = asyncio.get_running_loop().time()
            code = await self._run()
            if asyncio.get_running_loop().time() - begun > _LASTED_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            _log.error("a process of the SSH gateway ended with %d; another one starts in %g s", code, pause)
            await asyncio.sleep(pause)
            pause = min(2 * pause, _MOST_PAUSE_SECONDS)

    async def _run(self) -> int:
        """Run one process to its end; when this is cancelled, it is told that the scheduler is gone."""
        process = self._spawn()
        self._processes.add(process)
        ended = os.pidfd_open(process.pid)
        try:
            await _readable(ended)
        finally:
            self._processes.discard(process)
            if process.stdin is not None:
                process.stdin.close()
            # it ends in its own time, and is nobody's zombie
            asyncio.get_running_loop().add_reader(ended, _reap, process, ended)
        return process.wait()

    def _spawn(self) -> subprocess.Popen[bytes]:
        numbers = [listening.fileno() for listening in self._sockets]
        # asyncio's own would kill it when it goes away itself
        process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own module
            [sys.executable, "-P", "-m", str(__package__)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            pass_fds=numbers,
            # ^C in the scheduler's terminal is not for it
            start_new_session=True,
            cwd="/",
        )
        if process.stdin is not None:
            with suppress(BrokenPipeError):
                process.stdin.write(replace(self._settings, sockets=numbers).to_line())
                process.stdin.flush()
        return process


async def _readable(descriptor: int) -> None:
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(descriptor, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(descriptor)


def _reap(process: subprocess.Popen[bytes], ended: int) -> None:
    asyncio.get_running_loop().remove_reader(ended)
    os.close(ended)
    process.wait()
