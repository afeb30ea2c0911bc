"""The Hub, the storage and the SSH gateway as this node's containers reach them: ports on its own bridge.

The scheduler connects to its agents, never the other way round. So a connection from a container waits here
until the scheduler, told of it with the other news, comes and takes it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from functools import partial

from tornado.netutil import bind_sockets

from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.engine.swarm.protocol import Caller
from pai_scheduler.engine.swarm.tunnel import accept_all, reset_at_close
from pai_scheduler.i18n import msg

#: How long (seconds) a connection waits, and how many may at once.
_WAIT_SECONDS, _MOST_WAITING = 15.0, 1024

_log = logging.getLogger(__name__)


class FrontDoor:
    """Listens at `ports` of `address`. `on_caller` is called with each connection that waits."""

    def __init__(self, address: str, ports: Sequence[int], on_caller: Callable[[Caller], None]) -> None:
        self._address, self._ports, self._on_caller = address, ports, on_caller
        self._accepting: list[asyncio.Task[None]] = []
        self._waiting: dict[str, socket.socket] = {}

    async def open(self) -> None:
        """Begin to listen; EngineError where something else does."""
        for port in self._ports:
            try:
                listening = bind_sockets(port, self._address)
            except OSError as error:
                await self.close()
                raise EngineError(
                    msg(
                        "Containers cannot be let in at {address}:{port}: {why}. "
                        "Choose another port for the Hub, the scheduler or its SSH gateway.",
                        address=self._address,
                        port=port,
                        why=str(error),
                    )
                ) from error
            self._accepting += [accept_all(each, partial(self._receive, port)) for each in listening]

    async def close(self) -> None:
        """Listen no more; nobody who still waits is let in."""
        for accepting in self._accepting:
            accepting.cancel()
        await asyncio.gather(*self._accepting, return_exceptions=True)
        for connection in self._waiting.values():
            _break_off(connection)
        self._waiting.clear()

    def take(self, caller: str) -> socket.socket | None:
        """Return the connection of this name; None where it waits no more."""
        return self._waiting.pop(caller, None)

    def _receive(self, port: int, connection: socket.socket) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            _log.warning("more than %d connections of containers wait, one is refused", _MOST_WAITING)
            _break_off(connection)
            return
        caller = Caller(secrets.token_hex(16), port)
        self._waiting[caller.name] = connection
        asyncio.get_running_loop().call_later(_WAIT_SECONDS, self._give_up, caller.name)
        self._on_caller(caller)

    def _give_up(self, caller: str) -> None:
        if (waiting := self._waiting.pop(caller, None)) is not None:
            _break_off(waiting)


def _break_off(connection: socket.socket) -> None:
    """Close a connection so that it does not look like an answer without bytes."""
    reset_at_close(connection)
    connection.close()
