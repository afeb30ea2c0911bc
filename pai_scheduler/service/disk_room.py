"""Room on the disk of the data folder: takes no new work where it runs out, and ends first what fills it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path

from pai_scheduler.data_folder.room import least_free
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.execution.writer import Writer
from pai_scheduler.job.messages import Message, msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.store.store import Store

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
#: How often it is written down how much each task has, as long as there is room.
_LOOKS_BETWEEN = 10
#: After one task was ended for it: until there may be room again, and the next one is looked for.
_PATIENCE_SECONDS = 5.0
#: Tasks are ended below this part of what is to be free.
_ENDING_PART = 0.5
#: A task that has written less is no reason for a full disk.
_LEAST_GROWTH = 2**20
_MB = 2**20


class DiskRoom:
    """Watches the disk that holds `folder`; `least_free_mb` of it are to stay free (0: it is not watched).

    Below that no job is taken; below half of it the task that has grown most since there was room is ended.
    The `writer` keeps room in the database for what must be written all the same.
    """

    def __init__(
        self,
        folder: Path,
        least_free_mb: int,
        engine: Engine,
        store: Store,
        writer: Writer,
    ) -> None:
        self._folder, self._engine, self._store, self._writer = folder, engine, store, writer
        self.least_free = least_free(folder, least_free_mb)
        #: what each task had when there was room
        self._before: Mapping[TaskRef, int] = {}
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Keep the reserve, and begin to watch."""
        if self.least_free:
            await self._reserve()
            self._watching = asyncio.create_task(self._watch())

    async def close(self) -> None:
        """Stop watching."""
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    def shortage(self) -> Message | None:
        """Return a sentence that the disk is too full for new work; None where it is not. Looks now."""
        free = self._free()
        if free >= self.least_free:
            return None
        return msg(
            "The disk of the scheduler's data folder {folder} is almost full: {free} MB are free, and below "
            "{least} MB it takes no new jobs. Delete jobs whose logs or files are not needed any more, or "
            "ask the administrator for room. Jobs can be stopped and deleted as always.",
            folder=str(self._folder),
            free=free // _MB,
            least=-(-self.least_free // _MB),
        )

    def _free(self) -> int:
        return shutil.disk_usage(self._folder).free

    async def _watch(self) -> None:
        looks = 0
        while True:
            try:
                free = self._free()
                if free < self.least_free * _ENDING_PART:
                    if await self._end_the_fastest():
                        await asyncio.sleep(_PATIENCE_SECONDS)
                elif free >= self.least_free and looks % _LOOKS_BETWEEN == 0:
                    self._before = await self._engine.disk_use()
                    await self._reserve()
            except Exception:
                _log.exception("the disk cannot be watched; trying again")
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _end_the_fastest(self) -> bool:
        """End the task that has grown most since there was room; False where none has."""
        now = await self._engine.disk_use()
        growth = {task: size - self._before.get(task, 0) for task, size in now.items()}
        fastest = max(growth, key=growth.__getitem__, default=None)
        if fastest is None or growth[fastest] < min(_LEAST_GROWTH, self.least_free // 2):
            return False
        _log.error("the disk is full; ending %s, which has grown by %d bytes", fastest.name, growth[fastest])
        await self._engine.end_for_room(fastest)
        self._before = now
        return True

    async def _reserve(self) -> None:
        try:
            await self._writer.keep(self._store.keep_reserve, self.least_free)
        except RequestError as error:
            _log.warning("the database keeps no room for a full disk: %s", error)
