"""Queue policies: by time limit, by remaining or attained service, by hand; promotion after a long wait."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from sortedcontainers import SortedDict

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.cluster.fair_share import CORES_PER_GPU, weight
from pai_scheduler.cluster.resources import CPUS, Amounts, gang_of, gpus_in
from pai_scheduler.cluster.scheduler_state import SchedulerState
from pai_scheduler.cluster.sort_key import SortKey, level_key
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import JobSpec

from .events import Reordered
from .instructions import Outcome, WakeAt
from .model import Attempt, Job
from .timers import Timer, Timers

# Who comes first by the service that jobs have had, or still need, and who is stopped for others by that.
#
# Least attained service in levels, after Gu et al., Tiresias (NSDI 2019): levels make sure that jobs do not
# stop each other in turn. Of two jobs that have had the same, the one of fewer GPUs has run for longer, and
# is more likely to end with little more where run times are spread widely, but not without end; so jobs of
# many GPUs go up a little sooner, and come later within a level. Shortest remaining service first (SRSF
# there, for known run times) needs no levels: what is left of a running job only becomes less. Service is
# told in eighths of a GPU for one ms.

#: in the unit in which it is told
GPU_HOUR = CORES_PER_GPU * 3_600_000

#: where the next level begins falls by this power of a job's GPUs: with 4 it is at half
_WIDTH_WEIGHT = 0.5

#: for so long (ms) nobody stops a job again that came first as it had waited for so long
PROMOTED_RUN_MS = 3_600_000
#: such jobs have one in so many GPU hours of a virtual cluster at most
_PROMOTED_PART = 10

Policy = LeastAttained | ShortestRemaining


class AttainedService(NamedTuple):
    """Service that a job has had and needs in all; `rate`: that of one ms in which it is allocated.

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


def service_key(policy: Policy, service: AttainedService) -> int:
    """Return the policy key of a job that waits; the lowest, 0, comes first."""
    if isinstance(policy, ShortestRemaining):
        return service.remaining
    if service.is_promoted:
        return 0
    return level_key(bisect_right(_levels_at(policy, service.rate), service.had), service.rate.bit_length())


def promoted(service: AttainedService) -> int:
    """Return `uncounted` once a job has waited for so long that it comes first."""
    return service.had + service.rate * PROMOTED_RUN_MS


def pause_ms(service: AttainedService, guaranteed: Amounts) -> int:
    """Return for how long nobody else is promoted once a job is, in a virtual cluster guaranteed so much."""
    capacity = CORES_PER_GPU * gpus_in(guaranteed) or guaranteed.get(CPUS, 0)
    return _PROMOTED_PART * PROMOTED_RUN_MS * service.rate // max(service.rate, capacity)


def stops_below(policy: Policy, service: AttainedService) -> int | None:
    """Return the policy key that jobs must be below to stop a running one; None: nobody stops it any more."""
    if not isinstance(policy, ShortestRemaining):
        return service_key(policy, service)
    if _is_nearly_done(policy, service):
        return None
    return _step(service.remaining)


def changes_in(policy: Policy, service: AttainedService) -> int | None:
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


def _is_nearly_done(policy: ShortestRemaining, service: AttainedService) -> bool:
    return service.remaining <= _nearly_done_at(policy, service)


def _nearly_done_at(policy: ShortestRemaining, service: AttainedService) -> int:
    return 1000 * policy.run_seconds * service.rate


def _step(remaining: int) -> int:
    """Return what others must be below to stop a job: at most a fifth less than what it still needs.

    In steps, so that a running job changes the queue some four times each time that half of it is done.
    """
    digits = max(0, remaining.bit_length() - 3)
    return remaining >> digits << digits


# In which order jobs wait: their policy keys, and how somebody moves a job within its queue.

#: For so long a job without a time limit is taken to run, where shorter jobs come first.
ASSUMED_RUN_SECONDS = 7 * 24 * 3600


def time_limit_key(cluster: VirtualCluster | None, run_seconds: int | None, submitted: int) -> int | None:
    """Return a job's policy key (ms) by its time limit; None: jobs wait in the order of submission.

    As it never changes, nobody who comes after it can get before a job for ever.
    """
    if cluster is None or not cluster.shorter_first:
        return None
    seconds = ASSUMED_RUN_SECONDS if run_seconds is None else run_seconds
    return submitted + 1000 * cluster.shorter_first * seconds


