"""Hours of the day, as an administrator writes them: "08:00-20:00", also past midnight ("20:00-07:00")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-(?:([01]\d|2[0-3]):([0-5]\d)|(24:00))")
_DAY_MINUTES = 24 * 60


@dataclass(frozen=True, slots=True)
class Hours:
    """A part of every day, in minutes since midnight; `end` may be the next day's."""

    begin: int
    end: int

    def contain(self, local: datetime) -> bool:
        """Return whether a time of day is in it; `local` is in the administrator's time zone."""
        return self._minutes_left(local) is not None

    def end_after(self, local: datetime) -> datetime | None:
        """Return when the part that a time is in is over; None where the time is in none."""
        left = self._minutes_left(local)
        if left is None:
            return None
        # by the clock on the wall: where clocks are set meanwhile, that is what people mean
        return local.replace(second=0, microsecond=0) + timedelta(minutes=left)

    def _minutes_left(self, local: datetime) -> int | None:
        now = local.hour * 60 + local.minute
        # as yesterday's, which may last until today, and as today's
        for moment in (now + _DAY_MINUTES, now):
            if self.begin <= moment < self.end:
                return self.end - moment
        return None

    def __str__(self) -> str:
        end = self.end if self.end == _DAY_MINUTES else self.end % _DAY_MINUTES
        return f"{_clock(self.begin)}-{_clock(end)}"


def parse_hours(text: str) -> Hours:
    """Read "08:00-20:00"; ValueError where it is none."""
    found = _HOURS.fullmatch(text)
    if found is None:
        raise ValueError(text)
    begin = int(found[1]) * 60 + int(found[2])
    end = _DAY_MINUTES if found[5] else int(found[3]) * 60 + int(found[4])
    return Hours(begin, end if end > begin else end + _DAY_MINUTES)


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02}:{minutes % 60:02}"
