"""Usage of the cluster: GPUs that were taken, minute by minute, over the last day.

What is kept is bounded: `MOST` samples in memory, and twice as many in one small file, so that a restart
of the scheduler leaves no gap but its own. Where the file cannot be written the history goes on in memory.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import struct
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

#: Seconds between two samples, and how many are kept: a day.
INTERVAL_SECONDS = 60
MOST = 24 * 60
#: Name of the file in the scheduler's data folder.
FILE = "gpu-usage"

#: time (ms since the epoch), GPUs that tasks hold, GPUs of all nodes
_RECORD = struct.Struct("<qII")
_DAY_MS = 1000 * INTERVAL_SECONDS * MOST

_log = logging.getLogger(__name__)


class GpuSample(NamedTuple):
    """The GPUs at a time (ms since the epoch): those that tasks hold, and all there are."""

    time: int
    used: int
    total: int


class UsageSampler:
    """Samples the GPUs once a minute. `count` gives how many are held, and how many there are.

    `folder` is where the history outlives the scheduler; None: nowhere. `clock` gives ms since the epoch.
    """

    def __init__(
        self, count: Callable[[], tuple[int, int]], folder: Path | None, clock: Callable[[], int]
    ) -> None:
        self._count, self._now = count, clock
        self._file = folder / FILE if folder is not None else None
        self._samples: deque[GpuSample] = deque(maxlen=MOST)
        self._loop: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Take up what was written down, and begin to sample."""
        if self._file is not None:
            for sample in await asyncio.to_thread(_read, self._file):
                self._keep(sample)
        self._loop = asyncio.create_task(self._sample_all())

    async def close(self) -> None:
        """Stop sampling."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    def last_day(self, after: int = 0) -> list[GpuSample]:
        """Return the samples of the last day later than `after` (ms since the epoch), the oldest first."""
        earliest = max(after, self._now() - _DAY_MS)
        return [sample for sample in self._samples if sample.time > earliest]

    async def sample(self) -> None:
        """Take a sample now, and write it down."""
        sample = GpuSample(self._now(), *self._count())
        self._keep(sample)
        if self._file is not None:
            try:
                await asyncio.to_thread(_append, self._file, sample, list(self._samples))
            except OSError as error:
                _log.debug("the use of the GPUs cannot be written down", exc_info=error)

    def _keep(self, sample: GpuSample) -> None:
        # the clock was set back: it had been wrong
        while self._samples and self._samples[-1].time >= sample.time:
            self._samples.pop()
        self._samples.append(sample)

    async def _sample_all(self) -> None:
        while True:
            await self.sample()
            await asyncio.sleep(INTERVAL_SECONDS)


def _read(file: Path) -> list[GpuSample]:
    """Read what was written down; nothing where that cannot be read."""
    try:
        content = file.read_bytes()
    except OSError:
        return []
    whole = len(content) - len(content) % _RECORD.size
    # (zeros are what a power cut leaves of a record)
    return [GpuSample(*record) for record in _RECORD.iter_unpack(content[:whole]) if record[0]]


def _append(file: Path, sample: GpuSample, all_kept: Iterable[GpuSample]) -> None:
    """Write a sample down; a file that has grown too long, or whose end is torn, is written anew."""
    size = file.stat().st_size if file.exists() else 0
    if size % _RECORD.size or size >= 2 * MOST * _RECORD.size:
        part = file.with_name(f"{FILE}.part")
        part.write_bytes(b"".join(itertools.starmap(_RECORD.pack, all_kept)))
        part.rename(file)
        return
    with file.open("ab") as appended:
        appended.write(_RECORD.pack(*sample))
