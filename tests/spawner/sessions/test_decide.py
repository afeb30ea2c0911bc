"""Whether a session goes on: decided from facts, without a clock."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_spawner.sessions.policy import (
    Action,
    Cause,
    Decision,
    SessionFacts,
    SessionRecord,
    SessionSettings,
    decide,
    parse_hours,
)

START = datetime(2026, 11, 24, 8, tzinfo=UTC)
IDLE = SessionSettings(idle_after=timedelta(hours=1))
UNUSED = SessionFacts(START, known=True)


def minutes(number: float) -> timedelta:
    return timedelta(minutes=number)


def at(
    after: float, facts: SessionFacts = UNUSED, settings: SessionSettings = IDLE, **record: Any
) -> Decision:
    """Decide so many minutes after the session's start."""
    now = START + minutes(after)
    return decide(facts, settings, SessionRecord(**record), now, now)


def test_a_session_without_limits_goes_on_for_ever() -> None:
    assert at(10**6, settings=SessionSettings()) == Decision(Action.KEEP, idle_since=START)


def test_an_unused_session_is_warned_and_then_ended() -> None:
    assert at(49).action is Action.KEEP
    assert at(49).end == START + minutes(60)
    warned = at(50)
    assert (warned.action, warned.cause, warned.end) == (Action.WARN, Cause.IDLE, START + minutes(60))
    assert warned.may_keep
    assert at(59, warned=START + minutes(50)).action is Action.WARN
    ended = at(60, warned=START + minutes(50))
    assert (ended.action, ended.cause, ended.idle_since) == (Action.END, Cause.IDLE, START)


@pytest.mark.parametrize("sign", ["kernel_used", "terminal_used", "service_used", "gpu_used", "cpu_used"])
def test_use_of_any_kind_counts_from_its_last_moment(sign: str) -> None:
    used: dict[str, Any] = {sign: START + minutes(30)}
    facts = replace(UNUSED, **used)
    assert at(89, facts, warned=START + minutes(80)).action is Action.WARN
    assert at(90, facts, warned=START + minutes(80)).action is Action.END


def test_a_busy_kernel_is_use_unless_only_what_gpus_do_counts() -> None:
    busy = replace(UNUSED, kernels_busy=True)
    assert at(600, busy) == Decision(Action.KEEP, Cause.IDLE, START + minutes(660), START + minutes(600))
    assert at(60, busy, replace(IDLE, busy_counts=False), warned=START).action is Action.END


def test_an_open_browser_is_use_by_choice_only() -> None:
    open_browser = replace(UNUSED, connections=1)
    assert at(60, open_browser, warned=START).action is Action.END
    assert at(60, open_browser, replace(IDLE, connections_count=True), warned=START).action is Action.KEEP


def test_what_a_terminal_prints_counts_unless_told_otherwise() -> None:
    printing = replace(UNUSED, terminal_used=START + minutes(59))
    assert at(60, printing, warned=START).action is Action.KEEP
    assert at(60, printing, replace(IDLE, terminals_count=False), warned=START).action is Action.END


def test_keep_puts_the_end_off() -> None:
    kept = at(70, kept=START + minutes(55))
    assert (kept.action, kept.end) == (Action.KEEP, START + minutes(115))


def test_nobody_is_ended_without_having_been_warned() -> None:
    # nobody looked for a day, or the administrator has just made the time shorter
    late = at(1440)
    assert (late.action, late.end) == (Action.WARN, START + minutes(1450))
    assert at(1449, warned=START + minutes(1440)).action is Action.WARN
    assert at(1450, warned=START + minutes(1440)).action is Action.END


def test_of_a_session_that_cannot_be_asked_nothing_is_concluded_from_its_silence() -> None:
    silent = replace(UNUSED, known=False)
    assert at(600, silent, warned=START) == Decision(Action.KEEP)
    assert at(600, silent, replace(IDLE, lifetime=timedelta(hours=10)), warned=START).cause is Cause.LIFETIME


