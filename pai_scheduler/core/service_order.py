"""Who comes first by the service that jobs have had, or still need, and who is stopped for others by that.

Least attained service in levels, after Gu et al., Tiresias (NSDI 2019): levels make sure that jobs do not
stop each other in turn. Of two jobs that have had the same, the one of fewer GPUs has run for longer, and is
more likely to end with little more where run times are spread widely, but not without end; so jobs of many
GPUs go up a little sooner, and come later within a level. Shortest remaining service first (SRSF there, for
known run times) needs no levels: what is left of a running job only becomes less. Service is told in eighths
of a GPU for one ms.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from pai_scheduler.cluster.amounts import CPUS, Amounts, gpus_in
from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining
from pai_scheduler.cluster.gang import gang_of
from pai_scheduler.cluster.ranks import turn_in_level
from pai_scheduler.cluster.usage import CORES_PER_GPU, weight
from pai_scheduler.job.spec import JobSpec

#: in the unit in which it is told
GPU_HOUR = CORES_PER_GPU * 3_600_000

#: where the next level begins falls by this power of a job's GPUs: with 4 it is at half
_WIDTH_WEIGHT = 0.5

#: for so long (ms) nobody stops a job again that came first as it had waited for so long
PROMOTED_RUN_MS = 3_600_000
#: such jobs have one in so many GPU hours of a virtual cluster at most
_PROMOTED_PART = 10

Policy = LeastAttained | ShortestRemaining


class Service(NamedTuple):
    """What a job has had, and needs in all; `rate`: what it has in one ms in which it has its resources.

    `uncounted`: a job that waited for long comes first until it has had so much.
    """

    had: int
    uncounted: int
    needed: int
    rate: int

    @property
    def remaining(self) -> int:
        """Return what it still needs, as far as that counts."""
        return 0 if self.is_promoted else max(0, self.needed - self.had)

    @property
    def is_promoted(self) -> bool:
        """Return whether it comes first, as it waited for so long."""
        return self.had < self.uncounted


def rate_of(spec: JobSpec, storage_request_gb: int) -> int:
    """Return what a job has in one ms in which it has its resources; 1 or more."""
    return max(1, round(sum(weight(demand) for demand in gang_of(spec, storage_request_gb))))


def turn(policy: Policy, service: Service) -> int:
    """Return the turn of a job that waits; the lowest, 0, comes first."""
    if isinstance(policy, ShortestRemaining):
        return service.remaining
    if service.is_promoted:
        return 0
    return turn_in_level(
        bisect_right(_levels_at(policy, service.rate), service.had), service.rate.bit_length()
    )


def promoted(service: Service) -> int:
    """Return `uncounted` once a job has waited for so long that it comes first."""
    return service.had + service.rate * PROMOTED_RUN_MS


def pause_ms(service: Service, guaranteed: Amounts) -> int:
    """Return for how long nobody else is promoted once a job is, in a virtual cluster guaranteed so much."""
    capacity = CORES_PER_GPU * gpus_in(guaranteed) or guaranteed.get(CPUS, 0)
    return _PROMOTED_PART * PROMOTED_RUN_MS * service.rate // max(service.rate, capacity)


def stops_below(policy: Policy, service: Service) -> int | None:
    """Return the turn that jobs must be below to stop a running one; None: nobody stops it any more."""
    if not isinstance(policy, ShortestRemaining):
        return turn(policy, service)
    if _is_nearly_done(policy, service):
        return None
    return _step(service.remaining)


def changes_in(policy: Policy, service: Service) -> int | None:
    """Return for how many ms more it must run until that may change; None: it stays."""
    if service.is_promoted:
        missing: int | None = service.uncounted - service.had
    elif not isinstance(policy, ShortestRemaining):
        left = next((at for at in _levels_at(policy, service.rate) if at > service.had), None)
        missing = None if left is None else left - service.had
    elif not service.remaining:
        missing = None
    elif _is_nearly_done(policy, service):
        # (by then it has either ended, or takes longer than was expected)
        missing = service.remaining
    else:
        missing = service.remaining - max(_step(service.remaining) - 1, _nearly_done_at(policy, service))
    return None if missing is None else -(-missing // service.rate)


@lru_cache(maxsize=1024)
def _levels_at(policy: LeastAttained, rate: int) -> Sequence[int]:
    """Return what a job has had when it goes to the second level, the third, …"""
    gpus = max(1.0, rate / CORES_PER_GPU)
    return tuple(round(hours * GPU_HOUR / gpus**_WIDTH_WEIGHT) for hours in policy.gpu_hours)


def _is_nearly_done(policy: ShortestRemaining, service: Service) -> bool:
    return service.remaining <= _nearly_done_at(policy, service)


def _nearly_done_at(policy: ShortestRemaining, service: Service) -> int:
    return 1000 * policy.run_seconds * service.rate


def _step(remaining: int) -> int:
    """Return what others must be below to stop a job: at most a fifth less than what it still needs.

    In steps, so that a running job changes the queue some four times each time that half of it is done.
    """
    digits = max(0, remaining.bit_length() - 3)
    return remaining >> digits << digits
