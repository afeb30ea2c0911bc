"""Hands on what the engine tells: changes of its nodes, and what becomes of tasks."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from pai_scheduler.clock import Clock
from pai_scheduler.core.events import NodesChanged
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.monitoring.meters import Meters

from .current_cluster import CurrentCluster
from .writer import Writer

_log = logging.getLogger(__name__)


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
