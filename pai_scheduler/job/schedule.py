"""A schedule: whose job runs again and again, when, and what came of it last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from zoneinfo import ZoneInfo

from pai_scheduler.i18n import Message

#: Characters of a schedule's name: the names of its runs are longer by up to 18.
LONGEST_NAME = 230
_NAME = re.compile(r"[A-Za-z0-9._~-]+")
#: What follows the schedule's name in a run's: when it was due, or when somebody started it.
_WHEN = re.compile(r"-\d{8}-(\d{4}|\d{6})(-2)?")


class Overlap(StrEnum):
    """What is done when a run is due while another of the same schedule has not ended."""

    SKIP = "skip"
    ALLOW = "allow"


class Outcome(StrEnum):
    """What came of a time at which a run was due."""

    SUBMITTED = "submitted"
    REFUSED = "refused"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class LastRun:
    """What came last of a schedule, at `time` (ms since the epoch); `message` says why it did not run."""

    job: str
    time: int
    outcome: Outcome
    message: Message | None = None


@dataclass(frozen=True, slots=True)
class Schedule:
    """A schedule without its job. Times in ms since the epoch; `next` None: it is paused, or never due."""

    user: str
    name: str
    cron: str
    zone: str
    overlap: Overlap
    paused: bool
    created: int
    next: int | None
    last: LastRun | None = None


def is_schedule_name(text: str) -> bool:
    """Return whether a schedule may be called so: as jobs are, but for the length."""
    return len(text) <= LONGEST_NAME and text not in (".", "..") and _NAME.fullmatch(text) is not None


def run_name(schedule: str, due: int, zone: str, *, seconds: bool = False) -> str:
    """Return what the run that is due at `due` (ms since the epoch) is called: `<schedule>-<yyyymmdd-hhmm>`.

    The time is that of the zone. Where an hour comes twice, at the end of summer time, the runs of the second
    one end in `-2`. The same run always has the same name, so that it is submitted once. `seconds`: for runs
    that somebody starts, of which there may be several in a minute.
    """
    local = datetime.fromtimestamp(due / 1000, ZoneInfo(zone))
    again = "-2" if local.fold else ""
    return f"{schedule}-{local:%Y%m%d-%H%M%S}{again}" if seconds else f"{schedule}-{local:%Y%m%d-%H%M}{again}"


def is_run_of(schedule: str, job: str) -> bool:
    """Return whether a job of the same user is called like a run of this schedule."""
    return job.startswith(schedule) and _WHEN.fullmatch(job, len(schedule)) is not None
