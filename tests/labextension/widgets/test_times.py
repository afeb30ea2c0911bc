"""Times in widgets: for the browser to write as its own clock does, and right without it."""

from __future__ import annotations

import time

import pytest

from pai_labextension.widgets.job_view import head
from pai_labextension.widgets.language import Language
from pai_labextension.widgets.times import PLACE, clock, when, with_time
from pai_scheduler.testing.scheduler import job_of

SOME = 1_700_000_000_000


@pytest.fixture(autouse=True)
def in_tokyo(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_time_says_itself_to_programs_and_with_its_zone_to_people():
    assert when(SOME) == (
        '<time datetime="2023-11-14T22:13:20+00:00" data-pai-time="1700000000000" data-pai-form="seconds">'
        "2023-11-15 07:13:20 JST</time>"
    )
    assert clock(SOME, 'x="1"') == (
        '<text data-pai-time="1700000000000" data-pai-form="clock" x="1">07:13:20</text>'
    )


def test_a_sentence_is_escaped_but_for_its_time():
    assert with_time(f"a < b until {PLACE}", SOME) == f"a &lt; b until {when(SOME)}"


def test_when_a_job_was_submitted_and_how_long_its_container_is_kept_are_such_times():
    job = job_of("demo")
    detail = job.detail("alice")
    detail["jobStatus"]["subState"] = "DEBUG_HELD"
    markup = head(Language("en"), detail, job.attempts(), SOME)
    assert f"Submitted: {when(detail['jobStatus']['createdTime'])}" in markup
    assert f"kept for debugging until {when(SOME)}" in markup
