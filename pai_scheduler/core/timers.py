"""Deadlines: the next attempt of a job, the end of its time limit, the end of a hold."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from enum import StrEnum


class Timer(StrEnum):
    """Purpose of a timer."""

    RETRY = "retry"
    TIME_LIMIT = "time-limit"
    HOLD = "hold"
    #: others may stop it from now on, or those that may are others
    SERVICE = "service"
    #: the job of a virtual cluster (by whose name it is set) that waits for longest may come first
    PROMOTION = "promotion"


class Timers:
    """At most one time per job and purpose, in ms since the epoch; setting another replaces it."""

    def __init__(self) -> None:
        self._times: dict[tuple[str, Timer], int] = {}
        #: replaced and cancelled entries stay until they come up
        self._heap: list[tuple[int, str, Timer]] = []

    def set(self, job_id: str, timer: Timer, time: int) -> None:
        """Set a timer of a job to ring at `time` (ms); an earlier setting is replaced."""
        self._times[job_id, timer] = time
        heapq.heappush(self._heap, (time, job_id, timer))

    def cancel(self, job_id: str, *timers: Timer) -> None:
        """Cancel timers of a job (none named: all)."""
        for timer in timers or Timer:
            self._times.pop((job_id, timer), None)

    def get(self, job_id: str, timer: Timer) -> int | None:
        """Return when a timer rings; None: it does not."""
        return self._times.get((job_id, timer))

    def due(self, now: int) -> Iterator[tuple[str, Timer]]:
        """Take out what is due, earliest first; what is set meanwhile and due too comes as well."""
        while (first := self._first()) is not None and first[0] <= now:
            _, job_id, timer = heapq.heappop(self._heap)
            del self._times[job_id, timer]
            yield job_id, timer

    def next(self) -> int | None:
        """Return when the next timer rings; None: there is none."""
        first = self._first()
        return None if first is None else first[0]

    def all(self, timer: Timer) -> dict[str, int]:
        """Return the times of one purpose, by job."""
        return {job_id: time for (job_id, purpose), time in self._times.items() if purpose is timer}

    def _first(self) -> tuple[int, str, Timer] | None:
        while self._heap:
            time, job_id, timer = self._heap[0]
            if self._times.get((job_id, timer)) == time:
                return self._heap[0]
            heapq.heappop(self._heap)
        return None
