"""Exit reasons of tasks that did not end by themselves, as sentences."""

from __future__ import annotations

import errno
import os

from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.disk_usage import filled_the_disk
from pai_scheduler.i18n import Message, msg

from .task_folder import Failure, TaskRecord


def port_taken(port: int) -> Message:
    """Return a sentence that says that another program has a task's port."""
    return msg(
        "Port {port} of this machine is taken by another program. Where the job names it, give another "
        "beginAt, or 0; one that was chosen is another one at the next try.",
        port=port,
    )


def cause_and_reason(record: TaskRecord) -> tuple[EndCause, Message | None]:
    """Return why a task ended, by its record, and what there is to say about that."""
    cause = EndCause(record.get("cause", EndCause.LOST))
    failure = record.get("failure")
    reason: Message | None = None
    if cause is EndCause.LOST:
        reason = _lost(failure)
    elif cause is EndCause.OOM:
        reason = msg(
            "The task used more than its {memory} MB of memory, and was ended. Ask for more, or use less.",
            memory=record.get("memory_mb"),
        )
    elif cause is EndCause.DISK and record.get("disk_was_full"):
        reason = filled_the_disk()
    elif cause is EndCause.DISK:
        reason = msg(
            "The task wrote more than its {storage} GB to its working folder, and was ended. Raise "
            "storageGB, or write less.",
            storage=record.get("storage_gb"),
        )
    elif failure and cause is EndCause.LAUNCH_FAILED:
        cause, reason = _launch_failed(failure)
    elif failure and cause is EndCause.PORT_CONFLICT:
        reason = port_taken(failure.get("errno", 0))
    if dropped := record.get("dropped"):
        lost = msg("The disk for logs is full: the last {bytes} bytes of its output are lost.", bytes=dropped)
        reason = msg("{first} {second}", first=reason, second=lost) if reason else lost
    return cause, reason


def _lost(failure: Failure | None) -> Message:
    if failure:
        return msg(
            "The process that watched over the task failed, so the task was ended: {problem}",
            problem=failure.get("detail", "").strip().rpartition("\n")[2],
        )
    return msg(
        "The process that watched over the task was ended (or the machine was), so how the task ended is not "
        "known."
    )


def _launch_failed(failure: Failure) -> tuple[EndCause, Message]:
    number = failure.get("errno", 0)
    problem = os.strerror(number) if number else failure.get("detail", "")
    match failure.get("kind"), number:
        case "exec", errno.E2BIG:
            return EndCause.REFUSED, msg(
                "The command or one of its environment variables is too long for this machine: each must be "
                "shorter than 128 KB, and all together shorter than a fourth of the stack limit."
            )
        case "exec", errno.EINVAL:
            return EndCause.REFUSED, msg(
                "The command or one of its environment variables holds a character that no program can be "
                "given (such as NUL)."
            )
        case "exec", _:
            return EndCause.LAUNCH_FAILED, msg("The command could not be started: {problem}", problem=problem)
        case "limits", _:
            return EndCause.LAUNCH_FAILED, msg(
                "The task's limits could not be set ({file}): {problem}",
                file=failure.get("detail", ""),
                problem=problem,
            )
        case "code", _:
            return EndCause.LAUNCH_FAILED, msg(
                "The code could not be copied into the task's working folder: {problem}", problem=problem
            )
        case "mount", 0:
            return EndCause.REFUSED, msg(
                "The process engine mounts data in the working folder only: give a target without a slash "
                "before it, instead of {target}.",
                target=failure.get("detail", ""),
            )
        case "home", _:
            return EndCause.REFUSED, msg(
                "The process engine has no homes, as nothing can be mounted at {place} for one task alone: "
                "leave extras.home out, and keep what is to stay in the storage.",
                place=failure.get("detail", ""),
            )
        case "mount", _:
            return EndCause.LAUNCH_FAILED, msg("The data could not be mounted: {problem}", problem=problem)
        case (("log" | "folder"), (errno.ENOSPC | errno.EDQUOT)):
            return EndCause.LAUNCH_FAILED, msg(
                "There is no room on the scheduler's disk for the task's folder."
            )
        case (("log" | "folder"), _):
            return EndCause.LAUNCH_FAILED, msg(
                "The task's folder could not be made: {problem}", problem=problem
            )
        case _:
            detail = failure.get("detail", "").strip().rpartition("\n")[2]
            return EndCause.LAUNCH_FAILED, msg("The task could not be started: {problem}", problem=detail)
