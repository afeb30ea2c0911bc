"""Who comes first by the service that jobs have had, or still need, and who is stopped for others by that.

Least attained service in levels, after Gu et al., Tiresias (NSDI 2019): levels make sure that jobs do not
stop each other in turn. Shortest remaining service first (SRSF there, for known run times) needs no levels:
what is left of a running job only becomes less. Service is told in eighths of a GPU for one ms.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining
from pai_scheduler.cluster.gang import gang_of
from pai_scheduler.cluster.usage import CORES_PER_GPU, weight
from pai_scheduler.job.spec import JobSpec

#: in the unit in which it is told
GPU_HOUR = CORES_PER_GPU * 3_600_000

#: for so long (ms) nobody stops a job again that came first as it had waited for so long
PROMOTED_RUN_MS = 3_600_000

Policy = LeastAttained | ShortestRemaining


class Service(NamedTuple):
    """What a job has had, and needs in all; `rate`: what it has in one ms in which it has its resources.

    `uncounted`: a job that waited for long begins anew: so much of what it has had counts no longer, or what
    it needs does not count before it has had so much.
    """

    had: int
    uncounted: int
    needed: int
    rate: int

    @property
    def remaining(self) -> int:
        """Return what it still needs, as far as that counts."""
        return max(0, self.needed - self.had) if self.had >= self.uncounted else 0


def rate_of(spec: JobSpec, default_storage_gb: int) -> int:
    """Return what a job has in one ms in which it has its resources; 1 or more."""
    return max(1, round(sum(weight(demand) for demand in gang_of(spec, default_storage_gb))))


def turn(policy: Policy, service: Service) -> int:
    """Return the turn of a job that waits; the lowest, 0, comes first."""
    if isinstance(policy, ShortestRemaining):
        return service.remaining
    return bisect_right(policy.gpu_hours, (service.had - service.uncounted) / GPU_HOUR)


def promoted(policy: Policy, service: Service) -> int:
    """Return `uncounted` once a job has waited for so long that it comes first."""
    if isinstance(policy, ShortestRemaining):
        return service.had + service.rate * PROMOTED_RUN_MS
    return service.had


def stops_below(policy: Policy, service: Service) -> int | None:
    """Return the turn that jobs must be below to stop a running one; None: nobody stops it any more."""
    if not isinstance(policy, ShortestRemaining):
        return turn(policy, service)
    if _is_nearly_done(policy, service):
        return None
    return _step(service.remaining)


def changes_in(policy: Policy, service: Service) -> int | None:
    """Return for how many ms more it must run until that may change; None: it stays."""
    if not isinstance(policy, ShortestRemaining):
        had = service.had - service.uncounted
        left = next((at for at in _levels_at(policy) if at > had), None)
        missing = None if left is None else left - had
    elif service.had < service.uncounted:
        missing = service.uncounted - service.had
    elif not service.remaining:
        missing = None
    elif _is_nearly_done(policy, service):
        # (by then it has either ended, or takes longer than was expected)
        missing = service.remaining
    else:
        missing = service.remaining - _step(service.remaining) + 1
    return None if missing is None else -(-missing // service.rate)


def _levels_at(policy: LeastAttained) -> list[int]:
    return [round(hours * GPU_HOUR) for hours in policy.gpu_hours]


def _is_nearly_done(policy: ShortestRemaining, service: Service) -> bool:
    return service.remaining <= 1000 * policy.run_seconds * service.rate


def _step(remaining: int) -> int:
    """Return what others must be below to stop a job: at most a fifth less than what it still needs.

    In steps, so that a running job changes the queue some four times each time that half of it is done.
    """
    digits = max(0, remaining.bit_length() - 3)
    return remaining >> digits << digits
