"""Measures the running tasks in turn, and writes down what each uses."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import logging
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.engine.protocol import Engine, Usage
from pai_scheduler.job.task import TaskRef

from . import series
from .series import SERIES, Point

#: Seconds between two measurements of a task, and from its start to the first.
INTERVAL_SECONDS, FIRST_SECONDS = 10.0, 0.5
#: Seconds that one measurement may take.
_PATIENCE_SECONDS = 5.0
#: The share of one core that measuring may take: with many tasks the interval grows.
_SHARE = 0.02
#: Tasks that are due within this part of the interval are measured in one go, for each wakes the service.
_TOGETHER = 0.05
#: A go that waited for others (seconds) says nothing of what it cost, and no more tasks are measured in it.
_LONGEST_COST = 0.05

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Recording:
    """Recorded metrics of a task: seconds between the newest points, and (ms, value) per series."""

    interval: float
    series: dict[str, list[tuple[int, float]]]


class Recorder:
    """Measures tasks from their start to their end, one at a time, and never in a hurry.

    `failed` is told of each measurement that the engine could not make.
    """

    def __init__(
        self, engine: Engine, failed: Callable[[], None], interval_seconds: float = INTERVAL_SECONDS
    ) -> None:
        self._engine = engine
        self._failed = failed
        self._interval = interval_seconds
        #: the running tasks, with what each used when it was measured last
        self.latest: dict[TaskRef, Usage | None] = {}
        self._due: list[tuple[float, TaskRef]] = []
        self._news = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to measure."""
        self._loop = asyncio.create_task(self._measure_all())

    async def close(self) -> None:
        """Stop measuring."""
        if self._loop is not None:
            self._loop.cancel()
            await asyncio.gather(self._loop, return_exceptions=True)

    def begin(self, task: TaskRef) -> None:
        """Take up a task that runs."""
        if task not in self.latest:
            self.latest[task] = None
            heapq.heappush(self._due, (_now() + min(FIRST_SECONDS, self._interval), task))
            self._news.set()

    def end(self, task: TaskRef) -> None:
        """Drop a task that has ended; what was recorded stays."""
        self.latest.pop(task, None)

    async def recording(self, task: TaskRef, after: int = 0) -> Recording:
        """Return what was recorded of a task later than `after` (ms since the epoch)."""
        points = await asyncio.to_thread(self._read, task)
        return Recording(
            _interval(points, self._interval),
            {
                name: [
                    (point.time, value)
                    for point in points
                    if point.time > after and (value := point.values[number]) is not None
                ]
                for number, name in enumerate(SERIES)
            },
        )

    def _read(self, task: TaskRef) -> list[Point]:
        # where nothing is found, the log may just have moved to the folder of what has ended
        return series.read(self._folder(task)) or series.read(self._folder(task))

    def _folder(self, task: TaskRef) -> Path:
        """Beside the log: whatever removes that (the engine's `forget`) removes this too."""
        return self._engine.log(task).folder

    async def _measure_all(self) -> None:
        #: until when to rest, so that measuring takes no more than its share of the time
        rested = 0.0
        while True:
            self._news.clear()
            wait = max(self._due[0][0], rested) - _now() if self._due else None
            if wait is None or wait > 0:
                await _wait(self._news, wait)
                continue
            begin = _now()
            await self._measure_due(begin)
            rested = _now() + min(_now() - begin, _LONGEST_COST) * (1 / _SHARE - 1)

    async def _measure_due(self, now: float) -> None:
        """Measure who is due, one after the other, and write down at once what they use."""
        found: list[tuple[TaskRef, Usage]] = []
        while self._due and self._is_due(now) and _now() - now < _LONGEST_COST:
            _, task = heapq.heappop(self._due)
            if task not in self.latest:
                continue
            usage = await self._measure(task)
            if usage is not None and task in self.latest:
                self.latest[task] = usage
                found.append((task, usage))
            heapq.heappush(self._due, (now + self._interval, task))
        if found:
            for task, error in await asyncio.to_thread(self._append, found):
                self._complain(task, error)

    def _is_due(self, now: float) -> bool:
        """Return whether the next task is due, or as good as; the first measurement does not come early."""
        due, task = self._due[0]
        was_measured = self.latest.get(task) is not None
        return due <= (now + _TOGETHER * self._interval if was_measured else now)

    async def _measure(self, task: TaskRef) -> Usage | None:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                return await self._engine.usage(task)
        except Exception as error:
            self._complain(task, error)
            return None

    def _append(self, found: Sequence[tuple[TaskRef, Usage]]) -> list[tuple[TaskRef, Exception]]:
        """Write down what tasks use; return what could not be. Blocks."""
        failures: list[tuple[TaskRef, Exception]] = []
        for task, usage in found:
            try:
                series.append(self._folder(task), series.point_of(usage))
            except Exception as error:
                failures.append((task, error))
        return failures

    def _complain(self, task: TaskRef, error: Exception) -> None:
        # the task itself is none the worse for it
        _log.debug("could not be measured", exc_info=error, extra={"task": task.name})
        self._failed()


def _interval(points: Sequence[Point], usual: float) -> float:
    """Return the usual distance (seconds) of the newest points."""
    times = [point.time for point in points[-series.NEWEST :]]
    gaps = [(later - earlier) / 1000 for earlier, later in itertools.pairwise(times)]
    return round(max(usual, statistics.median(gaps)), 1) if gaps else usual


async def _wait(news: asyncio.Event, seconds: float | None) -> None:
    try:
        async with asyncio.timeout(seconds):
            await news.wait()
    except TimeoutError:
        return


def _now() -> float:
    return asyncio.get_running_loop().time()
