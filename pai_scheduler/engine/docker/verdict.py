"""Judges how a task's container ended, from what was seen of it; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pai_scheduler.core.events import EndCause
from pai_scheduler.engine.disk_meter import filled_the_disk
from pai_scheduler.i18n import Message, msg

from .disk import storage_gb
from .hold import HoldReport

#: What Docker records where it was not there to see how a container ended.
UNSEEN_EXIT = 255
_KILLED_EXIT = 137


@dataclass(frozen=True, slots=True)
class Observations:
    """What was seen of a task until its container ended; times are ms since the epoch.

    `exit_code`: as Docker's events told it. `signalled`: the container ran when it was sent a signal.
    `no_room`: it is ended because a disk of its machine is full, not because of its own limit.
    """

    exit_code: int | None = None
    oom: bool = False
    signalled: bool = False
    killed_at: int | None = None
    disk_full_at: int | None = None
    no_room: bool = False
    held: HoldReport | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a task ended; `process_killed`: one of its processes was killed for memory, and it went on."""

    cause: EndCause
    exit_code: int | None
    time: int
    reason: Message | None = None
    process_killed: bool = False


def judge(seen: Observations, container: Mapping[str, Any] | None, now: int) -> Verdict:
    """Return how a container ended that is described so (None: it is gone), noticed at `now` (ms)."""
    code, when, oom = seen.exit_code, now, seen.oom
    if container is not None:
        state = container["State"]
        code, oom = int(state["ExitCode"]), oom or bool(state["OOMKilled"])
        # Docker notes a start a moment after it, so a short task may seem to end before
        when = max(read_time(state["FinishedAt"]), read_time(state["StartedAt"]))
    if seen.signalled:  # whatever the clock was set to meanwhile
        when = max(when, seen.killed_at or 0, seen.disk_full_at or 0)
    process_killed = oom and not (code and seen.killed_at is None and seen.disk_full_at is None)
    if seen.held is not None:  # what ended later was the hold
        code, oom = seen.held.exit_code, seen.held.cause is EndCause.OOM
    killed_at = seen.killed_at if seen.killed_at is not None and seen.killed_at <= when else None
    reason: Message | None = None
    if seen.disk_full_at is not None and seen.disk_full_at <= min(when, killed_at or when):
        cause, code, reason = EndCause.DISK, _KILLED_EXIT, _disk_reason(seen, container)
    elif killed_at is not None:
        cause = EndCause.KILLED
    elif code is None:
        cause, reason = EndCause.LOST, msg("The container was removed by somebody else while it ran.")
    elif code and oom:
        cause = EndCause.OOM
    elif code == UNSEEN_EXIT and seen.exit_code is None and seen.held is None:
        cause, code = EndCause.LOST, None
        reason = msg("The machine or its Docker Engine went down while the task ran.")
    else:
        cause = EndCause.EXITED
    return Verdict(cause, code, when, reason, process_killed)


def _disk_reason(seen: Observations, container: Mapping[str, Any] | None) -> Message | None:
    if seen.no_room:
        return filled_the_disk()
    limit = storage_gb(container) if container is not None else None
    if limit is None:
        return None
    return msg(
        "The task wrote more than its {storage} GB to its disk, and was ended. Ask for more with "
        "storageGB, or write less.",
        storage=limit,
    )


def read_time(text: str) -> int:
    """Return one of Docker's times (RFC 3339) as ms since the epoch."""
    return int(datetime.fromisoformat(text).timestamp() * 1000)
