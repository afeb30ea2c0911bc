"""Watcher of the engine's events and nodes, and keeper of the scheduler's clock over a restart."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from pai_scheduler.clock import Clock
from pai_scheduler.core.events import NodesChanged
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.monitoring.meters import Meters
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.store.store import Store

from .current_cluster import CurrentCluster
from .writer import Writer

# Has the scheduler's clock go on over a restart: writes down, now and then, where it is.

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


# Hands on what the engine tells: changes of its nodes, and what becomes of tasks.


class EngineEvents:
    """Reads the engine's events, from `start` to `close`."""

    def __init__(
        self, engine: Engine, cluster: CurrentCluster, writer: Writer, meters: Meters, clock: Clock
    ) -> None:
        self._engine, self._cluster, self._writer = engine, cluster, writer
        self._meters, self._clock = meters, clock
        self._reading: asyncio.Task[None] | None = None

    @property
    def arrive(self) -> bool | None:
        """Return whether the engine still tells what happens; None before it is asked to."""
        return None if self._reading is None else not self._reading.done()

    def start(self) -> None:
        """Begin to read."""
        self._reading = asyncio.create_task(self._read())

    async def close(self) -> None:
        """Stop reading."""
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.gather(self._reading, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for event in self._engine.events():
                if isinstance(event, NodesChanged):
                    self._cluster.set_nodes(event.nodes)
                    self._meters.note_nodes(self._cluster.nodes)
                    self._writer.report(NodesChanged(self._clock(), self._cluster.nodes))
                else:
                    # an engine tells times by the machine's clock
                    self._writer.report(replace(event, time=self._clock.of_wall(event.time)))
        except Exception:
            _log.critical("the engine tells no more what happens; start the scheduler again", exc_info=True)
            raise
