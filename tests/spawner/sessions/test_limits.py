"""How many sessions and GPUs one may have at once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pai_spawner.sessions.policy import Session, refusal
from pai_spawner.sessions.policy_file import parse_policy

NOON = datetime(2026, 11, 24, 12, tzinfo=UTC)
POLICY = parse_policy(
    {
        "timeZone": "UTC",
        "rules": [
            {"sessions": 2, "gpus": 3},
            {"when": {"groups": ["staff"]}, "sessions": "unlimited", "gpus": "unlimited"},
            {"when": {"groups": ["guests"]}, "sessions": 0},
            {"when": {"profiles": ["night"]}, "hours": "20:00-07:00"},
        ],
        "groups": {"vision": {"sessions": 3, "gpus": 4}},
    }
).policy


def asked(user: str = "alice", *groups: str, gpus: int = 0, profile: str = "") -> Session:
    return Session(user, "new", frozenset(groups), gpus, profile)


def running(user: str, server: str = "", *groups: str, gpus: int = 0) -> Session:
    return Session(user, server, frozenset(groups), gpus)


@pytest.mark.parametrize(
    ("session", "others", "sentence"),
    [
        (asked(), [], None),
        (asked(gpus=3), [running("alice")], None),
        (
            asked(),
            [running("alice"), running("alice", "big")],
            "You may have 2 sessions at once, and have default, big. Stop one first.",
        ),
        (asked(), [running("bob"), running("bob", "big")], None),
        (
            asked(gpus=2),
            [running("alice", gpus=2)],
            "Your sessions may have 3 GPUs together. They have 2, and this one asks for 2. Choose fewer, or "
            "stop another session.",
        ),
        # who asks for no GPU is not refused for those that they have
        (asked(gpus=0), [running("alice", gpus=4)], None),
        (asked("carol", "staff", gpus=99), [running("carol", f"s{i}", gpus=9) for i in range(9)], None),
        (asked("dave", "guests"), [], "You may not start such a session on this Hub."),
        (
            asked("alice", "vision"),
            [running(name, "", "vision") for name in ("bob", "carol", "dave")],
            "The group vision may have 3 sessions at once, and has them.",
        ),
        (
            asked("alice", "vision", gpus=3),
            [running("bob", "", "vision", gpus=2), running("carol", gpus=8)],
            "The sessions of the group vision may have 4 GPUs together. They have 2, and this",
        ),
        (asked("alice", "vision"), [running("bob", "", "vision", gpus=8)], None),
        (
            asked(profile="night"),
            [],
            "Such a session may run only at certain hours: 20:00-07:00. Start it then",
        ),
    ],
)
def test_a_session_beyond_a_limit_is_refused_with_a_sentence(
    session: Session, others: list[Session], sentence: str | None
) -> None:
    message = refusal(POLICY, session, others, NOON)
    assert (message is None) == (sentence is None), message
    assert str(message or "").startswith(sentence or "")
