"""What a notebook server is asked, and what is made of its answers."""

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

from pai_spawner.sessions.hub_client import ServerActivity, ask_activity

BUSY = {"execution_state": "busy", "connections": 2, "last_activity": "2026-11-24T10:00:00.5Z"}
IDLE = {"execution_state": "idle", "connections": 1, "last_activity": "2026-11-24T11:00:00Z"}
TERMINAL = {"name": "1", "last_activity": "2026-11-24T09:00:00Z"}


#: of a program that is no Jupyter any more
ENDLESS = json.dumps([BUSY] * 60_000)


class Server:
    """Answers as a notebook server does, by the last word of the path: with JSON, or with a status."""

    url = ""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {"kernels": [], "terminals": []}
        self.asked: list[tuple[str, str]] = []


class _Handler(RequestHandler):
    def initialize(self, server: Server) -> None:
        self.server = server

    def get(self, name: str) -> None:
        self.server.asked.append((str(self.request.uri), self.request.headers.get("Authorization", "")))
        answer = self.server.answers[name]
        if isinstance(answer, int):
            self.set_status(answer)
            return
        self.set_header("Content-Type", "application/json")
        self.finish(answer if isinstance(answer, str) else json.dumps(answer))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    played = Server()
    paths = r"/user/(?:alice|a%3Ab)/api/(\w+)"
    http = HTTPServer(Application([(paths, _Handler, {"server": played})]))
    sockets = bind_sockets(0, "127.0.0.1")
    http.add_sockets(sockets)
    played.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}/user/alice/"
    yield played
    http.stop()
    await http.close_all_connections()


async def ask(url: str, *, is_service: bool = False) -> ServerActivity | None:
    async with aiohttp.ClientSession() as http:
        return await ask_activity(http, url, "token-of-the-service", is_service=is_service)


async def test_kernels_terminals_and_connections_are_read_and_the_asking_leaves_no_trace(
    server: Server,
) -> None:
    server.answers = {"kernels": [BUSY, IDLE], "terminals": [TERMINAL]}
    assert await ask(server.url) == ServerActivity(
        kernels_busy=True,
        connections=3,
        kernel_used=datetime(2026, 11, 24, 11, tzinfo=UTC),
        terminal_used=datetime(2026, 11, 24, 9, tzinfo=UTC),
    )
    assert server.asked == [
        (f"/user/alice/api/{name}?no_track_activity=1", "token token-of-the-service")
        for name in ("kernels", "terminals")
    ]


async def test_an_address_is_asked_as_it_is_written(server: Server) -> None:
    server.answers["kernels"] = [BUSY]
    found = await ask(server.url.replace("alice", "a%3Ab"))
    assert found is not None
    assert found.kernels_busy
    assert server.asked[0][0] == "/user/a%3Ab/api/kernels?no_track_activity=1"


async def test_a_server_without_kernels_or_terminals_is_unused(server: Server) -> None:
    server.answers["terminals"] = 404
    assert await ask(server.url) == ServerActivity()


async def test_of_a_server_with_a_service_it_is_read_when_that_was_used(server: Server) -> None:
    server.answers["status"] = {"last_activity": "2026-11-24T11:00:00Z", "kernels": 0}
    assert await ask(server.url) == ServerActivity()
    used = datetime(2026, 11, 24, 11, tzinfo=UTC)
    assert await ask(server.url, is_service=True) == ServerActivity(service_used=used)
    assert server.asked[-1][0] == "/user/alice/api/status?no_track_activity=1"


@pytest.mark.parametrize("answer", [500, [], {"message": "no"}])
async def test_a_service_of_which_nothing_is_told_is_not_unused(server: Server, answer: Any) -> None:
    server.answers["status"] = answer
    assert await ask(server.url, is_service=True) is None


@pytest.mark.parametrize(
    "answer", [500, 403, "<html>", {"message": "no"}, [{"execution_state": "idle"}], ENDLESS, [3]]
)
async def test_what_is_no_answer_of_jupyter_says_nothing(server: Server, answer: Any) -> None:
    server.answers["kernels"] = answer
    assert await ask(server.url) is None


async def test_a_server_that_is_away_says_nothing() -> None:
    assert await ask("http://127.0.0.1:9/user/alice/") is None