def test_a_session_ends_with_its_lifetime_however_busy_and_may_be_prolonged_so_often() -> None:
    busy = replace(UNUSED, kernels_busy=True)
    life = SessionSettings(lifetime=timedelta(hours=8), extend_by=timedelta(hours=4), extend_times=2)
    first = at(475, busy, life)
    assert (first.action, first.cause, first.extensions_left, first.may_keep) == (
        *(Action.WARN, Cause.LIFETIME),
        *(2, True),
    )
    assert at(475, busy, life, extensions=1).end == START + minutes(720)
    last = at(955, busy, life, extensions=2)
    assert (last.action, last.may_keep) == (Action.WARN, False)
    assert at(960, busy, life, extensions=2, warned=START + minutes(950)).action is Action.END
    # an extension that was given stays, where an administrator allows none any more
    assert at(700, busy, replace(life, extend_times=0), extensions=1).end == START + minutes(720)


def test_a_session_ends_when_its_hours_are_over_and_nothing_puts_that_off() -> None:
    hours = SessionSettings(hours=(parse_hours("08:00-12:00"), parse_hours("12:00-20:00")))
    assert at(700, settings=hours).end == START + minutes(720)
    assert at(700, settings=hours).action is Action.KEEP
    warned = at(711, settings=hours)
    assert (warned.action, warned.cause, warned.may_keep) == (Action.WARN, Cause.HOURS, False)
    assert at(720, settings=hours, warned=START + minutes(710)).action is Action.END
    # one that goes on outside of its hours (they were set just now) is warned all the same
    assert at(800, settings=hours).end == START + minutes(810)


@pytest.mark.parametrize("parts", [("00:00-24:00",), ("08:00-20:00", "20:00-08:00"), ("09:00-09:00",)])
def test_hours_that_cover_the_day_end_nothing(parts: tuple[str, ...]) -> None:
    all_day = SessionSettings(hours=tuple(map(parse_hours, parts)))
    assert all(at(after, settings=all_day).action is Action.KEEP for after in range(0, 1500, 7))


def test_what_comes_first_ends_a_session() -> None:
    both = replace(IDLE, lifetime=timedelta(minutes=30), hours=(parse_hours("08:00-20:00"),))
    assert at(25, settings=both).cause is Cause.LIFETIME
    assert at(25, replace(UNUSED, kernels_busy=True), replace(both, lifetime=None)).cause is Cause.IDLE


def test_a_jobs_own_time_limit_is_warned_of_and_left_to_the_scheduler() -> None:
    limited = replace(UNUSED, limit=START + minutes(55))
    assert at(44, limited).action is Action.KEEP
    for after in (45, 55, 56):
        warned = at(after, limited, warned=START)
        assert (warned.action, warned.cause, warned.may_keep) == (Action.WARN, Cause.TIME_LIMIT, False)
        assert warned.end == START + minutes(55)
    assert at(60, replace(UNUSED, limit=START + minutes(90)), warned=START).action is Action.END


moments = st.integers(0, 3000).map(lambda after: START + minutes(after))


@given(
    facts=st.builds(
        SessionFacts,
        started=st.just(START),
        known=st.booleans(),
        kernels_busy=st.booleans(),
        connections=st.integers(0, 2),
        kernel_used=st.none() | moments,
        gpu_used=st.none() | moments,
    ),
    settings=st.builds(
        SessionSettings,
        idle_after=st.none() | st.integers(1, 300).map(minutes),
        lifetime=st.none() | st.integers(1, 600).map(minutes),
        warn_before=st.integers(0, 60).map(minutes),
        hours=st.sampled_from([(), (parse_hours("08:00-20:00"),)]),
        connections_count=st.booleans(),
    ),
    warned=st.none() | moments,
    now=moments,
)
def test_an_end_is_never_decided_before_its_time_nor_before_a_whole_warning(
    facts: SessionFacts, settings: SessionSettings, warned: datetime | None, now: datetime
) -> None:
    decision = decide(facts, settings, SessionRecord(warned=warned), now, now)
    assert (decision.cause is None) == (decision.end is None)
    if decision.action is Action.END:
        assert decision.end is not None
        assert decision.end <= now
        assert (warned or now) + settings.warn_before <= now
    elif decision.end is not None:
        assert decision.end > now
    if decision.idle_since is not None:
        assert decision.idle_since <= now
    assert decision.cause is not Cause.IDLE or facts.known
