"""Room on the disk of the data folder: takes no new work where it runs out, and ends first what fills it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from pathlib import Path

from pai_scheduler.data_folder.room import least_free
from pai_scheduler.engine.disk_usage import DiskWatch
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.store.store import Store

from .writer import Writer

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 1.0
#: How often the database's reserve is looked after, as long as there is room.
_LOOKS_BETWEEN = 10
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
        self._folder, self._store, self._writer = folder, store, writer
        self.least_free = least_free(folder, least_free_mb)
        self._disk = DiskWatch(engine, lambda: self._free() / self.least_free, self.least_free)
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
                has_room = await self._disk.look() >= 1
                if has_room and looks % _LOOKS_BETWEEN == 0:
                    await self._reserve()
            except Exception:
                _log.exception("the disk cannot be watched; trying again")
            looks += 1
            await asyncio.sleep(_LOOK_SECONDS)

    async def _reserve(self) -> None:
        try:
            await self._writer.keep(self._store.keep_reserve, self.least_free)
        except RequestError as error:
            _log.warning("the database keeps no room for a full disk: %s", error)
