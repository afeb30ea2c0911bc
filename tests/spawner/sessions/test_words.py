"""What people are told about the end of a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pai_spawner.sessions import words
from pai_spawner.sessions.policy import Action, Cause, Decision, SessionSettings, parse_hours

START = datetime(2026, 11, 24, 8, tzinfo=UTC)
NOW = START + timedelta(hours=2, minutes=30)
SETTINGS = SessionSettings(hours=(parse_hours("08:00-20:00"),))


def decision(cause: Cause) -> Decision:
    return Decision(Action.WARN, cause, START + timedelta(hours=3), START + timedelta(minutes=30))


@pytest.mark.parametrize(
    ("cause", "warning", "reason"),
    [
        (
            Cause.IDLE,
            "This session is idle: no kernel, terminal or GPU was used for 2 h 0 min.",
            "the session was idle for 2 h 0 min (no kernel, terminal or GPU was used).",
        ),
        (
            Cause.LIFETIME,
            "This session has run for 2 h 30 min, and is to end after 3 h 0 min.",
            "the session had run for 2 h 30 min, as long as it may.",
        ),
        (
            Cause.HOURS,
            "Sessions like this one may run only at certain hours: 08:00-20:00.",
            "sessions like this one may run only at certain hours: 08:00-20:00.",
        ),
    ],
)
def test_each_cause_is_told_before_and_with_the_end(cause: Cause, warning: str, reason: str) -> None:
    assert str(words.warning(decision(cause), SETTINGS, START, NOW)) == warning
    assert str(words.reason(decision(cause), SETTINGS, START, NOW)).startswith(reason)


@pytest.mark.parametrize(
    ("minutes", "text", "chinese"),
    [
        (0.4, "0 minutes", "0 分钟"),
        (1, "1 minute", "1 分钟"),
        (59, "59 minutes", "59 分钟"),
        (61, "1 h 1 min", "1 小时 1 分钟"),
        (47 * 60 + 59, "47 h 59 min", "47 小时 59 分钟"),
        (49 * 60, "2 d 1 h", "2 天 1 小时"),
        (-3, "0 minutes", "0 分钟"),
    ],
)
def test_a_duration_is_said_in_two_units_at_most(minutes: float, text: str, chinese: str) -> None:
    said = words.duration(timedelta(minutes=minutes))
    assert (str(said), said.in_locale("zh_CN")) == (text, chinese)


def test_a_time_limit_is_told_before_the_scheduler_ends_the_session() -> None:
    said = words.warning(decision(Cause.TIME_LIMIT), SETTINGS, START, NOW)
    assert str(said) == "This session has a time limit, which was chosen with it: 3 h 0 min."


def test_an_administrator_may_say_why_or_not() -> None:
    assert str(words.by_administrator("root", "")) == "ended by the administrator root."
    assert str(words.by_administrator("root", "demo")) == "ended by the administrator root: demo"
