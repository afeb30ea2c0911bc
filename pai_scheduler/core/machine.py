"""The state machine: events in, changes and instructions out; no I/O, no clock, no randomness.

An attempt goes: placed (all tasks or none) → its tasks start → a verdict (by the completion policy, or a
user's stop) → the other tasks are ended → everything is released → another attempt, or the end of the job.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ..cluster.gang import DEFAULT_STORAGE_GB, gang_of, role_demand
from ..cluster.placement import Cluster, Demand
from ..cluster.queue import Queue
from ..job.messages import Message, msg
from ..job.task import TaskRef
from . import completion, retry
from .events import (
    Ended,
    Event,
    Held,
    NodesChanged,
    Progress,
    Reordered,
    SharesChanged,
    Started,
    StopRequested,
    Submitted,
    Tick,
)
from .instructions import KillTask, LaunchAttempt, Outcome, ReleaseAttempt, WakeAt
from .model import Attempt, Job, State, StoryEntry, SubState, Task, Verdict


@dataclass(frozen=True, slots=True)
class Settings:
    """What an administrator may set. Seconds and GB."""

    kill_grace_seconds: float = 10.0
    default_storage_gb: int = DEFAULT_STORAGE_GB


#: So much may the clocks of two machines (or of an engine and the service) differ without meaning anything.
_CLOCKS_DIFFER_MS = 60_000


class Core:
    """All jobs that have not ended, or still hold something; and the cluster they run on."""

    def __init__(self, cluster: Cluster, settings: Settings | None = None) -> None:
        self.cluster = cluster
        self.settings = settings or Settings()
        self.queue = Queue()
        self.jobs: dict[str, Job] = {}
        #: when the next attempt of a job may begin
        self._sleeping: dict[str, int] = {}

    def restore(self, jobs: Iterable[Job]) -> Outcome:
        """Take up what the store knows after a start.

        Books what runs, queues what waits, and says again what was being done (engines do nothing twice).
        The next event (a `Tick` will do) schedules.
        """
        outcome = Outcome()
        for job in sorted(jobs, key=lambda job: job.order):
            self.jobs[job.id] = job
            if job.attempt is not None and not _released(job.attempt):
                self._resume(job, job.attempt, outcome)
            elif not job.state.ended:
                verdict = job.attempt.verdict if job.attempt is not None else None
                job.last_failure = verdict.reason if verdict and verdict.state is State.FAILED else None
                self._wait(job, outcome)
            else:
                self._finish(job, outcome)
        return outcome

    def handle(self, event: Event, outcome: Outcome) -> None:
        """Take one event; add what follows from it to `outcome`. Events about what is over change nothing."""
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
            case NodesChanged():
                self._on_nodes(event)
            case Tick():
                self._on_tick(event, outcome)
            case Held() | Reordered() | SharesChanged():
                raise NotImplementedError(type(event).__name__)
        self._schedule(event.time, outcome)

    def demand(self, job: Job, task: Task) -> Demand:
        """Give what a task was given."""
        return role_demand(job.spec, job.spec.role(task.ref.role), self.settings.default_storage_gb)

    # -- events ---------------------------------------------------------------------------------------------

    def _on_submitted(self, event: Submitted, outcome: Outcome) -> None:
        job = Job(event.job_id, event.user, event.spec, event.time, order=event.order)
        self.jobs[job.id] = job
        self._tell(outcome, job, event.time, "submitted", msg("Submitted by {user}.", user=event.user))
        self._wait(job, outcome)

    def _on_stop(self, event: StopRequested, outcome: Outcome) -> None:
        job = self.jobs.get(event.job_id)
        if job is None:
            if event.delete:
                outcome.deleted.append(event.job_id)
            return
        job.doomed = job.doomed or event.delete
        outcome.jobs[job.id] = job
        if job.state.ended:
            return
        verdict = completion.stop_verdict(event.by)
        self._tell(outcome, job, event.time, "stop-requested", verdict.reason)
        if job.attempt is None or _released(job.attempt):
            self.queue.remove(job.id)
            self._end_job(job, verdict, event.time, outcome)
            self._finish(job, outcome)
        elif job.attempt.verdict is not None:
            # its last tasks are being stopped already; how it came out stays, but no other attempt follows
            self._end_job(job, verdict, event.time, outcome)
        else:
            self._decide(job, job.attempt, verdict, event.time, outcome)

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
            job.state, job.sub_state = State.RUNNING, SubState.RUNNING
            outcome.jobs[job.id] = job
            outcome.attempts[job.id, attempt.number] = attempt
            self._tell(outcome, job, event.time, "running", msg("All tasks run."), attempt=attempt)

    def _on_ended(self, event: Ended, outcome: Outcome) -> None:
        found = self._find(event.task)
        if found is None or found[2].state.ended:
            return
        job, attempt, task = found
        completion.end_task(task, event, attempt.verdict)
        self.cluster.release(self.demand(job, task), task.assignment)
        self.queue.unblock()
        outcome.tasks[task.ref] = task
        self._tell(outcome, job, event.time, "task-ended", _end_message(task), task)
        if attempt.verdict is None:
            verdict = completion.verdict_after(job.spec, attempt, task, event)
            if verdict is not None:
                self._decide(job, attempt, verdict, event.time, outcome)
                return
        if attempt.verdict is not None and _released(attempt):
            self._after_attempt(job, attempt, event.time, outcome)

    def _on_progress(self, event: Progress, outcome: Outcome) -> None:
        found = self._find(event.task)
        if found is None or found[2].state is not State.WAITING:
            return
        job, _, task = found
        job.progress = event.message
        data = {} if event.percent is None else {"percent": event.percent}
        entry = StoryEntry(
            job.id,
            event.time,
            "progress",
            event.message,
            task.ref.attempt,
            task.ref.role,
            task.ref.index,
            data,
        )
        outcome.story.append(entry)

    def _on_nodes(self, event: NodesChanged) -> None:
        self.cluster = self.cluster.emptied(event.nodes)
        for job in self.jobs.values():
            for task in job.attempt.tasks.values() if job.attempt else ():
                if not task.state.ended:
                    self.cluster.occupy(self.demand(job, task), task.assignment)
        self.queue.unblock()

    def _on_tick(self, event: Tick, outcome: Outcome) -> None:
        due = [
            job_id
            for job_id, time in self._sleeping.items()
            if time <= event.time or self._slept_later(job_id, event.time)
        ]
        for job_id in due:
            outcome.jobs[job_id] = self.jobs[job_id]
            self._enqueue(self.jobs[job_id])
        if self._sleeping:
            outcome.instructions.append(WakeAt(min(self._sleeping.values())))

    def _slept_later(self, job_id: str, now: int) -> bool:
        """Tell whether a job fell asleep later than now: the clock was set back, so its time is no use."""
        attempt = self.jobs[job_id].attempt
        return attempt is not None and (attempt.completed or 0) > now + _CLOCKS_DIFFER_MS

    # -- transitions ----------------------------------------------------------------------------------------

    def _wait(self, job: Job, outcome: Outcome) -> None:
        """Put a job in line, or let it sleep until its next attempt is due."""
        outcome.jobs[job.id] = job
        if job.not_before is not None:
            job.sub_state = SubState.RETRY_WAIT
            self._sleeping[job.id] = job.not_before
            outcome.instructions.append(WakeAt(job.not_before))
        else:
            self._enqueue(job)

    def _enqueue(self, job: Job) -> None:
        self._sleeping.pop(job.id, None)
        job.sub_state, job.not_before = SubState.QUEUED, None
        gang = gang_of(job.spec, self.settings.default_storage_gb)
        self.queue.add(job.id, job.spec.virtual_cluster, tuple(gang), job.order)

    def _schedule(self, time: int, outcome: Outcome) -> None:
        for job_id in self.queue.candidates():
            job = self.jobs[job_id]
            assignments = self.cluster.place(gang_of(job.spec, self.settings.default_storage_gb))
            if assignments is None:
                self.queue.block(job_id)
                continue
            self.queue.remove(job_id)
            number = 0 if job.attempt is None else job.attempt.number + 1
            attempt = job.attempt = Attempt(number, time)
            refs = [(role.name, index) for role in job.spec.task_roles for index in range(role.task_number)]
            for (role, index), assignment in zip(refs, assignments, strict=True):
                task = Task(TaskRef(job.id, number, role, index), assignment)
                attempt.tasks[role, index] = task
                outcome.tasks[task.ref] = task
            job.sub_state, job.progress = SubState.STARTING, None
            outcome.jobs[job.id] = job
            outcome.attempts[job.id, number] = attempt
            outcome.instructions.append(LaunchAttempt(job.id, number))
            nodes = ", ".join(sorted({assignment.node for assignment in assignments}))
            self._tell(
                outcome,
                job,
                time,
                "placed",
                msg("Has its resources on {nodes}.", nodes=nodes),
                attempt=attempt,
            )

    def _decide(self, job: Job, attempt: Attempt, verdict: Verdict, time: int, outcome: Outcome) -> None:
        """The attempt is decided: end what still runs, and the job with it unless another attempt follows."""
        attempt.verdict = verdict
        outcome.attempts[job.id, attempt.number] = attempt
        ran = time - attempt.launched if attempt.launched is not None else 0
        another = retry.retry_after(job, verdict, ran)
        if another is None:
            self._end_job(job, verdict, time, outcome)
        else:
            setattr(job.retries, another.kind, getattr(job.retries, another.kind) + 1)
            job.retries.streak += 1
            job.last_failure = verdict.reason if verdict.state is State.FAILED else None
            job.state = State.WAITING
            job.not_before = time + another.delay_ms if another.delay_ms else None
            self._tell(outcome, job, time, "retry", _retry_message(verdict, another), attempt=attempt)
        job.sub_state = SubState.ENDING
        outcome.jobs[job.id] = job
        for task in attempt.tasks.values():
            if not task.state.ended:
                task.killing = True
                outcome.tasks[task.ref] = task
                outcome.instructions.append(KillTask(task.ref, self.settings.kill_grace_seconds))
        if _released(attempt):
            self._after_attempt(job, attempt, time, outcome)

    def _after_attempt(self, job: Job, attempt: Attempt, time: int, outcome: Outcome) -> None:
        """All tasks are over: let go of everything, then wait for the next attempt or be done."""
        attempt.completed = time
        outcome.attempts[job.id, attempt.number] = attempt
        outcome.instructions.append(ReleaseAttempt(job.id, attempt.number))
        if job.state.ended:
            self._finish(job, outcome)
        else:
            self._wait(job, outcome)

    def _end_job(self, job: Job, verdict: Verdict, time: int, outcome: Outcome) -> None:
        job.state, job.verdict, job.completed, job.not_before = verdict.state, verdict, time, None
        outcome.jobs[job.id] = job
        self._tell(outcome, job, time, "ended", verdict.reason, data={"state": str(verdict.state)})

    def _finish(self, job: Job, outcome: Outcome) -> None:
        """Nothing of the job is left: the store keeps it, the core forgets it."""
        job.sub_state = SubState.ENDED
        outcome.jobs[job.id] = job
        del self.jobs[job.id]
        self._sleeping.pop(job.id, None)
        if job.doomed:
            outcome.deleted.append(job.id)

    def _resume(self, job: Job, attempt: Attempt, outcome: Outcome) -> None:
        """Book what an attempt holds, and say again what was being done about it."""
        for task in attempt.tasks.values():
            if not task.state.ended:
                self.cluster.occupy(self.demand(job, task), task.assignment)
                if task.killing:
                    outcome.instructions.append(KillTask(task.ref, self.settings.kill_grace_seconds))
        tasks = attempt.tasks.values()
        if attempt.verdict is None and any(task.started is None and not task.state.ended for task in tasks):
            outcome.instructions.append(LaunchAttempt(job.id, attempt.number))

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
        number = task.ref.attempt if task else attempt.number if attempt else None
        role, index = (task.ref.role, task.ref.index) if task else (None, None)
        outcome.story.append(StoryEntry(job.id, time, kind, message, number, role, index, data or {}))


def _released(attempt: Attempt) -> bool:
    """Tell whether nothing of an attempt runs or may still be started."""
    return attempt.verdict is not None and all(task.state.ended for task in attempt.tasks.values())


def _end_message(task: Task) -> Message:
    where = task.ref.hostname
    if task.reason is not None:
        return msg("Task {task} has ended: {reason}", task=where, reason=task.reason)
    if task.state is State.STOPPED:
        return msg("Task {task} was stopped.", task=where)
    return msg("Task {task} has ended with exit code {code}.", task=where, code=task.exit_code)


def _retry_message(verdict: Verdict, another: retry.Retry) -> Message:
    if another.delay_ms:
        seconds = another.delay_ms / 1000
        return msg("{reason} Trying again in {seconds:g} s.", reason=verdict.reason, seconds=seconds)
    return msg("{reason} Trying again at once.", reason=verdict.reason)
