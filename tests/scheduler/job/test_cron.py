"""When a cron expression is due, summer time included."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from pai_scheduler.job.schedule import ScheduleError, next_time


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def _due(cron: str, zone: str, after: str, times: int = 1) -> list[str]:
    """Return the next times, as the zone's clocks show them."""
    found, moment = [], _ms(after)
    for _ in range(times):
        following = next_time(cron, zone, moment)
        assert following is not None
        moment = following
        found.append(datetime.fromtimestamp(moment / 1000, ZoneInfo(zone)).isoformat())
    return found


def test_an_expression_is_read_in_its_time_zone() -> None:
    assert _due("30 2 * * *", "Asia/Shanghai", "2026-11-25T00:00:00+00:00") == ["2026-11-26T02:30:00+08:00"]
    assert _due("0 9 * * MON-FRI", "UTC", "2026-11-27T09:00:00+00:00") == ["2026-11-30T09:00:00+00:00"]


def test_a_time_that_is_due_just_now_is_not_due_again() -> None:
    assert next_time("* * * * *", "UTC", 60_000) == 120_000
    assert next_time("* * * * *", "UTC", 60_500) == 120_000


def test_a_time_that_summer_time_leaves_out_comes_when_the_clocks_have_been_put_forward() -> None:
    assert _due("30 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00+01:00", 2) == [
        "2026-03-29T03:00:00+02:00",
        "2026-03-30T02:30:00+02:00",
    ]


def test_a_time_that_comes_twice_is_due_once() -> None:
    berlin = "Europe/Berlin"
    assert _due("30 2 * * *", berlin, "2026-10-24T12:00:00+02:00", 2) == [
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]
    # and not again for what begins between both
    assert _due("30 2 * * *", berlin, "2026-10-25T02:10:00+01:00") == ["2026-10-26T02:30:00+01:00"]


def test_what_runs_every_hour_runs_in_both_hours() -> None:
    assert _due("0 * * * *", "Europe/Berlin", "2026-10-25T01:00:00+02:00", 3) == [
        "2026-10-25T02:00:00+02:00",
        "2026-10-25T02:00:00+01:00",
        "2026-10-25T03:00:00+01:00",
    ]


@pytest.mark.parametrize(
    ("cron", "zone", "field", "sentence"),
    [
        ("", "UTC", "cron", "five fields"),
        ("0 0 * * * *", "UTC", "cron", "five fields"),
        ("@daily", "UTC", "cron", "five fields"),
        ("1," * 200 + "1 * * * *", "UTC", "cron", "five fields"),
        ("61 * * * *", "UTC", "cron", "minute must be 0 to 59"),
        ("0 24 * * *", "UTC", "cron", "hour must be 0 to 23"),
        ("0 0 31 2 *", "UTC", "cron", "day of the month"),
        ("0 0 * * XYZ", "UTC", "cron", "day of the week"),
        ("0 0 * 13 *", "UTC", "cron", "month must be 1 to 12"),
        ("0 0 * * 1#2/3", "UTC", "cron", "day of the week"),
        ("* * * * *", "Mars/Olympus", "timeZone", "no time zone Mars/Olympus"),
        ("* * * * *", "../../etc/passwd", "timeZone", "no time zone"),
        ("* * * * *", "", "timeZone", "no time zone"),
    ],
)
def test_what_is_wrong_is_said(cron: str, zone: str, field: str, sentence: str) -> None:
    with pytest.raises(ScheduleError) as error:
        next_time(cron, zone, _ms("2026-11-25T00:00:00+00:00"))
    assert error.value.field == field
    assert sentence in str(error.value)


def test_where_no_such_day_comes_there_is_no_next_time() -> None:
    # every 31st day is the first one, and a second Monday is never that
    assert next_time("0 0 */31 * MON#2", "UTC", _ms("2026-11-25T00:00:00+00:00")) is None
