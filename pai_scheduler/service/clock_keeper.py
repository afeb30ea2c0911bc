"""Has the scheduler's clock go on over a restart: writes down, now and then, where it is."""

from __future__ import annotations

import asyncio
import logging

from pai_scheduler.clock import Clock
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.store.store import Store

from .writer import Writer

_log = logging.getLogger(__name__)

#: Seconds between two looks, and ms by which the clock may have drifted from what is written down.
_LOOK_EVERY, _DRIFT_MS = 60.0, 500


class Timekeeper:
    """Keeps `clock` in the store; it catches up where there is no job whose times that would move."""

    def __init__(self, clock: Clock, store: Store, writer: Writer) -> None:
        self._clock, self._store, self._writer = clock, store, writer
        self._kept = clock.mark()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Go on where the last life of the service was; StoreError."""
        mark, latest = await asyncio.to_thread(self._store.clock_mark)
        self._clock.take_up(mark, latest)
        self._kept = self._clock.mark()
        await asyncio.to_thread(self._store.keep_clock_mark, self._kept)
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Stop, and write down where the clock is."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self.look()

    async def look(self) -> None:
        """Write down where the clock is, unless that is known."""
        if not self._writer.core.jobs:
            self._clock.catch_up()
        mark = self._clock.mark()
        if abs(mark.offset - self._kept.offset) < _DRIFT_MS:
            return
        try:
            await self._writer.keep(self._store.keep_clock_mark, mark)
        except RequestError as error:
            _log.warning("it cannot be written down what time it is: %s", error.message)
        else:
            self._kept = mark

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            await self.look()
