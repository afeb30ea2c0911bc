"""The disks of a node: says when hardly any room is left there, and ends the task that fills them."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path

from pai_scheduler.data_folder.room import least_free
from pai_scheduler.engine.disk_watch import DiskWatch
from pai_scheduler.engine.protocol import Engine

_LOOK_SECONDS = 1.0

_log = logging.getLogger(__name__)


class NodeDisks:
    """Watches the disks that hold `folders`, of each of which `least_free_mb` are to stay free."""

    def __init__(self, folders: Iterable[Path], least_free_mb: int, engine: Engine) -> None:
        self._least = {folder: least for folder in folders if (least := least_free(folder, least_free_mb))}
        self._watch = DiskWatch(engine, self._part_free, min(self._least.values(), default=0))
        self.is_full = self._part_free() < 1

    async def watch(self, on_change: Callable[[], Awaitable[None]]) -> None:
        """Look again and again; `on_change` is called when a disk has become full, or has room again."""
        while self._least:
            await asyncio.sleep(_LOOK_SECONDS)
            try:
                is_full = await self._watch.look() < 1
                if is_full != self.is_full:
                    self.is_full = is_full
                    _log.warning(_WORDS[is_full])
                    await on_change()
            except Exception:
                _log.exception("the disks cannot be watched; trying again")

    def _part_free(self) -> float:
        parts = (shutil.disk_usage(folder).free / least for folder, least in self._least.items())
        return min(parts, default=1.0)


_WORDS = {True: "hardly any room is left on a disk", False: "there is room on the disks again"}
