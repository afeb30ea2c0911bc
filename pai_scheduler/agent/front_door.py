"""The Hub and the storage as this node's containers reach them: a port on the node's own bridge.

The scheduler connects to its agents, never the other way round. So a connection from a container waits here
until the scheduler, told of it with the other news, comes and takes it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable

from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.job.messages import msg

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]

#: How long (seconds) a connection waits, and how many may at once.
_WAIT_SECONDS, _MOST_WAITING = 15.0, 1024

_log = logging.getLogger(__name__)


class FrontDoor:
    """Listens at `address`:`port`. `on_caller` is called with the name of each connection that waits."""

    def __init__(self, address: str, port: int, on_caller: Callable[[str], None]) -> None:
        self._address, self._port, self._on_caller = address, port, on_caller
        self._server: asyncio.Server | None = None
        self._waiting: dict[str, Streams] = {}

    async def open(self) -> None:
        """Begin to listen; EngineError where something else does."""
        try:
            self._server = await asyncio.start_server(self._receive, self._address, self._port)
        except OSError as error:
            raise EngineError(
                msg(
                    "Containers cannot be let in at {address}:{port}: {why}. "
                    "Choose another port for the Hub, or for the scheduler.",
                    address=self._address,
                    port=self._port,
                    why=str(error),
                )
            ) from error

    def close(self) -> None:
        """Listen no more; nobody who still waits is let in."""
        if self._server is not None:
            self._server.close()
        for _, writer in self._waiting.values():
            writer.transport.abort()
        self._waiting.clear()

    def take(self, caller: str) -> Streams | None:
        """Return the connection of this name; None where it waits no more."""
        return self._waiting.pop(caller, None)

    def _receive(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._waiting) >= _MOST_WAITING:
            _log.warning("more than %d connections of containers wait, one is refused", _MOST_WAITING)
            writer.transport.abort()
            return
        caller = secrets.token_hex(16)
        self._waiting[caller] = reader, writer
        asyncio.get_running_loop().call_later(_WAIT_SECONDS, self._give_up, caller)
        self._on_caller(caller)

    def _give_up(self, caller: str) -> None:
        if (waiting := self._waiting.pop(caller, None)) is not None:
            waiting[1].transport.abort()
