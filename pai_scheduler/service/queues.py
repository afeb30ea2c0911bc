"""The queues of the virtual clusters: who waits, at which place, why, and until when."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from heapq import nsmallest

from pai_scheduler.cluster.sort_key import KeyedJob
from pai_scheduler.cluster.wait_reasons import named
from pai_scheduler.core.model import Job, SubState
from pai_scheduler.core.queries import (
    QueuedJob,
    gpu_holders,
    keyed_jobs,
    never_fits_now,
    queued_job,
    queued_jobs,
    seconds_until,
    start_of_waiting,
    waiting_reason,
)
from pai_scheduler.core.state_machine import Core
from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import no_virtual_cluster

from .writer import Writer

# When waiting jobs start, for those who read it: estimated only when asked, and never for long.
#
# An estimate plays the ends of what runs through, which takes milliseconds of the loop that also schedules.
# So it is kept for a moment, and all estimates together get a small part of the time: where more are asked
# for than that, those who ask are told what was found before.

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
        if job_id not in core.state.queue and not _waits_for_retry(core, job_id):
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


# The queues of the virtual clusters: who waits, at which place, and why.

#: Jobs of the core that are gone through before others' requests come between.
_LOOKED_AT_ONCE = 2000


class Queues:
    """Asks the core; everybody may know how long a queue is. `clock` gives ms since the epoch."""

    def __init__(self, writer: Writer, clock: Callable[[], int]) -> None:
        self._writer, self._now = writer, clock
        self._estimates = StartEstimates(lambda: writer.core, clock)

    def names(self, virtual_cluster: str | None = None) -> list[str]:
        """List the virtual clusters whose queue is meant (None: of all); refuses one that there is not."""
        names = self._core.state.quota_accounting.clusters
        if virtual_cluster is not None and virtual_cluster not in names:
            raise no_virtual_cluster(virtual_cluster, sorted(names))
        return list(names) if virtual_cluster is None else [virtual_cluster]

    def waiting(
        self, virtual_cluster: str, *, after: KeyedJob | None = None, limit: int | None = None
    ) -> list[QueuedJob]:
        """List the waiting jobs of a virtual cluster, first come first: `limit` (None: all) after one.

        What of them is another user's business the presenter leaves out.
        """
        return queued_jobs(self._core, virtual_cluster, after, limit)

    async def own(
        self, principal: Principal, virtual_cluster: str, after: KeyedJob, limit: int
    ) -> list[KeyedJob]:
        """Return those of the caller's jobs that come after one, the first `limit`."""
        found: list[KeyedJob] = []
        jobs = list(self._core.unended(principal.name))
        for begin in range(0, len(jobs), _LOOKED_AT_ONCE):
            found += keyed_jobs(self._core, jobs[begin : begin + _LOOKED_AT_ONCE], virtual_cluster)
            await asyncio.sleep(0)  # others' requests come between
        return nsmallest(limit, (one for one in found if one > after))

    def at(self, keyed: KeyedJob) -> QueuedJob | None:
        """Return a waiting job; None where it does not wait there any more."""
        return queued_job(self._core, keyed)

    def queue_position(self, job: Job) -> int | None:
        """Return a job's queue position, from 1; None where it is not in line."""
        queue = self._core.queue
        return queue.queue_position(job.id) if job.id in queue else None

    def puts_shorter_first(self, job: Job) -> bool:
        """Return whether a job's virtual cluster orders those that wait by their time limits."""
        cluster = self._core.state.quota_accounting.clusters.get(job.spec.virtual_cluster)
        return cluster is not None and cluster.shorter_first > 0

    def never_fits(self, job: Job) -> bool:
        """Return whether a job waits that could not start even if nothing ran."""
        return never_fits_now(self._core, job)

    def waiting_reason(self, principal: Principal, job: Job) -> Message | None:
        """Return why a job waits now, and who holds the GPUs that it asks for; None where it does not wait.

        Names are those that the job's owner may see, as others show the sentence to that person.
        """
        reason = waiting_reason(self._core, job, self._now())
        if reason is None or not job.spec.total_gpus or job.id not in self._core.queue:
            return reason
        reader = principal if principal.name == job.user else Principal(job.user)
        clusters = self._core.state.quota_accounting.clusters
        held: Counter[str] = Counter()
        for (user, cluster), count in gpu_holders(self._core, job.spec.gpu_type).items():
            if count and (known := clusters.get(cluster)) and reader.sees_holder(user, known):
                held[user] += count
        if not held:
            return reason
        shown = named([f"{user} ({count})" for user, count in held.most_common()])
        if (gpu_type := job.spec.gpu_type) is None:
            return msg("{reason} GPUs are held by {holders}.", reason=reason, holders=shown)
        return msg("{reason} {type} GPUs are held by {holders}.", reason=reason, type=gpu_type, holders=shown)

    def starts_within(self, job: Job) -> int | None:
        """Return in about how many seconds a waiting job starts; None: not known, or it does not wait."""
        return self._estimates.starts_within(job.id)

    @property
    def _core(self) -> Core:
        return self._writer.core
