"""End of an attempt by its roles' completion policies, the retry after it, and the sentences told of jobs."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

from pai_scheduler.cluster.dispatcher import Start
from pai_scheduler.cluster.node import Maintenance, in_words
from pai_scheduler.i18n import Message, counted, msg
from pai_scheduler.job.exit_codes import (
    CONTAINER_START_FAILED,
    DEPENDENCY_NEVER_SATISFIED,
    NODE_LOST,
    OUT_OF_DISK,
    OUT_OF_MEMORY,
    PREEMPTED,
    STOPPED_BY_USER,
    STOPPED_ON_COMPLETION,
    Behavior,
    exit_spec,
    meaning_of_exit,
    spec_of_user_exit,
)
from pai_scheduler.job.message_documents import message_document
from pai_scheduler.job.spec import END, FAILURE, JobSpec

from .dependencies import Dependency, never_satisfied
from .events import EndCause, Ended, HeldAfterFailure
from .instructions import MAIL, WEBHOOK, Announcement
from .model import Attempt, Job, State, Task, Verdict

# Whether an attempt is followed by another, and when: by the exit table (job-contract.md, section 3).

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


# When an attempt is over, and how: the completion policy of each role (job-contract.md, section 3).

#: Row of an end of which nothing is known, and of a port that another program has.
EXIT_CODE_LOST, PORT_CONFLICT = 154, -7103
REFUSED = -7300

_PLATFORM_ROWS = {
    EndCause.LAUNCH_FAILED: CONTAINER_START_FAILED,
    EndCause.PORT_CONFLICT: PORT_CONFLICT,
    EndCause.REFUSED: REFUSED,
    EndCause.LOST: EXIT_CODE_LOST,
    EndCause.NODE_LOST: NODE_LOST,
    EndCause.OOM: OUT_OF_MEMORY,
    EndCause.DISK: OUT_OF_DISK,
}


def exit_row(event: Ended) -> int:
    """Return the code of the exit table's row that decides about this end."""
    if event.cause in _PLATFORM_ROWS:
        return _PLATFORM_ROWS[event.cause]
    return EXIT_CODE_LOST if event.exit_code is None else spec_of_user_exit(event.exit_code).code


def reported_exit(event: Ended) -> int:
    """Return the exit code that a person sees: the real one, or the table's where the platform ended it."""
    if event.cause in (EndCause.EXITED, EndCause.OOM, EndCause.DISK) and event.exit_code is not None:
        return event.exit_code
    return exit_row(event)


def verdict_after(spec: JobSpec, attempt: Attempt, task: Task, event: Ended) -> Verdict | None:
    """Decide whether this task's end decides the attempt; None where it goes on."""
    role = spec.role(task.ref.role)
    peers = [peer for (name, _), peer in attempt.tasks.items() if name == role.name]
    failed = sum(peer.state is State.FAILED for peer in peers)
    succeeded = sum(peer.state is State.SUCCEEDED for peer in peers)
    lost = sum(other.state is State.FAILED for other in attempt.tasks.values())
    trigger = (task.ref.role, task.ref.index)
    if (
        task.state is State.FAILED
        and role.min_failed_task_count is not None
        and failed >= role.min_failed_task_count
    ):
        return Verdict(State.FAILED, reported_exit(event), exit_row(event), trigger, _failure(task, event))
    if (
        task.state is State.SUCCEEDED
        and role.min_succeeded_task_count is not None
        and succeeded >= role.min_succeeded_task_count
    ):
        reason = counted(
            "{count} task of role {role} has succeeded.",
            "{count} tasks of role {role} have succeeded.",
            count=succeeded,
            role=role.name,
        )
        if lost:
            reason = counted(
                "{reason} {count} task had failed before.",
                "{reason} {count} tasks had failed before.",
                reason=reason,
                count=lost,
            )
        return Verdict(State.SUCCEEDED, 0, 0, trigger, reason)
    if all(other.state.ended for other in attempt.tasks.values()):
        reason = msg("All tasks have completed.")
        if lost:
            reason = msg("All tasks have completed; {count} of them failed.", count=lost)
        return Verdict(State.SUCCEEDED, 0, 0, trigger, reason)
    return None