def reorder(jobs: Mapping[str, Job], state: SchedulerState, job: Job, event: Reordered) -> list[Job]:
    """Change the orders and priorities that make a job's new sort key; return the jobs that were changed.

    Those between its old and its new queue position move up or down by one: each gets its neighbour's order.
    """
    changed: dict[str, Job] = {}
    # (under fair share nobody moves a job past another user's)
    owner_only = event.owner_only or state.usage.shares(job.spec.virtual_cluster)
    if event.priority is not None and job.present_priority != event.priority:
        job.priority = event.priority
        changed[job.id] = job
    if event.place is None or job.id not in state.queue:
        return list(changed.values())
    ids = state.queue.in_order(job.spec.virtual_cluster)
    among = [
        other
        for other in map(jobs.__getitem__, ids)
        if other.id == job.id or (_is_alike(other, job) and (not owner_only or other.user == job.user))
    ]
    # where the job's priority has just changed, it is not among its like yet
    among.sort(key=lambda other: other.sort_key)
    old, new = among.index(job), min(max(event.place, 1), len(among)) - 1
    if new == 0 and not owner_only and old > 0:
        job.order = _order_before(among[0], jobs.values())
        changed[job.id] = job
        return list(changed.values())
    low, high = min(old, new), max(old, new)
    orders = [other.order for other in among[low : high + 1]]
    among.insert(new, among.pop(old))
    for other, order in zip(among[low : high + 1], orders, strict=True):
        if other.order != order:
            other.order = order
            changed[other.id] = other
    return list(changed.values())


def _is_alike(one: Job, other: Job) -> bool:
    """Return whether submission alone decides which of two jobs comes first."""
    return (one.sort_key.priority, one.sort_key.policy) == (other.sort_key.priority, other.sort_key.policy)


def _order_before(first: Job, jobs: Iterable[Job]) -> int:
    """Return an order before the first job's that no other has.

    Who runs now may come back to the queue with the order it has: of two with the same, neither could move.
    """
    taken = {job.order for job in jobs if job.spec.virtual_cluster == first.spec.virtual_cluster}
    order = first.order - 1
    while order in taken:
        order -= 1
    return order


def message(job: Job, event: Reordered) -> Message:
    """Return what was done."""
    if event.place is None:
        return msg("{user} gave it priority {priority}.", user=event.by, priority=job.present_priority)
    return msg("{user} moved it in the queue.", user=event.by)


# Keeps the policy keys of jobs where service decides who comes first, and tells who may be stopped for whom.

#: Returns for about how long (ms) a user's job has its resources in all, that has had them for so long.
LikelyRun = Callable[[str, JobSpec, int], int | None]


