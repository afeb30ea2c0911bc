"""Keeps the turns of jobs where service decides who comes first, and tells who may be stopped for whom."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from sortedcontainers import SortedDict

from pai_scheduler.cluster.dispatch import Dispatcher
from pai_scheduler.cluster.ranks import Rank, comes_to_stop, precedence
from pai_scheduler.job.spec import JobSpec

from . import order, service_order
from .instructions import Outcome, WakeAt
from .model import Attempt, Job
from .service_order import Policy, Service
from .timers import Timer, Timers

#: Returns for about how long (ms) a user's job has its resources in all, that has had them for so long.
LikelyRun = Callable[[str, JobSpec, int], int | None]


class ServiceWatch:
    """Looks at jobs when they are put in line, start, or have had so much that it matters."""

    def __init__(
        self, dispatcher: Dispatcher, timers: Timers, likely_run_ms: LikelyRun, storage_request_gb: int
    ) -> None:
        self._dispatcher = dispatcher
        self._timers = timers
        self._likely_run_ms = likely_run_ms
        self._storage_request_gb = storage_request_gb
        #: jobs whose turn is not the first, by virtual cluster and by the begin of their wait
        self._waiting: defaultdict[str, SortedDict[tuple[int, str], Job]] = defaultdict(SortedDict)
        #: when promotion goes on in a virtual cluster
        self._promotes_at: dict[str, int] = {}
        #: False after a restart: what was promoted before is not known
        self.knows_promotions = True

    def policy(self, spec: JobSpec) -> Policy | None:
        """Return what decides in a job's virtual cluster; None: something else than service."""
        cluster = self._dispatcher.quota_accounting.clusters.get(spec.virtual_cluster)
        return None if cluster is None else cluster.service_order

    def turn(self, policy: Policy, user: str, spec: JobSpec) -> int:
        """Return the turn of a job that has had nothing yet."""
        return service_order.turn(policy, self._service(user, spec))

    def turn_of(self, policy: Policy, job: Job) -> int:
        """Return the turn of a job that has no resources."""
        return service_order.turn(policy, self._service_of(job))

    def await_promotion(self, job: Job, outcome: Outcome) -> None:
        """See to it that a job whose turn is not the first does not wait for ever."""
        self.forget(job)
        policy = self.policy(job.spec)
        if policy is not None and job.turn:
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
            pause = service_order.pause_ms(service, self._dispatcher.quota_accounting.guaranteed(name))
            if name not in self._promotes_at and not self.knows_promotions:
                self._promotes_at[name] = time + pause
            at = max(since + 3_600_000 * policy.promote_hours, self._promotes_at.get(name, 0))
            if time < at:
                self._wake(name, Timer.PROMOTION, at, outcome)
                return
            del waiting[since, job.id]
            self._promotes_at[name] = time + pause
            job.uncounted, job.turn = service_order.promoted(service), 0
            outcome.jobs[job.id] = job
            self._dispatcher.rerank(job.id, job.rank)

    def watch(self, job: Job, attempt: Attempt, time: int, outcome: Outcome) -> None:
        """Tell for whom a job is stopped that has its resources, and look again when that changes."""
        self._timers.cancel(job.id, Timer.SERVICE)
        policy = self.policy(job.spec)
        if policy is None or not job.spec.may_be_interrupted:
            self._dispatcher.yields(job.id, None)
            return
        begin = attempt.created + 1000 * policy.run_seconds
        if time < begin:
            self._dispatcher.yields(job.id, None)
            self._wake(job.id, Timer.SERVICE, begin, outcome)
            return
        service = self._service_of(job, time - attempt.created)
        below = service_order.stops_below(policy, service)
        self._dispatcher.yields(job.id, None if below is None else precedence(job.present_priority, below))
        if (run_ms := service_order.changes_in(policy, service)) is not None:
            self._wake(job.id, Timer.SERVICE, time + run_ms, outcome)

    def stopped_for(self, job: Job, attempt: Attempt, rank: Rank, now: int) -> int | None:
        """Return from when on (ms) a running job is stopped for one of this rank in its virtual cluster.

        None: for all that is known now, never.
        """
        policy = self.policy(job.spec)
        if policy is None or not job.spec.may_be_interrupted:
            return None
        begin = max(now, attempt.created + 1000 * policy.run_seconds)
        below = service_order.stops_below(policy, self._service_of(job, begin - attempt.created))
        if below is None or not comes_to_stop(rank[0], precedence(job.present_priority, below)):
            return None
        return begin

    def account(self, job: Job, attempt: Attempt, time: int, outcome: Outcome) -> None:
        """Count what an attempt had that is over, where that matters."""
        if self.policy(job.spec) is not None:
            rate = service_order.rate_of(job.spec, self._storage_request_gb)
            job.attained += rate * (time - attempt.created)
            outcome.jobs[job.id] = job

    def _service_of(self, job: Job, run_ms: int = 0) -> Service:
        return self._service(job.user, job.spec, job.attained, job.uncounted, run_ms)

    def _service(
        self, user: str, spec: JobSpec, had: int = 0, uncounted: int = 0, run_ms: int = 0
    ) -> Service:
        """Return the service of a job that had so much before, and has its resources for `run_ms` by now."""
        rate = service_order.rate_of(spec, self._storage_request_gb)
        had += rate * run_ms
        likely = self._likely_run_ms(user, spec, had // rate)
        needed_ms = 1000 * order.ASSUMED_RUN_SECONDS if likely is None else likely
        return Service(had, uncounted, rate * needed_ms, rate)

    def _wake(self, whose: str, timer: Timer, time: int, outcome: Outcome) -> None:
        self._timers.set(whose, timer, time)
        outcome.instructions.append(WakeAt(time))


def _waits_since(job: Job) -> int:
    """Return since when a job waits that has no resources."""
    ended = job.attempt.completed if job.attempt is not None else None
    return job.eligible_since if ended is None else ended