def stop_verdict(by: str, why: str = "") -> Verdict:
    """Return the verdict of a job that a user stopped; `why`: in their own words, where they said it."""
    reason = msg("Stopped by {user}: {why}", user=by, why=why) if why else msg("Stopped by {user}.", user=by)
    return Verdict(State.STOPPED, STOPPED_BY_USER, STOPPED_BY_USER, None, reason)


def dependency_verdict(dependency: Dependency, state: State | None) -> Verdict:
    """Return the verdict of a job that waits for one that ended otherwise; `state` None: it was deleted."""
    code = DEPENDENCY_NEVER_SATISFIED
    return Verdict(State.STOPPED, code, code, None, never_satisfied(dependency, state))


def time_limit_verdict(seconds: int) -> Verdict:
    """Return the verdict of an attempt that ran for as long as it might: as if its user had stopped it."""
    reason = msg(
        "Stopped after running for its time limit of {seconds} s (extras.maxRunSeconds, or the limit of its "
        "virtual cluster).",
        seconds=seconds,
    )
    return Verdict(State.STOPPED, STOPPED_BY_USER, STOPPED_BY_USER, None, reason)


def ports_verdict() -> Verdict:
    """Return the verdict of an attempt for which other programs leave too few ports."""
    reason = msg(
        "Other programs have so many ports of this machine that too few are left to choose from. Ask for "
        "fewer ports or tasks, or end what holds them."
    )
    return Verdict(State.FAILED, PORT_CONFLICT, PORT_CONFLICT, None, reason)


def preempt_verdict(virtual_cluster: str) -> Verdict:
    """Return the verdict of an attempt that was stopped because others need what it had borrowed."""
    return _preempted(
        msg(
            "Preempted: virtual cluster {vc} had borrowed its resources, and another one, to which they are "
            "guaranteed, needs them.",
            vc=virtual_cluster,
        )
    )


def yield_verdict(virtual_cluster: str, *, by_need: bool) -> Verdict:
    """Return the verdict of an attempt that was stopped for a job of its own virtual cluster.

    `by_need`: as that one needs less to its end; else as it has had less.
    """
    if by_need:
        return _preempted(
            msg(
                "Preempted: in virtual cluster {vc} jobs that need less to their end come first, and one of "
                "them needs its resources.",
                vc=virtual_cluster,
            )
        )
    return _preempted(
        msg(
            "Preempted: in virtual cluster {vc} jobs that have had less come first, and one of them needs "
            "its resources.",
            vc=virtual_cluster,
        )
    )


def _preempted(reason: Message) -> Verdict:
    return Verdict(State.STOPPED, PREEMPTED, PREEMPTED, None, reason)


def end_task(task: Task, event: Ended, attempt_verdict: Verdict | None) -> Ended:
    """Write a task's end into it; a task that the scheduler ended has the exit code that says why.

    Returns the end that counts: of a held task that of its command, whatever ended its container.
    """
    if task.held is not None and task.held_cause is not None:
        event = Ended(task.ref, event.time, task.held_cause, task.exit_code)
    task.ended = event.time
    task.reason = event.reason
    ended_by_us = attempt_verdict is not None and event.cause is not EndCause.EXITED and task.held is None
    if ended_by_us and attempt_verdict is not None:
        task.state = State.STOPPED
        of_the_job = attempt_verdict.exit_row in (STOPPED_BY_USER, PREEMPTED)
        task.exit_code = attempt_verdict.exit_row if of_the_job else STOPPED_ON_COMPLETION
        return event
    task.exit_code = reported_exit(event)
    task.state = State.SUCCEEDED if event.cause is EndCause.EXITED and event.exit_code == 0 else State.FAILED
    return event


