"""How a start that failed is kept for who reads it later, in another language too."""

from __future__ import annotations

import pytest

from pai_scheduler.client.rest import ApiError, UnreachableError
from pai_spawner.messages import msg
from pai_spawner.startup import EXITED, STOPPED, ServerFailed
from pai_spawner.termination import End, ending_of_start, not_started

SILENCE = msg("The start was given up after {seconds:.0f} s of silence.", seconds=90)


@pytest.mark.parametrize("starter", ["en", "zh_CN"])
def test_why_a_start_failed_is_read_in_the_readers_language_whoever_started_it(starter: str) -> None:
    ending = ending_of_start(ServerFailed(SILENCE, "timeout", "last line"), starter)
    assert ending is not None
    assert (ending.kind, ending.log) == (End.NOT_STARTED, "last line")
    assert ending.reason("en") == "The start was given up after 90 s of silence."
    assert ending.reason("zh_CN") == SILENCE.in_locale("zh_CN") != str(SILENCE)

    away = ending_of_start(UnreachableError("http://127.0.0.1:9"), starter)
    assert away is not None
    assert away.reason("en").startswith("The scheduler does not answer.")
    assert away.reason("zh_CN") != away.reason("en")


def test_what_the_scheduler_refuses_is_known_in_the_starters_language_only() -> None:
    ending = ending_of_start(ApiError(400, "InvalidJobError", "这不行。"), "zh_CN")
    assert ending is not None
    assert ending.why == {"zh_CN": "这不行。"}
    assert ending.reason("en") == "这不行。"


@pytest.mark.parametrize("reason", [EXITED, STOPPED])
def test_how_a_job_ended_its_job_knows_better(reason: str) -> None:
    assert ending_of_start(ServerFailed(SILENCE, reason), "en") is None


def test_what_people_are_shown_has_the_log_without_its_markup() -> None:
    shown = not_started(ServerFailed(SILENCE, "timeout", "<b>last</b>"), "en")
    assert (shown.status_code, shown.reason) == (500, "timeout")
    assert "&lt;b&gt;last&lt;/b&gt;" in shown.jupyterhub_html_message
    assert not_started(shown, "en") is shown