class ServiceWatch:
    """Looks at jobs when they are put in line, start, or have had so much that it matters."""

    def __init__(
        self, state: SchedulerState, timers: Timers, likely_run_ms: LikelyRun, storage_request_gb: int
    ) -> None:
        self._state = state
        self._timers = timers
        self._likely_run_ms = likely_run_ms
        self._storage_request_gb = storage_request_gb
        #: jobs whose policy key is not the lowest, by virtual cluster and by the begin of their wait
        self._waiting: defaultdict[str, SortedDict[tuple[int, str], Job]] = defaultdict(SortedDict)
        #: when promotion goes on in a virtual cluster
        self._promotes_at: dict[str, int] = {}
        #: False after a restart: what was promoted before is not known
        self.knows_promotions = True

    def policy(self, spec: JobSpec) -> Policy | None:
        """Return what decides in a job's virtual cluster; None: something else than service."""
        cluster = self._state.quota_accounting.clusters.get(spec.virtual_cluster)
        return None if cluster is None else cluster.service_order

    def new_key(self, policy: Policy, user: str, spec: JobSpec) -> int:
        """Return the policy key of a job that has had nothing yet."""
        return service_key(policy, self._service(user, spec))

    def key_of(self, policy: Policy, job: Job) -> int:
        """Return the policy key of a job that has no resources."""
        return service_key(policy, self._service_of(job))

    def await_promotion(self, job: Job, outcome: Outcome) -> None:
        """See to it that a job whose policy key is not the lowest does not wait for ever."""
        self.forget(job)
        policy = self.policy(job.spec)
        if policy is not None and job.policy_key:
            name, since = job.spec.virtual_cluster, _waits_since(job)
            self._waiting[name][since, job.id] = job
            at, known = since + 3_600_000 * policy.promote_hours, self._timers.get(name, Timer.PROMOTION)
            if known is None or at < known:
                self._wake(name, Timer.PROMOTION, at, outcome)

    def forget(self, job: Job) -> None:
        """Know that a job does not wait any more; before its next attempt is made."""
        self._waiting[job.spec.virtual_cluster].pop((_waits_since(job), job.id), None)

    def promote(self, name: str, time: int, outcome: Outcome) -> None:
        """Let waiting jobs of a virtual cluster come first that waited for so long, the longest wait first.

        Like PROMOTEKNOB of Tiresias (NSDI 2019), but bounded: a pause pays for each promotion, so that
        promoted jobs have at most a tenth of the GPU time. Without a bound promotion becomes the policy where
        the cluster is overloaded. By waiting time, not by slowdown: else short jobs that come later could get
        before a long one for ever.
        """
        waiting = self._waiting[name]
        while waiting:
            (since, _), job = waiting.peekitem(0)
            policy = self.policy(job.spec)
            if policy is None:
                return
            service = self._service_of(job)
            pause = pause_ms(service, self._state.quota_accounting.guaranteed(name))
            if name not in self._promotes_at and not self.knows_promotions:
                self._promotes_at[name] = time + pause
            at = max(since + 3_600_000 * policy.promote_hours, self._promotes_at.get(name, 0))
            if time < at:
                self._wake(name, Timer.PROMOTION, at, outcome)
                return
            del waiting[since, job.id]
            self._promotes_at[name] = time + pause
            job.uncounted, job.policy_key = promoted(service), 0
            outcome.jobs[job.id] = job
            self._state.resort(job.id, job.sort_key)

    def watch(self, job: Job, attempt: Attempt, time: int, outcome: Outcome) -> None:
        """Tell for whom a job is stopped that has its resources, and look again when that changes."""
        self._timers.cancel(job.id, Timer.SERVICE)
        policy = self.policy(job.spec)
        if policy is None or not job.spec.may_be_interrupted:
            self._state.yields(job.id, None)
            return
        begin = attempt.created + 1000 * policy.run_seconds
        if time < begin:
            self._state.yields(job.id, None)
            self._wake(job.id, Timer.SERVICE, begin, outcome)
            return
        service = self._service_of(job, time - attempt.created)
        below = stops_below(policy, service)
        self._state.yields(job.id, None if below is None else SortKey.of(job.present_priority, below, 0))
        if (run_ms := changes_in(policy, service)) is not None:
            self._wake(job.id, Timer.SERVICE, time + run_ms, outcome)

    def stopped_for(self, job: Job, attempt: Attempt, sort_key: SortKey, now: int) -> int | None:
        """Return from when on (ms) a running job is stopped for one of this sort key in its virtual cluster.

        None: for all that is known now, never.
        """
        policy = self.policy(job.spec)
        if policy is None or not job.spec.may_be_interrupted:
            return None
        begin = max(now, attempt.created + 1000 * policy.run_seconds)
        below = stops_below(policy, self._service_of(job, begin - attempt.created))
        if below is None or not sort_key.stops(SortKey.of(job.present_priority, below, 0)):
            return None
        return begin

    def account(self, job: Job, attempt: Attempt, time: int, outcome: Outcome) -> None:
        """Count what an attempt had that is over, where that matters."""
        if self.policy(job.spec) is not None:
            rate = rate_of(job.spec, self._storage_request_gb)
            job.attained += rate * (time - attempt.created)
            outcome.jobs[job.id] = job

    def _service_of(self, job: Job, run_ms: int = 0) -> AttainedService:
        return self._service(job.user, job.spec, job.attained, job.uncounted, run_ms)

    def _service(
        self, user: str, spec: JobSpec, had: int = 0, uncounted: int = 0, run_ms: int = 0
    ) -> AttainedService:
        """Return the service of a job that had so much before, and has its resources for `run_ms` by now."""
        rate = rate_of(spec, self._storage_request_gb)
        had += rate * run_ms
        likely = self._likely_run_ms(user, spec, had // rate)
        needed_ms = 1000 * ASSUMED_RUN_SECONDS if likely is None else likely
        return AttainedService(had, uncounted, rate * needed_ms, rate)

    def _wake(self, whose: str, timer: Timer, time: int, outcome: Outcome) -> None:
        self._timers.set(whose, timer, time)
        outcome.instructions.append(WakeAt(time))


def _waits_since(job: Job) -> int:
    """Return since when a job waits that has no resources."""
    ended = job.attempt.completed if job.attempt is not None else None
    return job.eligible_since if ended is None else ended
