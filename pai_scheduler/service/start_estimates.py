"""When waiting jobs start, for those who read it: estimated only when asked, and never for long.

An estimate plays the ends of what runs through, which takes milliseconds of the loop that also schedules. So
it is kept for a moment, and all estimates together get a small part of the time: where more are asked for
than that, those who ask are told what was found before.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from pai_scheduler.core.model import SubState
from pai_scheduler.core.queries import seconds_until, start_of_waiting
from pai_scheduler.core.state_machine import Core

#: ms for which an estimate is told as it is, and for which at most where there is no time for another.
FRESH_MS = 2_000
KEPT_MS = 120_000
#: The part of the loop's time that estimates may take, and seconds of it that may be saved up.
SHARE = 0.05
SAVED_SECONDS = 0.2
#: Jobs of which an estimate is kept.
_MOST_KEPT = 2_000


@dataclass(frozen=True, slots=True)
class _Estimate:
    """`start`: ms since the epoch, None: nobody knows; `made`: when that was found."""

    start: int | None
    made: int


class StartEstimates:
    """Estimates for the core that `core` gives.

    `clock` gives ms since the epoch, `timer` seconds, in which the cost is counted.
    """

    def __init__(
        self,
        core: Callable[[], Core],
        clock: Callable[[], int],
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._core, self._now, self._timer = core, clock, timer
        self._known: dict[str, _Estimate] = {}
        self._left, self._counted = SAVED_SECONDS, timer()

    def starts_within(self, job_id: str) -> int | None:
        """Return in about how many seconds a waiting job starts; None: not known, or it does not wait."""
        core, now = self._core(), self._now()
        if job_id not in core.dispatcher.queue and not _waits_for_retry(core, job_id):
            self._known.pop(job_id, None)
            return None
        known = self._known.get(job_id)
        if known is None or not 0 <= now - known.made < FRESH_MS:
            known = self._estimate(core, job_id, now) or known
        if known is None or known.start is None or not 0 <= now - known.made < KEPT_MS:
            return None
        return seconds_until(known.start, now)

    def _estimate(self, core: Core, job_id: str, now: int) -> _Estimate | None:
        """Estimate; None: there is no time for that now."""
        begin = self._timer()
        self._left = min(SAVED_SECONDS, self._left + (begin - self._counted) * SHARE)
        self._counted = begin
        if self._left <= 0:
            return None
        found = self._known[job_id] = _Estimate(start_of_waiting(core, job_id, now), now)
        self._left -= self._timer() - begin
        if len(self._known) > _MOST_KEPT:
            self._known = {key: one for key, one in self._known.items() if now - one.made < FRESH_MS}
        return found


def _waits_for_retry(core: Core, job_id: str) -> bool:
    job = core.jobs.get(job_id)
    return job is not None and job.sub_state is SubState.RETRY_WAIT
