"""The notebook server asks the Hub's service about itself, with the user's own token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from tests.labextension.conftest import OWN_TOKEN, MakeServer, Scheduler

#: The played scheduler answers below /services/pai/api/v1/; the service is played there too.
PATH = "api/users/a%40b/server"


@pytest.fixture
async def browser(
    make_jupyter: MakeServer, scheduler: Scheduler, monkeypatch: pytest.MonkeyPatch
) -> httpx.AsyncClient:
    monkeypatch.setenv("PAI_SESSIONS_URL", f"{scheduler.url}/api/v1")
    monkeypatch.setenv("JUPYTERHUB_USER", "a@b")
    client: httpx.AsyncClient = await make_jupyter(scheduler.url)
    return client


def say(answer: Any, status: int = 200) -> Callable[[Any], None]:
    def script(handler: Any) -> None:
        handler.set_status(status)
        handler.write(answer)

    return script


async def test_it_is_told_when_it_ends_in_the_persons_language(
    browser: httpx.AsyncClient, scheduler: Scheduler
) -> None:
    scheduler.answers["api/users/a@b/server"] = say({"warned": True})
    answer = await browser.get("pai/session", headers={"Accept-Language": "zh-CN"})
    assert answer.json() == {"warned": True}
    (asked,) = scheduler.asked
    assert (asked.method, asked.uri.removeprefix("/services/pai/api/v1/")) == ("GET", PATH)
    assert asked.headers["Authorization"] == f"Bearer {OWN_TOKEN}"
    assert asked.headers["Accept-Language"] == "zh-CN"


async def test_it_is_kept(browser: httpx.AsyncClient, scheduler: Scheduler) -> None:
    scheduler.answers["api/users/a@b/server/keep"] = say({"warned": False})
    answer = await browser.post("pai/session/keep", json={})
    assert answer.json() == {"warned": False}
    assert [asked.method for asked in scheduler.asked] == ["POST"]


@pytest.mark.parametrize(
    ("script", "status", "sentence"),
    [
        (say({"message": "The end cannot be put off."}, 409), 409, "The end cannot be put off."),
        (say({"message": "inner"}, 500), 502, "What watches over notebook servers does not answer."),
        (say("<html>", 503), 502, "What watches over notebook servers does not answer."),
    ],
)
async def test_a_refusal_comes_back_and_a_failure_is_explained(
    browser: httpx.AsyncClient, scheduler: Scheduler, script: Any, status: int, sentence: str
) -> None:
    scheduler.answers["api/users/a@b/server/keep"] = script
    answer = await browser.post("pai/session/keep", json={})
    assert (answer.status_code, answer.json()["message"].startswith(sentence)) == (status, True)


async def test_nobody_is_asked_without_a_login_or_without_a_service(
    make_jupyter: MakeServer,
    scheduler: Scheduler,
    browser: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with httpx.AsyncClient(base_url=browser.base_url, trust_env=False) as stranger:
        assert (await stranger.get("pai/session")).status_code == 403
        assert (await stranger.post("pai/session/keep")).status_code == 403
    monkeypatch.delenv("PAI_SESSIONS_URL")
    alone = await make_jupyter(scheduler.url)
    answer = await alone.get("pai/session")
    assert (answer.status_code, answer.json()["message"]) == (
        404,
        "Nobody watches over this notebook server.",
    )
    assert scheduler.asked == []
