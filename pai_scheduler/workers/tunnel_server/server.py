"""A tunnel server: takes connections one after another, and carries each to its far end and back."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable

from pai_scheduler.engine.swarm.tunnel import FarEnd, splice

from .reach import reach

_log = logging.getLogger(__name__)


class TunnelServer:
    """Speaks to agents by `tls` (None in tests only); `ended` gets the number of each ended connection."""

    def __init__(self, tls: ssl.SSLContext | None, ended: Callable[[int], None]) -> None:
        self._tls, self._ended = tls, ended
        self._carrying: dict[int, asyncio.Task[None]] = {}

    def take(self, number: int, connection: socket.socket, about: FarEnd) -> None:
        """Begin to carry a connection, and close it at the end."""
        self._carrying[number] = asyncio.create_task(self._carry(connection, about))
        self._carrying[number].add_done_callback(lambda _: self._end(number))

    def break_off(self, number: int) -> None:
        """Break off a connection, unless it has ended."""
        if (carrying := self._carrying.get(number)) is not None:
            carrying.cancel()

    async def close(self) -> None:
        """Break off all."""
        carrying = list(self._carrying.values())
        for each in carrying:
            each.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)

    def _end(self, number: int) -> None:
        del self._carrying[number]
        self._ended(number)

    async def _carry(self, connection: socket.socket, far: FarEnd) -> None:
        with connection:
            try:
                protected, begun = await reach(far, self._tls)
            except OSError as error:
                _log.warning("%s failed: %s", far.what, error)
                return
            try:
                await splice(connection, protected, begun)
            except OSError as error:
                _log.info("%s broke off: %s", far.what, error)
