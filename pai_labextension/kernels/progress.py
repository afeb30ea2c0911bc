"""Where a kernel that is a job is on its way, as people are told."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pai_scheduler.i18n import Message


class Phase(StrEnum):
    """Where a kernel is."""

    WAITING = "waiting"
    STARTING = "starting"
    RUNNING = "running"
    #: it runs on, but cannot be reached just now
    LOST = "lost"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Progress:
    """What a person is told of a kernel: `reason` why it is not running, or why it died the last time."""

    phase: Phase
    reason: Message | str = ""
    place: int | None = None
