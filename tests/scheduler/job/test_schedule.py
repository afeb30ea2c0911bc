"""What the runs of a schedule are called."""

from __future__ import annotations

from datetime import datetime

import pytest

from pai_scheduler.job.schedule import LONGEST_NAME, is_run_of, is_schedule_name, run_name


def _ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def test_a_run_is_called_by_the_time_at_which_it_is_due_in_the_schedules_zone() -> None:
    due = _ms("2026-11-25T18:30:07+00:00")
    assert run_name("report", due, "Asia/Shanghai") == "report-20261126-0230"
    assert run_name("report", due, "UTC", seconds=True) == "report-20261125-183007"


def test_the_runs_of_an_hour_that_comes_twice_have_two_names() -> None:
    first, second = _ms("2026-10-25T02:30:00+02:00"), _ms("2026-10-25T02:30:00+01:00")
    names = [run_name("r", due, "Europe/Berlin") for due in (first, second)]
    assert names == ["r-20261025-0230", "r-20261025-0230-2"]
    assert all(is_run_of("r", name) for name in names)


def test_a_job_is_known_as_a_run_by_its_name() -> None:
    assert is_run_of("r", run_name("r", 0, "UTC"))
    assert is_run_of("r", run_name("r", 0, "UTC", seconds=True))
    for other in ("r", "r-1", "r-20261025", "r-20261025-0230-x", "rr-20261025-0230", "q-20261025-0230"):
        assert not is_run_of("r", other)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "a\n", "报告", "x" * (LONGEST_NAME + 1)])
def test_a_name_that_no_run_could_have_is_none(name: str) -> None:
    assert not is_schedule_name(name)


def test_letters_digits_and_some_signs_make_a_name() -> None:
    assert is_schedule_name("nightly_report.v2~a-b")
    assert is_schedule_name("x" * LONGEST_NAME)
