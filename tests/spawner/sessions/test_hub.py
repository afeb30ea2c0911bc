"""What the service asks the Hub, played by a small server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from pai_spawner.sessions.hub_client import HubClient, HubError


class PlayedHub:
    """Answers by method and path below /hub/api."""

    url = ""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []


class _Handler(RequestHandler):
    def initialize(self, hub: PlayedHub) -> None:
        self.hub = hub

    def answer(self) -> None:
        assert self.request.headers["Authorization"] == "token of-the-service"
        asked = f"{self.request.method} {str(self.request.uri).removeprefix('/hub/api')}"
        self.hub.asked.append(asked)
        answer = self.hub.answers.get(asked, 404)
        if isinstance(answer, int):
            self.set_status(answer)
            self.finish()
            return
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(answer))

    get = delete = answer


@pytest.fixture
async def hub() -> AsyncIterator[PlayedHub]:
    played = PlayedHub()
    server = HTTPServer(Application([(r"/hub/api/.*", _Handler, {"hub": played})]))
    sockets = bind_sockets(0, "127.0.0.1")
    server.add_sockets(sockets)
    played.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/hub/api"
    yield played
    server.stop()
    await server.close_all_connections()


@pytest.fixture
async def client(hub: PlayedHub) -> AsyncIterator[HubClient]:
    async with aiohttp.ClientSession() as http:
        yield HubClient(hub.url + "/", "of-the-service", http)


def user(who: str, **server: Any) -> dict[str, Any]:
    model = {
        "name": "",
        "url": f"/user/{who}/",
        "ready": True,
        "started": "2026-11-24T08:00:00.5Z",
        "last_activity": None,
        "state": {"job_name": f"job-of-{who}", "locale": "zh_CN"},
        "user_options": {"gpus": 1},
        **server,
    }
    return {"name": who, "groups": ["vision"], "servers": {model["name"]: model}}


def page(offset: int) -> str:
    return f"GET /users?state=active&include_stopped_servers=0&offset={offset}&limit=200"


async def test_all_pages_of_users_are_read(hub: PlayedHub, client: HubClient) -> None:
    hub.answers = {
        page(0): {"items": [user("alice")], "_pagination": {"next": {"offset": 200}}},
        page(200): {
            "items": [user("bob", name="big", state=None, ready=False), user("carol", started=None)],
            "_pagination": {"next": None},
        },
    }
    alice, bob = await client.servers()
    assert (alice.key, alice.job, alice.locale) == (("alice", ""), "job-of-alice", "zh_CN")
    assert alice.started == datetime(2026, 11, 24, 8, 0, 0, 500_000, tzinfo=UTC)
    assert (alice.groups, alice.path) == (frozenset({"vision"}), "/user/alice/")
    assert (bob.key, bob.job, bob.locale, bob.ready) == (("bob", "big"), "", "en", False)


async def test_who_is_an_administrator_is_believed_for_a_while(hub: PlayedHub, client: HubClient) -> None:
    hub.answers = {"GET /users/r%2Ft": {"admin": True}, "GET /users/bob": {"admin": False}}
    assert [await client.is_administrator(name) for name in ("r/t", "r/t", "bob")] == [True, True, False]
    assert hub.asked == ["GET /users/r%2Ft", "GET /users/bob"]


async def test_whom_the_hub_does_not_know_is_a_stranger_and_is_asked_for_once_in_a_while(
    hub: PlayedHub, client: HubClient
) -> None:
    hub.answers = {"GET /users/alice": {"admin": False}, "GET /users/b%2Fb": 404}
    assert await client.strangers(["alice", "b/b"]) == {"b/b"}
    assert await client.strangers(["b/b"]) == {"b/b"}
    assert await client.strangers([]) == set()
    assert hub.asked == ["GET /users/alice", "GET /users/b%2Fb"]
    hub.answers["GET /users/carol"] = 503
    with pytest.raises(HubError):
        await client.strangers(["carol"])


async def test_a_server_is_stopped_and_one_that_is_gone_is_stopped_already(
    hub: PlayedHub, client: HubClient
) -> None:
    hub.answers = {"DELETE /users/alice/server": 204, "DELETE /users/alice/servers/b%20g": 202}
    await client.stop("alice", "")
    await client.stop("alice", "b g")
    await client.stop("bob", "")
    assert hub.asked == [
        "DELETE /users/alice/server",
        "DELETE /users/alice/servers/b%20g",
        "DELETE /users/bob/server",
    ]


async def test_a_hub_that_refuses_or_is_away_is_an_error(hub: PlayedHub, client: HubClient) -> None:
    hub.answers = {page(0): 403, "DELETE /users/alice/server": 500}
    with pytest.raises(HubError, match="403"):
        await client.servers()
    with pytest.raises(HubError, match="500"):
        await client.stop("alice", "")
    async with aiohttp.ClientSession() as http:
        with pytest.raises(HubError, match="does not answer"):
            await HubClient("http://127.0.0.1:9/hub/api", "t", http).servers()
