"""Ends the task that fills a disk, while there is still some room on it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from pai_scheduler.job.task import TaskRef

from .protocol import Engine

_log = logging.getLogger(__name__)

#: Tasks are ended where less than this part of what is to stay free is free.
_ENDING_PART = 0.5
#: How often it is written down how much each task has, as long as there is room.
_LOOKS_BETWEEN = 10
#: After one task was ended for it: until there may be room again, and the next one is looked for.
_PATIENCE_SECONDS = 5.0
#: A task that has written less is no reason for a full disk.
_LEAST_GROWTH = 2**20


class DiskWatch:
    """Looks at the disks of one machine, and knows how much each task of `engine` had when there was room.

    `part_free` returns what is free there as a part of what is to stay free: 1.0 and more is enough.
    `least_free`: the bytes that are to stay free on the smallest of the disks.
    """

    def __init__(self, engine: Engine, part_free: Callable[[], float], least_free: int) -> None:
        self._engine, self._part_free = engine, part_free
        self._least_growth = min(_LEAST_GROWTH, least_free // 2)
        #: what each task had when there was room, or when the first were seen; None: not known yet
        self._before: Mapping[TaskRef, int] | None = None
        self._looks = 0
        self._patient_until = 0.0

    async def look(self) -> float:
        """Return `part_free`; where that is less than half, end the task that has grown most."""
        part = self._part_free()
        if self._before is None:
            # what runs since before this service does may have all it has for long: nobody is ended for that
            sizes = await self._engine.disk_use()
            self._before = sizes if sizes or part >= 1 else None
        elif part < _ENDING_PART and time.monotonic() >= self._patient_until:
            await self._end_the_fastest(self._before)
        elif part >= 1 and self._looks % _LOOKS_BETWEEN == 0:
            self._before = await self._engine.disk_use()
        self._looks += 1
        return part

    async def _end_the_fastest(self, before: Mapping[TaskRef, int]) -> None:
        now = await self._engine.disk_use()
        growth = {task: size - before.get(task, 0) for task, size in now.items()}
        fastest = max(growth, key=growth.__getitem__, default=None)
        if fastest is None or growth[fastest] < self._least_growth:
            return
        _log.error("a disk is full; ending %s, which has grown by %d bytes", fastest.name, growth[fastest])
        await self._engine.end_for_room(fastest)
        self._before = now
        self._patient_until = time.monotonic() + _PATIENCE_SECONDS
