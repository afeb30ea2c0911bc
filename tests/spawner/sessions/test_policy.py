"""Which rules hold for a session."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pai_spawner.sessions.policy import Session, SessionSettings
from pai_spawner.sessions.policy_file import parse_policy

#: a Tuesday, noon in Shanghai
NOON = datetime(2026, 11, 24, 4, tzinfo=UTC)
HOUR = timedelta(hours=1)


def settings(when: dict[str, object], session: Session, now: datetime = NOON) -> SessionSettings:
    document = {"timeZone": "Asia/Shanghai", "rules": [{"when": when, "idleAfter": "1h"}]}
    return parse_policy(document).policy.settings(session, now)


@pytest.mark.parametrize(
    ("when", "fits"),
    [
        ({}, True),
        ({"users": ["alice", "bob"]}, True),
        ({"users": ["bob"]}, False),
        ({"groups": ["vision", "speech"]}, True),
        ({"groups": ["speech"]}, False),
        ({"profiles": ["big"]}, True),
        ({"profiles": ["small"]}, False),
        ({"gpus": True}, True),
        ({"gpus": False}, False),
        ({"hours": "08:00-20:00"}, True),
        ({"hours": ["20:00-11:00", "13:00-14:00"]}, False),
        ({"days": ["mon", "tue"]}, True),
        ({"days": ["sat"]}, False),
        ({"gpus": True, "users": ["bob"]}, False),
    ],
)
def test_a_rule_holds_where_all_that_it_names_fits(when: dict[str, object], fits: bool) -> None:
    session = Session("alice", "", frozenset({"vision"}), gpus=2, profile="big")
    assert settings(when, session).idle_after == (HOUR if fits else None)


def test_hours_are_those_of_the_time_zone() -> None:
    session = Session("alice", "")
    assert settings({"hours": "12:00-13:00"}, session).idle_after == HOUR
    assert settings({"hours": "12:00-13:00"}, session, NOON + HOUR).idle_after is None


def test_of_two_rules_that_set_the_same_the_later_one_counts_and_the_rest_stays() -> None:
    document = {
        "rules": [
            {"idleAfter": "8h", "warnBefore": "5m", "sessions": 3},
            {"when": {"gpus": True}, "idleAfter": "1h"},
            {"when": {"users": ["root"]}, "idleAfter": "never", "sessions": "unlimited"},
        ]
    }
    policy = parse_policy(document).policy
    plain, gpu = policy.settings(Session("bob", ""), NOON), policy.settings(Session("bob", "", gpus=1), NOON)
    root = policy.settings(Session("root", "", gpus=1), NOON)
    assert (plain.idle_after, plain.warn_before, plain.sessions) == (8 * HOUR, timedelta(minutes=5), 3)
    assert (gpu.idle_after, gpu.warn_before, gpu.sessions) == (HOUR, timedelta(minutes=5), 3)
    assert (root.idle_after, root.warn_before, root.sessions) == (None, timedelta(minutes=5), None)


def test_without_rules_nothing_ends_a_session() -> None:
    assert parse_policy(None).policy.settings(Session("alice", "", gpus=8), NOON) == SessionSettings()
