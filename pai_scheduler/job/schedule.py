"""A schedule: whose job runs again and again, when, and what came of it last."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from pai_scheduler.i18n import Message, msg

# When a cron expression is due in a time zone; daylight saving is handled as Debian's cron does.

#: Characters of an expression, so that reading one takes no time worth naming.
LONGEST_CRON = 200
_FIELDS = 5


class ScheduleError(Exception):
    """A schedule says nothing that can be carried out; `field`: which part of it ("cron", "timeZone")."""

    def __init__(self, field: str, message: Message) -> None:
        super().__init__(str(message))
        self.field = field
        self.message = message


def next_time(cron: str, zone: str, after: int) -> int | None:
    """Return the first time that is due later than `after`; None where none comes in fifty years.

    Times in ms since the epoch. ScheduleError where the expression or the zone is wrong.
    """
    start = datetime.fromtimestamp(after / 1000, _zone(zone))
    if len(cron) > LONGEST_CRON or len(cron.split()) != _FIELDS:
        raise ScheduleError(
            "cron",
            msg(
                "A cron expression has five fields: minute, hour, day of the month, month, day of the week. "
                "For example {example} is half past two every night.",
                example="30 2 * * *",
            ),
        )
    try:
        for moment in CronSim(cron, start):
            due = round(moment.timestamp() * 1000)
            # a time of the hour that comes twice is due in the first of both alone
            if due > after:
                return due
    except (CronSimError, AssertionError, ValueError) as error:
        raise ScheduleError(
            "cron", msg("The cron expression {text} is wrong: {reason}.", text=cron, reason=_reason(error))
        ) from None
    return None


def _reason(error: Exception) -> Message:
    """Say which field is wrong; the library says `Bad hour`."""
    names = {
        "Bad minute": msg("minute must be 0 to 59"),
        "Bad hour": msg("hour must be 0 to 23"),
        "Bad day-of-month": msg("day of the month must be 1 to 31, and one that there is"),
        "Bad month": msg("month must be 1 to 12 or JAN to DEC"),
        "Bad day-of-week": msg("day of the week must be 0 to 7 (0 and 7 are Sunday) or SUN to SAT"),
    }
    return names.get(str(error), msg("it cannot be read"))


def _zone(name: str) -> ZoneInfo:
    # only a name that is known: others would be looked up as files
    if name not in _zones():
        raise ScheduleError(
            "timeZone",
            msg(
                "There is no time zone {name}. Give an IANA name: Europe/Berlin, Asia/Shanghai, UTC.",
                name=name,
            ),
        )
    return ZoneInfo(name)


@lru_cache(maxsize=1)
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


# A schedule: whose job runs again and again, when, and what came of it last.

#: Characters of a schedule's name: the names of its runs are longer by up to 18.
LONGEST_NAME = 230
_NAME = re.compile(r"[A-Za-z0-9._~-]+")
#: What follows the schedule's name in a run's: when it was due, or when somebody started it.
_WHEN = re.compile(r"-\d{8}-(\d{4}|\d{6})(-2)?")


class Overlap(StrEnum):
    """Policy for a run that is due while another run of the same schedule has not ended."""

    SKIP = "skip"
    ALLOW = "allow"


class RunOutcome(StrEnum):
    """Outcome of a run that was due."""

    SUBMITTED = "submitted"
    REFUSED = "refused"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class LastRun:
    """Last outcome of a schedule, at `time` (ms since the epoch); `message` says why it did not run."""

    job: str
    time: int
    outcome: RunOutcome
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
