"""Removes what is kept of tasks that ended long ago: in the background, a little at a time."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

_log = logging.getLogger(__name__)

_DAY_SECONDS = 24 * 3600.0
#: How often everything is gone through, how many entries at once, and the part of the time that it may take.
_PASS_SECONDS, _SLICE, _SHARE = 6 * 3600.0, 500, 0.02
#: A removal goes on under this name, so that nobody reads half a log, and the next pass finishes it.
_REMOVING = ".removing-"


async def keep_clean(folder: Path, keep_days: float, in_use: Callable[[str], bool]) -> None:
    """Remove the folders in `folder` whose own last change is `keep_days` ago; for ever, until cancelled.

    A folder's last change is when its task was released. Those that are `in_use` stay (asked from a thread).
    """
    while True:
        try:
            slices = sweep(folder, time.time() - keep_days * _DAY_SECONDS, in_use)
            while True:
                begin = time.monotonic()
                if await asyncio.to_thread(next, slices, True):
                    break
                await asyncio.sleep((time.monotonic() - begin) / _SHARE)
        except OSError:
            _log.warning("old logs in %s cannot be removed", folder, exc_info=True)
        await asyncio.sleep(_PASS_SECONDS)


def sweep(folder: Path, before: float, in_use: Callable[[str], bool]) -> Iterator[bool]:
    """Go through `folder` once, in slices; give False after each. `before`: seconds since the epoch."""
    with os.scandir(folder) as entries:
        for number, entry in enumerate(entries, start=1):
            if number % _SLICE == 0:
                yield False
            if entry.name.startswith(_REMOVING):
                shutil.rmtree(entry.path, ignore_errors=True)
                continue
            with contextlib.suppress(FileNotFoundError):  # its job was deleted meanwhile
                if entry.stat(follow_symlinks=False).st_mtime >= before or in_use(entry.name):
                    continue
                removing = folder / f"{_REMOVING}{entry.name}"
                Path(entry.path).rename(removing)
                shutil.rmtree(removing, ignore_errors=True)
                yield False
