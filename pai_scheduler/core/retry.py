"""Whether an attempt is followed by another, and when: by the exit table (job-contract.md, section 3)."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pai_scheduler.job.exits import Behavior, exit_spec

from .model import Job, State, Verdict

#: retries in a row that follow at once
AT_ONCE = 3
FIRST_DELAY_MS = 1_000
LONGEST_DELAY_MS = 300_000
#: an attempt that ran this long starts the count of early failures again
LONG_RUN_MS = 300_000
#: TRANSIENT_CONFLICT: back off between these
CONFLICT_DELAY_MS = (600_000, 3_600_000)
#: `retryCount`: without limit for failures; always, even after success
FOREVER, ALWAYS = -1, -2


@dataclass(frozen=True, slots=True)
class Retry:
    """Another attempt after `delay_ms`; `kind` is who caused it (user, platform, resource)."""

    kind: str
    delay_ms: int


def retry_after(job: Job, verdict: Verdict, ran_ms: int) -> Retry | None:
    """Decide about another attempt after `verdict`; None: the job ends with it."""
    behavior = exit_spec(verdict.exit_row).behavior
    if verdict.state is State.STOPPED and behavior is Behavior.NON_TRANSIENT:
        return None  # by its user, or at its time limit; who was preempted comes back
    limit = job.spec.retry_count
    if ran_ms >= LONG_RUN_MS:
        job.retries.streak = 0
    if limit == ALWAYS:
        return Retry("user", _delay(job.retries.streak))
    if verdict.state is State.SUCCEEDED:
        return None
    match behavior:
        case Behavior.TRANSIENT_NORMAL:
            return Retry("platform", _delay(job.retries.streak))
        case Behavior.TRANSIENT_CONFLICT:
            return Retry("resource", _jitter(job))
        case Behavior.UNKNOWN if limit == FOREVER or job.retries.user < limit:
            return Retry("user", _delay(job.retries.streak))
    return None


def _delay(streak: int) -> int:
    if streak < AT_ONCE:
        return 0
    return min(FIRST_DELAY_MS << min(streak - AT_ONCE, 20), LONGEST_DELAY_MS)


def _jitter(job: Job) -> int:
    """Spread the back-off evenly, the same for the same attempt: the core holds no randomness."""
    low, high = CONFLICT_DELAY_MS
    attempt = job.attempt.number if job.attempt else 0
    return low + zlib.crc32(f"{job.id}:{attempt}".encode()) % (high - low)
