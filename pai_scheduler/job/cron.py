"""When a cron expression is due in a time zone; daylight saving is handled as Debian's cron does."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo, available_timezones

from cronsim import CronSim, CronSimError

from pai_scheduler.i18n import Message, msg

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
