"""The gateway's own addresses: nobody but the gateway is answered, and what is no question is refused."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.scheduler.service.house import House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house


async def test_nobody_but_the_gateway_is_answered(house: House) -> None:
    session_token = await house.session_token("alice", "token-a")
    for token in ("token-a", "token-root", "x", house.keys.gateway_token()[:-1], session_token):
        for call in ("login", "open", "note", "still"):
            answer = await house.ask(call, token, login="alice", session_token=session_token)
            assert answer.status_code == 401, (token, call)
            # by which the gateway tells that it is not known itself
            assert "WWW-Authenticate" in answer.headers
    async with httpx.AsyncClient(trust_env=False) as stranger:
        assert (await stranger.post(f"{house.url}/access/login", json={})).status_code == 401
        assert (await stranger.get(f"{house.url}/access/login")).status_code == 401


async def test_the_gateways_token_is_nobodys_elsewhere(house: House) -> None:
    async with house.client(house.keys.gateway_token()) as client:
        assert (await client.get("/jobs")).status_code == 401


async def test_who_is_not_let_in_is_no_fault_of_the_gateways(house: House) -> None:
    refused = await house.login("alice", "wrong")
    assert refused.status_code == 401
    assert "WWW-Authenticate" not in refused.headers


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"login": 1},
        {"login": "alice", "method": "password"},
        {"login": "alice", "session_token": None},
        {"login": "alice", "session_token": "x", "peer": "x", "event": "opened", "what": ["kernel"]},
        {
            "login": "alice",
            "session_token": "x",
            "peer": "x",
            "event": "closed",
            "what": [],
            "seconds": "long",
        },
    ],
)
async def test_what_is_no_question_is_refused(house: House, body: dict[str, Any]) -> None:
    for call in ("login", "open", "note"):
        assert (await house.ask(call, **body)).status_code in (400, 401)
    assert (await house.ask("note", **body)).status_code == 400
    assert (await house.ask("still", held=[body])).status_code == 400


async def test_a_service_whose_tasks_cannot_be_entered_says_so(house: House) -> None:
    house.service._ssh_authorization = None
    assert (await house.ask("login", login="alice")).json()["code"] == "NoJobSshInfoError"
    async with house.client() as client:
        assert (await client.get("/user/alice/ssh-keys")).status_code == 404
