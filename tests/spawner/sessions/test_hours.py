"""Hours of the day."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from pai_spawner.sessions.policy import parse_hours


def at(clock: str, day: int = 24) -> datetime:
    return datetime.fromisoformat(f"2026-11-{day:02}T{clock}:00").replace(tzinfo=ZoneInfo("Asia/Shanghai"))


@pytest.mark.parametrize(
    ("text", "clock", "end"),
    [
        ("08:00-20:00", "08:00", at("20:00")),
        ("08:00-20:00", "19:59", at("20:00")),
        ("08:00-20:00", "20:00", None),
        ("08:00-20:00", "07:59", None),
        ("20:00-07:00", "23:00", at("07:00", 25)),
        ("20:00-07:00", "03:00", at("07:00")),
        ("20:00-07:00", "07:00", None),
        ("00:00-24:00", "12:00", at("00:00", 25)),
        ("09:00-09:00", "08:59", at("09:00")),
    ],
)
def test_a_time_is_within_hours_until_they_are_over(text: str, clock: str, end: datetime | None) -> None:
    hours = parse_hours(text)
    assert hours.end_after(at(clock)) == end
    assert hours.contain(at(clock)) == (end is not None)
    assert str(hours) == text


@pytest.mark.parametrize("text", ["8:00-20:00", "08:00", "24:00-08:00", "08:60-09:00", "08:00-24:01", ""])
def test_what_is_no_part_of_a_day_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=f"^{text}$"):
        parse_hours(text)
