"""What engines say about tasks that go on all the same."""

from __future__ import annotations

from pai_scheduler.core.events import Notice, Noticed
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef


def process_killed(task: TaskRef, time: int, memory_mb: int) -> Noticed:
    """Return the notice that the kernel ended one of a task's processes for its memory limit (MB)."""
    message = msg(
        "A process of task {task} was killed for memory: together its processes used more than its {memory} "
        "MB. Ask for more memory, or use less.",
        task=task.hostname,
        memory=memory_mb,
    )
    return Noticed(task, time, Notice.PROCESS_KILLED, message, {"memoryMB": memory_mb})


def log_lost(task: TaskRef, time: int) -> Noticed:
    """Return the notice that the disk was too full for a task's log."""
    message = msg("The scheduler's disk is full: part of the log of task {task} is lost.", task=task.hostname)
    return Noticed(task, time, Notice.LOG_LOST, message)


def log_shortened(task: TaskRef, time: int, most_bytes: int) -> Noticed:
    """Return the notice that a task's log has grown beyond its limit (bytes)."""
    most = most_bytes // 2**20
    message = msg(
        "The log of task {task} is longer than {most} MB: its beginning and its newest part are kept, what "
        "was between them is not. Print less, or write it to a file in the storage.",
        task=task.hostname,
        most=most,
    )
    return Noticed(task, time, Notice.LOG_SHORTENED, message, {"maxMB": most})
