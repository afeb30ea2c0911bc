"""Brings the service what is to be noted as job events, in order; nobody waits for it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque

from .messages import Note
from .service import ServiceClient, ServiceRefusedError, UnavailableError

#: more than wait while the service is restarted; the oldest are dropped
_MOST = 10_000
#: Seconds between two tries while the service is away, and for the last ones when this process ends.
_AGAIN_SECONDS, _LAST_SECONDS = 2.0, 20.0

_log = logging.getLogger(__name__)


class AuditQueue:
    """A queue, and who carries it. `again`: seconds between two tries."""

    def __init__(self, service: ServiceClient, again: float = _AGAIN_SECONDS) -> None:
        self._service = service
        self._again = again
        self._queue: deque[Note] = deque()
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._carrier = asyncio.create_task(self._carry())

    def add(self, note: Note) -> None:
        """Have something noted as soon as may be."""
        if len(self._queue) >= _MOST:
            self._queue.popleft()
            _log.error("the service has been away for too long: what was opened is not noted any more")
        self._queue.append(note)
        self._empty.clear()
        self._news.set()

    async def close(self, seconds: float = _LAST_SECONDS) -> None:
        """Wait for the last ones, so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._empty.wait()
        except TimeoutError:
            _log.error("the service is away: %d notes are lost", len(self._queue))
        self._carrier.cancel()
        await asyncio.gather(self._carrier, return_exceptions=True)

    async def _carry(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._queue:
                note = self._queue[0]
                if await self._delivered(note) and self._queue and self._queue[0] is note:
                    self._queue.popleft()
            self._empty.set()

    async def _delivered(self, note: Note) -> bool:
        try:
            await self._service.note(note)
        except UnavailableError as error:
            _log.debug("%s", error)
            await asyncio.sleep(self._again)
            return False
        except ServiceRefusedError as error:
            _log.warning("not noted: %s", error)
        return True
