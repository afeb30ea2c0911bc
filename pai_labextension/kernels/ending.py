"""Why a kernel, or the job that it was, has ended: one sentence, with what to do."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail

from ..messages import counted, msg
from .job import ROLE

ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
_MINUTE = 60
_LOG_TAIL_BYTES, _LOG_TAIL_LINES = 4000, 12
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Ending:
    """Why nothing of a kernel's job runs any more; `log`: the last lines that its task wrote."""

    message: Message
    log: str = ""


def idle_ending(seconds: float) -> Ending:
    """Return the end of a kernel that nobody used for so long."""
    return Ending(
        counted(
            "Nobody used this kernel for {count} minute: it has ended, and its resources are free again.",
            "Nobody used this kernel for {count} minutes: it has ended, and its resources are free again.",
            count=max(1, round(seconds / _MINUTE)),
        )
    )


def out_of_memory(memory_mb: int) -> Message:
    """Return why a kernel died that needed more memory than its task has."""
    return msg(
        "The kernel needed more than its {memory} MB of memory, and was ended. What it knew is lost; "
        "a kernel with more memory would have room.",
        memory=memory_mb,
    )


def died(code: int) -> Message:
    """Return how a kernel died; `code` as `subprocess` has it."""
    if code < 0:
        return msg("The kernel was ended by signal {number}. What it knew is lost.", number=-code)
    return msg("The kernel ended with exit code {code}. What it knew is lost.", code=code)


async def ending_of(client: Client, user: str, detail: JobDetail) -> Ending | None:
    """Return why a job has ended; None where it has not."""
    status = detail["jobStatus"]
    if status["state"] not in ENDED and status["subState"] != "ENDING":
        return None
    if status["state"] == "STOPPED" or status["appExitCode"] == -7351:
        return Ending(msg("The job of this kernel was stopped."))
    if status["appExitCode"] == 0 or (status["state"] not in ENDED and status["appExitCode"] is None):
        return Ending(msg("The kernel has ended."))
    spec = status["appExitSpec"]
    why = status["appExitDiagnostics"] or (spec["phrase"] if spec else "")
    return Ending(
        msg("The job of this kernel ended with exit code {code}. {why}", code=status["appExitCode"], why=why),
        await _log_tail(client, user, detail["name"]),
    )


async def _log_tail(client: Client, user: str, job: str) -> str:
    try:
        tail = await client.log(user, job, ROLE, 0, "all", offset=-_LOG_TAIL_BYTES)
    except (ApiError, UnreachableError):
        return ""
    lines = _ANSI.sub("", tail.decode(errors="replace")).splitlines()
    return "\n".join(lines[-_LOG_TAIL_LINES:]).strip()
