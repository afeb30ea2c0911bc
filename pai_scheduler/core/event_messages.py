"""Sentences of job events."""

from __future__ import annotations

from pai_scheduler.cluster.dispatcher import Start
from pai_scheduler.cluster.node import Maintenance, in_words
from pai_scheduler.i18n import Message, counted, msg

from . import completion
from .events import HeldAfterFailure
from .model import Job, State, Task, Verdict


def placed(job: Job, start: Start) -> Message:
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


def held(event: HeldAfterFailure, seconds: int) -> Message:
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


def task_ended(task: Task) -> Message:
    """A task is over."""
    where = task.ref.hostname
    if task.reason is not None:
        return msg("Task {task} has ended: {reason}", task=where, reason=task.reason)
    if task.state is State.STOPPED:
        return msg("Task {task} was stopped.", task=where)
    return msg("Task {task} has ended with exit code {code}.", task=where, code=task.exit_code)


def retried(verdict: Verdict, another: completion.Retry) -> Message:
    """An attempt is followed by another."""
    if another.delay_ms:
        seconds = another.delay_ms / 1000
        return msg("{reason} Trying again in {seconds:g} s.", reason=verdict.reason, seconds=seconds)
    return msg("{reason} Trying again at once.", reason=verdict.reason)


def maintenance(node: str, window: Maintenance) -> Message:
    """A job runs, or will, on a node that is down for a while before it must have ended."""
    return msg(
        "Maintenance of {node} begins at {begin} and is to end at {end}: {reason}. By then save what you "
        "need: the machine may be switched off.",
        node=node,
        begin=in_words(window.begin),
        end=in_words(window.end),
        reason=window.reason,
    )


def other_ports(count: int) -> Message:
    """Tasks have other ports than were chosen first."""
    return counted(
        "Other programs have ports that were chosen: {count} task has others now.",
        "Other programs have ports that were chosen: {count} tasks have others now.",
        count=count,
    )
