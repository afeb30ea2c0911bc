"""What ends a running server first, and how long that is, in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pai_scheduler.rest.models import JobDetail
from pai_spawner.pages import servers as module
from pai_spawner.pages.servers import TimeLeft, time_left

MINUTE = 60_000


def detail(latest_end: int | None) -> JobDetail:
    return cast(JobDetail, {"jobStatus": {"latestEndTime": latest_end}})


def spawner(sessions_url: str = "", **services: Any) -> Any:
    user = SimpleNamespace(name="alice", settings={"services": services})
    return SimpleNamespace(user=user, name="", job_name="notebook_1", sessions_url=sessions_url)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        ("idle", "2 h 10 min left if nobody uses it."),
        ("lifetime", "2 h 10 min left of the time that such a server may run."),
        ("hours", "2 h 10 min left: such a server may run only at certain hours."),
        ("limit", "2 h 10 min left of its time limit."),
    ],
)
def test_the_reason_stands_beside_the_time(cause: str, words: str) -> None:
    left = TimeLeft(1000 * MINUTE, cause)
    assert str(left.in_words(870 * MINUTE)) == words
    assert str(left.in_words(2000 * MINUTE)).startswith("0 minutes left")


@pytest.mark.parametrize(
    ("limit", "rule", "found"),
    [
        (None, None, None),
        (7, None, TimeLeft(7, "limit")),
        (7, (5, "idle"), TimeLeft(5, "idle")),
        (7, (9, "hours"), TimeLeft(7, "limit")),
        (None, (9, "lifetime"), TimeLeft(9, "lifetime")),
        (7, (None, None), TimeLeft(7, "limit")),
    ],
)
async def test_of_time_limit_and_rules_the_first_counts(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, rule: Any, found: TimeLeft | None
) -> None:
    async def session(*_: Any) -> Any:
        return rule and {"endTime": rule[0], "cause": rule[1]}

    monkeypatch.setattr(module, "_session", session)
    assert await time_left(spawner(), detail(limit), {}) == found


async def test_a_service_that_is_not_there_or_does_not_answer_leaves_the_time_limit() -> None:
    config = {"jobEnvs": {"JUPYTERHUB_API_TOKEN": "token"}}
    for away in (spawner(), spawner("http://127.0.0.1:9/services/pai-sessions")):
        assert await time_left(away, detail(7), config) == TimeLeft(7, "limit")
