"""The state machine: events in, changes and instructions out; no I/O, no clock, no randomness.

An attempt goes: placed (all tasks or none) → its tasks start → a verdict (by the completion policy, or a
user's stop) → the other tasks are ended → everything is released → another attempt, or the end of the job.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from pai_scheduler.cluster.definition import (
    DEFAULT_DEBUG_HOLD_SECONDS,
    DEFAULT_GRACE_SECONDS,
    DEFAULT_MAINTENANCE_NOTICE_SECONDS,
    DEFAULT_MAX_GRACE_SECONDS,
    DEFAULT_OVERTAKE_LIMIT,
    DEFAULT_STORAGE_GB,
    ShortestRemaining,
    VirtualCluster,
)
from pai_scheduler.cluster.dispatcher import Dispatcher, Preempt, Start
from pai_scheduler.cluster.fair_share import DecayedUsage, Sharer
from pai_scheduler.cluster.node import Maintenance
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.cluster.queue import Queue
from pai_scheduler.cluster.resources import DEFAULT_STORAGE_REQUEST_GB, Demand, gang_of, role_demand
from pai_scheduler.cluster.scheduler_state import SchedulerState, Shape
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.exit_codes import PREEMPTED
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.task import TaskRef

from . import completion, queue_policies
from .dependencies import Dependencies, Dependency, waits_for
from .events import (
    Accessed,
    Ended,
    Event,
    HeldAfterFailure,
    NodesChanged,
    Noticed,
    PortsTaken,
    Progress,
    Reordered,
    SharesChanged,
    Started,
    StopRequested,
    Submitted,
    Tick,
)
from .instructions import KillTask, LaunchAttempt, Outcome, ReleaseAttempt, WakeAt
from .model import ACCESS, Attempt, Job, JobEvent, State, SubState, Task, Verdict
from .queue_policies import ServiceWatch
from .recovery import Lineup
from .runtime_prediction import Durations
from .timers import Timer, Timers


@dataclass(frozen=True, slots=True)
class CoreSettings:
    """Settings that an administrator may change. Seconds and GB."""

    #: how long a task that is being stopped has to end by itself, where its job does not say; at most
    grace_seconds: int = DEFAULT_GRACE_SECONDS
    max_grace_seconds: int = DEFAULT_MAX_GRACE_SECONDS
    #: disk limit of a task that names none, and how much of it is reserved when it is placed
    default_storage_gb: int = DEFAULT_STORAGE_GB
    storage_request_gb: int = DEFAULT_STORAGE_REQUEST_GB
    #: how often a waiting job may be overtaken before resources are kept for it
    overtake_limit: int = DEFAULT_OVERTAKE_LIMIT
    #: how long a failed task of a debugged job keeps its container
    debug_hold_seconds: int = DEFAULT_DEBUG_HOLD_SECONDS
    #: how long before maintenance nothing without a time limit starts on its machines
    maintenance_notice_seconds: int = DEFAULT_MAINTENANCE_NOTICE_SECONDS


class Core:
    """All jobs that have not ended, or still hold something; and the cluster they run on."""

    def __init__(
        self,
        cluster: Cluster,
        settings: CoreSettings | None = None,
        virtual_clusters: Iterable[VirtualCluster] = (VirtualCluster("default", 100.0),),
        durations: Durations | None = None,
    ) -> None:
        self.settings = settings or CoreSettings()
        #: what is known of jobs that ended; it may outlive this core, and counts for estimates only
        self.durations = Durations() if durations is None else durations
        notice_ms = 1000 * self.settings.maintenance_notice_seconds
        limit = self.settings.overtake_limit
        self.state = SchedulerState(cluster, virtual_clusters, limit, notice_ms)
        self._dispatcher = Dispatcher(self.state)
        self.jobs: dict[str, Job] = {}
        #: jobs that have not ended, by user and id
        self._unended: dict[str, dict[str, Job]] = {}
        self.dependencies = Dependencies()
        #: jobs that have just ended, for which others may wait
        self._just_ended: deque[Job] = deque()
        self.timers = Timers()
        #: where service decides who comes first
        self.services = ServiceWatch(
            self.state, self.timers, self.likely_run_ms, self.settings.storage_request_gb
        )
        self._latest = 0

    @property
    def cluster(self) -> Cluster:
        """Return the nodes and what is free on them."""
        return self.state.cluster

    @property
    def queue(self) -> Queue[Shape]:
        """Return the jobs that wait for resources."""
        return self.state.queue

    def unended(self, user: str) -> Collection[Job]:
        """Return the jobs of a user that have not ended."""
        return self._unended.get(user, {}).values()

    def restore(
        self,
        jobs: Iterable[Job],
        usages: Mapping[Sharer, DecayedUsage] | None = None,
        dependencies: Mapping[str, Sequence[Dependency]] | None = None,
    ) -> Outcome:
        """Take up what the store knows after a start: the jobs, what users have used, who waits for whom.

        Accounts for what runs, queues what waits, and repeats what was being done (engines do nothing twice).
        The next event (a `Tick` will do) schedules.
        """
        outcome = Outcome()
        self.services.knows_promotions = False
        self.state.usage.restore(usages or {})
        lineup = Lineup(self.state, self.settings.storage_request_gb, self.run_ms, self.policy_key)
        for job in sorted(jobs, key=attrgetter("order")):
            self.jobs[job.id] = job
            theirs = self._unended.get(job.user)
            if theirs is None:
                theirs = self._unended[job.user] = {}
            theirs[job.id] = job
            job.latest = job.latest_time()
            if job.latest > self._latest:
                self._latest = job.latest
            if lineup.add(job):
                # the store has it as it is
                continue
            if job.sub_state is SubState.DEPENDENCY_WAIT:
                self.dependencies.add(job.id, (dependencies or {})[job.id])
                continue
            if job.attempt is not None and not job.attempt.is_released:
                self._resume(job, job.attempt, outcome)
            else:
                verdict = job.attempt.verdict if job.attempt is not None else None
                job.last_failure = verdict.reason if verdict and verdict.state is State.FAILED else None
                before = job.sub_state, job.not_before
                self._wait(job, outcome)
                if before == (job.sub_state, job.not_before):
                    # the store has it so already
                    del outcome.jobs[job.id]
        lineup.finish()
        self.state.usage.begin(self._latest)
        outcome.usages.update(self.state.usage.take_changed())
        return outcome

    def in_order(self, event: Event) -> Event:
        """Return an event with a time that is not before what is told of its job already.

        What happened while the service was down is told by the machine's clock, which may have been set.
        """
        match event:
            case Started(task=task) | HeldAfterFailure(task=task) | Ended(task=task) | Progress(task=task):
                job = self.jobs.get(task.job_id)
            case StopRequested(job_id=job_id) | Reordered(job_id=job_id) | PortsTaken(job_id=job_id):
                job = self.jobs.get(job_id)
            case _:
                return event
        return event if job is None or event.time >= job.latest else replace(event, time=job.latest)

    def handle(self, event: Event, outcome: Outcome, *, more: bool = False) -> None:
        """Take one event; add what follows from it to `outcome`. Events about what is over change nothing.

        `more`: another follows at once, so nothing is decided before that one; else the tasks of a large job,
        ending one after the other, would leave what they held piece by piece to small ones.
        """
        match event:
            case Submitted():
                self._on_submitted(event, outcome)
            case StopRequested():
                self._on_stop(event, outcome)
            case Started():
                self._on_started(event, outcome)
            case Ended():
                self._on_ended(event, outcome)
            case Progress():
                self._on_progress(event, outcome)
            case Noticed():
                self._on_noticed(event, outcome)
            case Accessed():
                self._on_accessed(event, outcome)
            case PortsTaken():
                self._on_ports_taken(event, outcome)
            case NodesChanged():
                self._on_nodes(event, outcome)
            case Tick():
                self._on_tick(event, outcome)
            case HeldAfterFailure():
                self._on_held(event, outcome)
            case Reordered():
                self._on_reordered(event, outcome)
            case SharesChanged():
                self._on_shares(event, outcome)
        self._go_on_after_ends(event.time, outcome)
        # what begins now does so now, even if the event is an older one
        self._latest = max(self._latest, event.time)
        if not more:
            self.state.follow_usage(self._latest)
            self._schedule(self._latest, outcome)
            outcome.usages.update(self.state.usage.take_changed())

    def demand(self, job: Job, task: Task) -> Demand:
        """Return what a task was given."""
        return role_demand(job.spec, job.spec.role(task.ref.role), self.settings.storage_request_gb)

    def run_seconds(self, spec: JobSpec) -> int | None:
        """Return how long an attempt may run: as the job says, at most as its virtual cluster allows."""
        cluster = self.state.quota_accounting.clusters.get(spec.virtual_cluster)
        asked = spec.max_run_seconds
        if cluster is None:
            return asked
        limits = [asked if asked is not None else cluster.default_run_seconds, cluster.max_run_seconds]
        return min((limit for limit in limits if limit is not None), default=None)

    def likely_run_ms(self, user: str, spec: JobSpec, ran_ms: int = 0) -> int | None:
        """Return for about how long in all a job has its resources, which it has had for `ran_ms`.

        By what such jobs took before, else its time limit; None: nobody knows.
        """
        limit_ms = self.run_ms(spec)
        likely = self.durations.likely(user, spec, limit_ms, ran_ms)
        if likely is None:
            return limit_ms
        return likely if limit_ms is None else min(likely, limit_ms)

    def learn(self, user: str, spec: JobSpec, ran_ms: int) -> None:
        """Take in for how long an ended job had its resources."""
        self.durations.learn(user, spec, ran_ms, self.run_ms(spec))

    def grace_ms(self, spec: JobSpec) -> int:
        """Return for how long tasks that are being stopped may run on, in milliseconds: as the job says, at
        most as the cluster allows now."""
        asked = spec.termination_grace_seconds
        usual, most = self.settings.grace_seconds, self.settings.max_grace_seconds
        return 1000 * min(usual if asked is None else asked, most)

    def run_ms(self, spec: JobSpec) -> int | None:
        """Return how long an attempt may run, in milliseconds; None: it has no time limit."""
        seconds = self.run_seconds(spec)
        return None if seconds is None else 1000 * seconds

    def policy_key(self, user: str, spec: JobSpec, submitted: int) -> int | None:
        """Return the key of a job that was submitted then (ms), and has had nothing; see `Job.policy_key`."""
        policy = self.services.policy(spec)
        if policy is not None:
            return self.services.new_key(policy, user, spec)
        cluster = self.state.quota_accounting.clusters.get(spec.virtual_cluster)
        return queue_policies.time_limit_key(cluster, self.run_seconds(spec), submitted)

    # -- events ---------------------------------------------------------------------------------------------

    def _on_submitted(self, event: Submitted, outcome: Outcome) -> None:
        job = Job(event.job_id, event.user, event.spec, event.time, order=event.order)
        self.jobs[job.id] = job
        self._unended.setdefault(job.user, {})[job.id] = job
        self._tell(outcome, job, event.time, "submitted", msg("Submitted by {user}.", user=event.user))
        if event.after:
            self._wait_for_others(job, event, outcome)
        else:
            self._wait(job, outcome)

    def _wait_for_others(self, job: Job, event: Submitted, outcome: Outcome) -> None:
        """Let a new job wait for those that it names, put it in line where they ended so, or end it."""
        found: list[Dependency] = []
        outcome.jobs[job.id] = job
        for place, dependency in enumerate(event.after):
            if dependency.job_id not in self.jobs:
                other = outcome.jobs.get(dependency.job_id)  # (ended in the same group of events)
                state = event.ended.get(dependency.job_id) if other is None else other.state
                dependency = dependency.after(state)
                if not dependency.holds and not job.is_decided:
                    job.verdict = completion.dependency_verdict(dependency, state)
            found.append(dependency)
            outcome.dependencies[job.id, place] = dependency
        if job.verdict is not None:
            self._finish(job, job.verdict, event.time, outcome)
        elif all(dependency.holds for dependency in found):
            job.eligible = event.time
            self._wait(job, outcome)
        else:
            job.sub_state = SubState.DEPENDENCY_WAIT
            self.dependencies.add(job.id, found)
            self._tell(outcome, job, event.time, "dependency-wait", waits_for(found))

    def _go_on_after_ends(self, time: int, outcome: Outcome) -> None:
        """Put in line what waited for jobs that have just ended, or end it; and what waited for that."""
        while self._just_ended:
            ended = self._just_ended.popleft()
            for waiter in self.dependencies.waiters(ended.id):
                job = self.jobs.get(waiter[0])
                if job is None:
                    continue  # (it waited with two entries for the same job, and has ended by the first)
                dependency = self.dependencies.settle(waiter, ended.state)
                outcome.dependencies[waiter] = dependency
                at = max(time, job.latest)
                if not dependency.holds:
                    verdict = completion.dependency_verdict(dependency, ended.state)
                    self._finish(job, verdict, at, outcome)
                elif self.dependencies.is_satisfied(job.id):
                    self.dependencies.drop(job.id)
                    job.eligible = at
                    text = msg("All jobs that it waited for have ended as asked.")
                    self._tell(outcome, job, at, "dependencies-met", text)
                    self._wait(job, outcome)

    def _on_stop(self, event: StopRequested, outcome: Outcome) -> None:
        job = self.jobs.get(event.job_id)
        if job is None:
            if event.delete:
                outcome.deleted.append(event.job_id)
            return
        job.doomed = job.doomed or event.delete
        outcome.jobs[job.id] = job
        if job.is_decided:
            if event.force:
                self._kill_now(job, event, outcome)
            return
        verdict = completion.stop_verdict(event.by, event.reason)
        data: dict[str, object] = {"by": event.by, "reason": event.reason}
        self._tell(outcome, job, event.time, "stop-requested", verdict.reason, data=data)
        if job.attempt is None or job.attempt.is_released:
            self.state.leave(job.id)
            self._finish(job, verdict, event.time, outcome)
        elif job.attempt.verdict is not None:
            # its last tasks are being stopped already; how it came out stays, but no other attempt follows
            job.verdict, job.not_before = verdict, None
            if event.force:
                self._kill_now(job, event, outcome)
        else:
            grace_ms = 0 if event.force else None
            self._decide(job, job.attempt, verdict, event.time, outcome, told=True, grace_ms=grace_ms)

    def _kill_now(self, job: Job, event: StopRequested, outcome: Outcome) -> None:
        """Give the tasks of a job that is ending no more time."""
        attempt = job.attempt
        if attempt is None:
            return
        if attempt.ending_until is None or attempt.ending_until > event.time:
            text = msg("{user} had its tasks killed at once.", user=event.by)
            data: dict[str, object] = {"by": event.by, "force": True}
            self._tell(outcome, job, event.time, "killed-at-once", text, attempt=attempt, data=data)
        self._end_tasks(job, attempt, event.time, outcome)

    def _on_started(self, event: Started, outcome: Outcome) -> None:
        found = self._find(event.task)
        if found is None or found[2].state.ended or found[2].started is not None:
            return
        job, attempt, task = found
        task.state, task.started = State.RUNNING, event.time
        task.address, task.container_id = event.address, event.container_id
        outcome.tasks[task.ref] = task
        where = msg("Task {task} has started on {node}.", task=task.ref.hostname, node=task.assignment.node)
        self._tell(outcome, job, event.time, "task-started", where, task)
        if attempt.verdict is None and all(peer.started is not None for peer in attempt.tasks.values()):
            attempt.launched = event.time
            job.enter(attempt.running_sub_state)
            outcome.jobs[job.id] = job
            outcome.attempts[job.id, attempt.number] = attempt
            self._tell(outcome, job, event.time, "running", msg("All tasks run."), attempt=attempt)
            self._limit_time(job, attempt, outcome)

    def _on_held(self, event: HeldAfterFailure, outcome: Outcome) -> None:
        found = self._find(event.task)
        if found is None or found[2].state.ended or found[2].held is not None or found[2].killing:
            return
        job, _, task = found
        task.held, task.held_cause, task.exit_code = event.time, event.cause, event.exit_code
        outcome.tasks[task.ref] = task
        if job.sub_state is SubState.RUNNING:
            job.enter(SubState.DEBUG_HELD)
            outcome.jobs[job.id] = job
        text = completion.held_text(event, self.settings.debug_hold_seconds)
        until: dict[str, object] = {"until": event.time + self._hold_ms}
        self._tell(outcome, job, event.time, "held", text, task, data=until)
        self._limit_hold(job, task, outcome)

    def _on_ended(self, event: Ended, outcome: Outcome) -> None:
        found = self._find(event.task)
        if found is None or found[2].state.ended:
            return
        job, attempt, task = found
        event = completion.end_task(task, event, attempt.verdict)
        self.state.release(job.id, job.place_in_gang(task.ref), event.time)
        outcome.tasks[task.ref] = task
        self._tell(outcome, job, event.time, "task-ended", completion.task_ended_text(task), task)
        if attempt.verdict is None:
            verdict = completion.verdict_after(job.spec, attempt, task, event)
            if verdict is not None:
                self._decide(job, attempt, verdict, event.time, outcome)
                return
            if job.sub_state is SubState.DEBUG_HELD and job.sub_state is not attempt.running_sub_state:
                job.enter(attempt.running_sub_state)
                outcome.jobs[job.id] = job
        if attempt.verdict is not None and attempt.is_released:
            self._after_attempt(job, attempt, event.time, outcome)

    def _on_progress(self, event: Progress, outcome: Outcome) -> None:
        found = self._find(event.task)
        if found is None or found[2].state is not State.WAITING:
            return
        job, _, task = found
        job.progress = event.message
        data = {} if event.percent is None else {"percent": event.percent}
        entry = JobEvent(
            job.id,
            event.time,
            "progress",
            event.message,
            task.ref.attempt,
            task.ref.role,
            task.ref.index,
            data,
        )
        outcome.job_events.append(entry)

    def _on_noticed(self, event: Noticed, outcome: Outcome) -> None:
        if (found := self._find(event.task)) is not None:
            job, _, task = found
            kind = event.notice.value
            self._tell(outcome, job, event.time, kind, event.message, task, data=dict(event.data))

    def _on_accessed(self, event: Accessed, outcome: Outcome) -> None:
        # (of a job that has ended too; the store knows whether it is still there)
        job_id, attempt, role, index = event.task
        outcome.job_events.append(
            JobEvent(job_id, event.time, ACCESS, event.message, attempt, role, index, event.data)
        )

    def _on_ports_taken(self, event: PortsTaken, outcome: Outcome) -> None:
        """Return those tasks other ports, before any of the gang starts: each is told the ports of all."""
        job = self.jobs.get(event.job_id)
        attempt = job.attempt if job is not None else None
        if job is None or attempt is None or attempt.number != event.attempt or attempt.verdict is not None:
            return
        changed = self.state.give_other_ports(job.id, event.ports)
        if changed is None:
            self._decide(job, attempt, completion.ports_verdict(), event.time, outcome)
            return
        tasks = list(job.in_gang_order(attempt))
        for place, assignment in changed.items():
            task = tasks[place]
            task.assignment = assignment
            outcome.tasks[task.ref] = task
        text = completion.other_ports_text(len(changed))
        self._tell(outcome, job, event.time, "ports-changed", text, attempt=attempt)
        outcome.instructions.append(LaunchAttempt(job.id, attempt.number))

    def _on_nodes(self, event: NodesChanged, outcome: Outcome) -> None:
        known = {use.node.name: use.node.maintenance for use in self.cluster.uses.values()}
        self.state.set_nodes(event.nodes)
        new = {
            node.name: window
            for node in event.nodes
            for window in node.maintenance[:1]
            if window not in known.get(node.name, ())
        }
        for job_id, holding in self.state.holdings.items() if new else ():
            for node in holding.nodes:
                if node in new:
                    self._tell_maintenance(self.jobs[job_id], node, new[node], event.time, outcome)

    def _tell_maintenance(
        self, job: Job, node: str, window: Maintenance, time: int, outcome: Outcome
    ) -> None:
        """Tell of maintenance of a node where a job may still run then."""
        limit, attempt = self.run_ms(job.spec), job.attempt
        if attempt is None or attempt.verdict is not None:
            return
        launched = time if attempt.launched is None else attempt.launched
        if limit is not None and launched + limit <= window.begin:
            return
        data: dict[str, object] = {"node": node, "begin": window.begin, "end": window.end}
        text, at = completion.maintenance_text(node, window), max(time, job.latest)
        self._tell(outcome, job, at, "maintenance", text, attempt=attempt, data=data)

    def _on_shares(self, event: SharesChanged, outcome: Outcome) -> None:
        self.state.set_clusters(event.virtual_clusters, event.time)
        outcome.virtual_clusters.update(event.changes)
        for job in self.jobs.values():
            # (as a restart would find it)
            if job.id in self.queue and job.policy_key != (policy_key := self._policy_key_of(job)):
                job.policy_key = policy_key
                self.state.resort(job.id, job.sort_key)
            if job.id in self.queue:
                self.services.await_promotion(job, outcome)
            elif job.attempt is not None and job.attempt.verdict is None:
                self.services.watch(job, job.attempt, event.time, outcome)

    def _on_tick(self, event: Tick, outcome: Outcome) -> None:
        for job_id, timer in list(self.timers.due(event.time)):
            self._ring(job_id, timer, event.time, outcome)
        if (next_time := self.timers.next()) is not None:
            outcome.instructions.append(WakeAt(next_time))

    def _ring(self, job_id: str, timer: Timer, time: int, outcome: Outcome) -> None:
        if timer is Timer.PROMOTION:
            self.services.promote(job_id, time, outcome)
            return
        job = self.jobs[job_id]
        attempt = job.attempt
        if timer is Timer.RETRY:
            outcome.jobs[job_id] = job
            self._enqueue(job, outcome)
        elif attempt is None or attempt.verdict is not None:
            return
        elif timer is Timer.SERVICE:
            self.services.watch(job, attempt, time, outcome)
        elif timer is Timer.TIME_LIMIT:
            verdict = completion.time_limit_verdict(self.run_seconds(job.spec) or 0)
            # by its exit code it was stopped: only this tells it from a job that somebody stopped
            data: dict[str, object] = {"cause": "timeLimit"}
            self._tell(outcome, job, time, "ending", verdict.reason, attempt=attempt, data=data)
            self._decide(job, attempt, verdict, time, outcome, told=True)
        else:
            for task in attempt.tasks.values():
                if task.held is None or task.state.ended:
                    continue
                if task.held + self._hold_ms <= time:
                    self._kill(task, time + self.grace_ms(job.spec), outcome)
                else:
                    self._limit_hold(job, task, outcome)

    def _on_reordered(self, event: Reordered, outcome: Outcome) -> None:
        job = self.jobs.get(event.job_id)
        if job is None or job.is_decided:
            return
        changed = queue_policies.reorder(self.jobs, self.state, job, event)
        for other in changed:
            outcome.jobs[other.id] = other
            if other.id in self.queue:
                self.state.resort(other.id, other.sort_key)
            elif other.attempt is not None and other.attempt.verdict is None:
                self.services.watch(other, other.attempt, event.time, outcome)
        if job in changed:
            text = queue_policies.message(job, event)
            self._tell(outcome, job, event.time, "reordered", text)

    # -- transitions ----------------------------------------------------------------------------------------

    def _wait(self, job: Job, outcome: Outcome) -> None:
        """Put a job in line, or let it sleep until its next attempt is due."""
        outcome.jobs[job.id] = job
        if job.not_before is not None:
            job.enter(SubState.RETRY_WAIT)
            self._wake(job, Timer.RETRY, job.not_before, outcome)
        else:
            self._enqueue(job, outcome)

    def _policy_key_of(self, job: Job) -> int | None:
        policy = self.services.policy(job.spec)
        if policy is None:
            return self.policy_key(job.user, job.spec, job.created)
        return self.services.key_of(policy, job)

    def _enqueue(self, job: Job, outcome: Outcome) -> None:
        self.timers.cancel(job.id, Timer.RETRY)
        job.enter(SubState.QUEUED)
        job.not_before = None
        job.policy_key = self._policy_key_of(job)
        self.services.await_promotion(job, outcome)
        self.state.wait(
            job.id,
            job.user,
            job.spec.virtual_cluster,
            gang_of(job.spec, self.settings.storage_request_gb),
            job.sort_key,
            preemptible=job.spec.preemptible,
            overtaken=job.overtaken,
            run_ms=self.run_ms(job.spec),
        )

    def _schedule(self, time: int, outcome: Outcome) -> None:
        for decision in self._dispatcher.decide(time):
            match decision:
                case Start():
                    self._start(self.jobs[decision.job_id], decision, time, outcome)
                case Preempt():
                    for victim in decision.victims:
                        job = self.jobs[victim]
                        # (a job that holds something has an attempt, and none that is ending is chosen)
                        if job.attempt is not None:
                            name = job.spec.virtual_cluster
                            if self.jobs[decision.beneficiary].spec.virtual_cluster == name:
                                by_need = isinstance(self.services.policy(job.spec), ShortestRemaining)
                                verdict = completion.yield_verdict(name, by_need=by_need)
                            else:
                                verdict = completion.preempt_verdict(name)
                            self._decide(job, job.attempt, verdict, time, outcome)

    def _start(self, job: Job, start: Start, time: int, outcome: Outcome) -> None:
        self.services.forget(job)
        number = 0 if job.attempt is None else job.attempt.number + 1
        attempt = job.attempt = Attempt(number, time)
        refs = [(role.name, index) for role in job.spec.task_roles for index in range(role.task_number)]
        for (role, index), assignment in zip(refs, start.assignments, strict=True):
            task = Task(TaskRef(job.id, number, role, index), assignment)
            attempt.tasks[role, index] = task
            outcome.tasks[task.ref] = task
        job.enter(SubState.STARTING)
        job.progress, job.overtaken = None, 0
        outcome.jobs[job.id] = job
        outcome.attempts[job.id, number] = attempt
        outcome.instructions.append(LaunchAttempt(job.id, number))
        text = completion.placed_text(job, start)
        data: dict[str, object] = {"borrows": True} if start.borrows else {}
        self._tell(outcome, job, time, "placed", text, attempt=attempt, data=data)
        if self.state.barring:
            for node in dict.fromkeys(assignment.node for assignment in start.assignments):
                for window in self.cluster.uses[node].node.maintenance[:1]:
                    self._tell_maintenance(job, node, window, time, outcome)
        if self.services.policy(job.spec) is not None:
            self.services.watch(job, attempt, time, outcome)

    def _decide(
        self,
        job: Job,
        attempt: Attempt,
        verdict: Verdict,
        time: int,
        outcome: Outcome,
        *,
        told: bool = False,
        grace_ms: int | None = None,
    ) -> None:
        """The attempt is decided: end what still runs, and the job with it unless another attempt follows.

        `told`: a job event says already why. `grace_ms`: for how long its tasks may run on; None: as usual.
        """
        attempt.verdict = verdict
        outcome.attempts[job.id, attempt.number] = attempt
        self.timers.cancel(job.id)
        ran = time - attempt.launched if attempt.launched is not None else 0
        another = completion.retry_after(job, verdict, ran)
        if another is None:
            job.verdict = verdict
            if not told and not attempt.is_released:
                self._tell(outcome, job, time, "ending", verdict.reason, attempt=attempt)
        else:
            setattr(job.retries, another.kind, getattr(job.retries, another.kind) + 1)
            job.retries.streak += 1
            job.last_failure = verdict.reason if verdict.state is State.FAILED else None
            job.not_before = time + another.delay_ms if another.delay_ms else None
            self._tell(
                outcome, job, time, "retry", completion.retried_text(verdict, another), attempt=attempt
            )
        job.enter(SubState.ENDING)
        outcome.jobs[job.id] = job
        if attempt.is_released:
            self._after_attempt(job, attempt, time, outcome)
        else:
            until = time + (self.grace_ms(job.spec) if grace_ms is None else grace_ms)
            self._end_tasks(job, attempt, until, outcome)

    def _end_tasks(self, job: Job, attempt: Attempt, until: int, outcome: Outcome) -> None:
        """Have all tasks that still run stopped, and killed at `until` (ms)."""
        attempt.ending_until = until
        outcome.attempts[job.id, attempt.number] = attempt
        self.state.ending(job.id, until)
        for task in attempt.tasks.values():
            if not task.state.ended:
                self._kill(task, until, outcome)

    def _after_attempt(self, job: Job, attempt: Attempt, time: int, outcome: Outcome) -> None:
        """All tasks are over: let go of everything, then wait for the next attempt or be done."""
        attempt.completed = time
        self.services.account(job, attempt, time, outcome)
        outcome.attempts[job.id, attempt.number] = attempt
        outcome.instructions.append(ReleaseAttempt(job.id, attempt.number))
        if job.verdict is not None:
            self._finish(job, job.verdict, time, outcome)
        else:
            self._wait(job, outcome)

    def _finish(self, job: Job, verdict: Verdict, time: int, outcome: Outcome) -> None:
        """Nothing of the job is left: tell how it came out. The store keeps it, the core forgets it."""
        job.verdict, job.completed, job.not_before = verdict, time, None
        job.enter(SubState.ENDED)
        outcome.jobs[job.id] = job
        self._tell(outcome, job, time, "ended", verdict.reason, data={"state": str(job.state)})
        outcome.announcements += completion.announcements(job)
        if job.attempt is not None and job.attempt.launched is not None:
            self.learn(job.user, job.spec, time - job.attempt.created)
        del self.jobs[job.id]
        self.dependencies.drop(job.id)
        self._just_ended.append(job)
        self.timers.cancel(job.id)
        self.services.forget(job)
        theirs = self._unended[job.user]
        del theirs[job.id]
        if not theirs:
            del self._unended[job.user]
        if job.doomed:
            outcome.deleted.append(job.id)

    def _resume(self, job: Job, attempt: Attempt, outcome: Outcome) -> None:
        """Book what an attempt holds, and say again what was being done about it."""
        held = {
            place: (self.demand(job, task), task.assignment)
            for place, task in enumerate(job.in_gang_order(attempt))
            if not task.state.ended
        }
        self.state.hold(
            job.id,
            job.user,
            job.spec.virtual_cluster,
            held,
            attempt.created,
            preemptible=job.spec.preemptible,
            ending=attempt.verdict is not None,
            preempted=attempt.verdict is not None and attempt.verdict.exit_row == PREEMPTED,
        )
        # (a held task whose time is over has none that is kept)
        until = attempt.ending_until
        if until is None:
            until = job.latest + self.grace_ms(job.spec)
        if attempt.verdict is not None:
            self.state.ending(job.id, until)
        for task in attempt.tasks.values():
            if not task.state.ended and task.killing:
                outcome.instructions.append(KillTask(task.ref, until))
            elif not task.state.ended and task.held is not None:
                self._limit_hold(job, task, outcome)
        if attempt.launched is not None and attempt.verdict is None:
            self._limit_time(job, attempt, outcome)
        if attempt.verdict is None and self.services.policy(job.spec) is not None:
            self.services.watch(job, attempt, job.latest, outcome)
        tasks = attempt.tasks.values()
        if attempt.verdict is None and any(task.started is None and not task.state.ended for task in tasks):
            outcome.instructions.append(LaunchAttempt(job.id, attempt.number))

    def _kill(self, task: Task, until: int, outcome: Outcome) -> None:
        task.killing = True
        outcome.tasks[task.ref] = task
        outcome.instructions.append(KillTask(task.ref, until))

    def _wake(self, job: Job, timer: Timer, time: int, outcome: Outcome) -> None:
        self.timers.set(job.id, timer, time)
        outcome.instructions.append(WakeAt(time))

    def _limit_time(self, job: Job, attempt: Attempt, outcome: Outcome) -> None:
        """Set the timer that ends an attempt at its time limit."""
        seconds = self.run_seconds(job.spec)
        if seconds is not None and attempt.launched is not None:
            end = attempt.launched + 1000 * seconds
            self._wake(job, Timer.TIME_LIMIT, end, outcome)
            self.state.expect(job.id, end)

    @property
    def _hold_ms(self) -> int:
        return 1000 * self.settings.debug_hold_seconds

    def _limit_hold(self, job: Job, task: Task, outcome: Outcome) -> None:
        """Set the timer that ends a hold; of several holds the first rings, and sets it for the next."""
        end = (task.held or 0) + self._hold_ms
        known = self.timers.get(job.id, Timer.HOLD)
        if known is None or end < known:
            self._wake(job, Timer.HOLD, end, outcome)

    # -- helpers --------------------------------------------------------------------------------------------

    def _find(self, ref: TaskRef) -> tuple[Job, Attempt, Task] | None:
        """Find the task an engine speaks of; None where its attempt is no longer the present one."""
        job = self.jobs.get(ref.job_id)
        if job is None or job.attempt is None or job.attempt.number != ref.attempt:
            return None
        task = job.attempt.tasks.get((ref.role, ref.index))
        return None if task is None else (job, job.attempt, task)

    def _tell(
        self,
        outcome: Outcome,
        job: Job,
        time: int,
        kind: str,
        message: Message,
        task: Task | None = None,
        attempt: Attempt | None = None,
        data: dict[str, object] | None = None,
    ) -> None:
        job.latest = time
        number = task.ref.attempt if task else attempt.number if attempt else None
        role, index = (task.ref.role, task.ref.index) if task else (None, None)
        outcome.job_events.append(JobEvent(job.id, time, kind, message, number, role, index, data or {}))
