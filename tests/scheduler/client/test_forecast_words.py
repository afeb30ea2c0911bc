from __future__ import annotations

import pytest

from pai_scheduler.client.rest import about_so_long, start_in_words
from pai_scheduler.rest.models import Validation

WAITS: Validation = {
    "errors": [],
    "fits": "later",
    "reason": "…",
    "borrows": False,
    "limits": None,
    "startsWithin": 600,
    "warnings": [],
    "startsNowIn": [],
}


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (1, "about 1 minute"),
        (61, "about 2 minutes"),
        (7200, "about 120 minutes"),
        (7201, "about 3 hours"),
        (48 * 3600, "about 48 hours"),
        (48 * 3600 + 1, "about 3 days"),
    ],
)
def test_a_time_is_rounded_up_to_what_people_say(seconds: int, words: str) -> None:
    assert str(about_so_long(seconds)) == words


def test_a_start_is_foretold_only_where_the_time_is_known() -> None:
    assert [str(words) for words in start_in_words(WAITS)] == ["It starts in about 10 minutes."]
    assert list(start_in_words({**WAITS, "startsWithin": None})) == []
    assert list(start_in_words({**WAITS, "fits": "now", "startsWithin": 0})) == []


def test_where_it_would_start_at_once_is_said_in_the_readers_language() -> None:
    answer: Validation = {**WAITS, "fits": "never", "startsWithin": None, "startsNowIn": ["a", "b"]}
    assert [words.in_locale("zh_CN") for words in start_in_words(answer)] == [
        "在虚拟集群 a, b 中可以立即启动。"
    ]