def _failure(task: Task, event: Ended) -> Message:
    where = f"{task.ref.role}-{task.ref.index}"
    if event.reason is not None:
        return msg("Task {task} failed: {reason}", task=where, reason=event.reason)
    if event.cause is EndCause.OOM:
        return msg(
            "Task {task} was ended because it used more memory than it asked for: "
            "ask for more (memoryMB), or use less.",
            task=where,
        )
    if event.cause is EndCause.DISK:
        return msg(
            "Task {task} was ended because it wrote more to its disk than it asked for: raise storageGB, or "
            "write less.",
            task=where,
        )
    if event.cause is EndCause.LOST:
        return msg("Task {task} was lost: how it ended is not known.", task=where)
    code = reported_exit(event)
    return msg(
        "Task {task} ended with exit code {code}. {meaning}",
        task=where,
        code=code,
        meaning=meaning_of_exit(exit_row(event), code),
    )


# Who outside is to be told of a job's end: decided when it ends, and written down with it.


def announcements(job: Job) -> list[Announcement]:
    """Decide who is told that a job has ended. Nobody of one that its user deletes."""
    wanted = job.spec.notify
    if wanted is None or job.verdict is None or job.completed is None or job.doomed:
        return []
    if END not in wanted.on and not (FAILURE in wanted.on and job.state is State.FAILED):
        return []
    document = {
        "name": job.name,
        "username": job.user,
        "virtualCluster": job.spec.virtual_cluster,
        "state": str(job.state),
        "appExitCode": job.verdict.exit_code,
        "retries": job.retries.total,
        "createdTime": job.created,
        "completedTime": job.completed,
        "reason": message_document(job.verdict.reason),
    }
    targets = [(WEBHOOK, wanted.webhook)] if wanted.webhook else []
    if wanted.mail:
        targets.append((MAIL, wanted.mail if isinstance(wanted.mail, str) else ""))
    return [
        Announcement(job.id, channel, job.user, target, job.completed, document)
        for channel, target in targets
    ]


# Sentences of job events.


def placed_text(job: Job, start: Start) -> Message:
    """A job has its resources."""
    nodes = ", ".join(sorted({assignment.node for assignment in start.assignments}))
    if not start.borrows:
        return msg("Has its resources on {nodes}.", nodes=nodes)
    return msg(
        "Has its resources on {nodes}, beyond the guaranteed share of virtual cluster {vc}: "
        "it may be stopped for others, and is queued again then.",
        nodes=nodes,
        vc=job.spec.virtual_cluster,
    )


def held_text(event: HeldAfterFailure, seconds: int) -> Message:
    """A failed task of a debugged job keeps its container for so many seconds."""
    return counted(
        "Task {task} has ended with exit code {code}; as the job is debugged (isDebug), its container "
        "stays for {count:g} hour, or until the job is stopped.",
        "Task {task} has ended with exit code {code}; as the job is debugged (isDebug), its container "
        "stays for {count:g} hours, or until the job is stopped.",
        task=event.task.hostname,
        code=event.exit_code,
        count=seconds / 3600,
    )


def task_ended_text(task: Task) -> Message:
    """A task is over."""
    where = task.ref.hostname
    if task.reason is not None:
        return msg("Task {task} has ended: {reason}", task=where, reason=task.reason)
    if task.state is State.STOPPED:
        return msg("Task {task} was stopped.", task=where)
    return msg("Task {task} has ended with exit code {code}.", task=where, code=task.exit_code)


def retried_text(verdict: Verdict, another: Retry) -> Message:
    """An attempt is followed by another."""
    if another.delay_ms:
        seconds = another.delay_ms / 1000
        return msg("{reason} Trying again in {seconds:g} s.", reason=verdict.reason, seconds=seconds)
    return msg("{reason} Trying again at once.", reason=verdict.reason)


def maintenance_text(node: str, window: Maintenance) -> Message:
    """A job runs, or will, on a node that is down for a while before it must have ended."""
    return msg(
        "Maintenance of {node} begins at {begin} and is to end at {end}: {reason}. By then save what you "
        "need: the machine may be switched off.",
        node=node,
        begin=in_words(window.begin),
        end=in_words(window.end),
        reason=window.reason,
    )


def other_ports_text(count: int) -> Message:
    """Tasks have other ports than were chosen first."""
    return counted(
        "Other programs have ports that were chosen: {count} task has others now.",
        "Other programs have ports that were chosen: {count} tasks have others now.",
        count=count,
    )
