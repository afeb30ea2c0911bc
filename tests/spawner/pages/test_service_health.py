"""What the Hub's home says of a running server's service, asked of a real server on a socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from pai_spawner.messages import Translated
from pai_spawner.pages import servers
from pai_spawner.pages.servers import service_trouble

CONFIG = {"jobEnvs": {"JUPYTERHUB_API_TOKEN": "own-token"}}


class Server:
    """Tells of its service what it is set to; `asked`: the tokens with which it was asked."""

    def __init__(self, url: str) -> None:
        self.url, self.asked = url, list[str]()
        self.told: dict[str, Any] = {"state": "answers", "exitCode": None, "startSeconds": 60}
        self.status = 200
        self.silent = asyncio.Event()
        self.silent.set()


class _Spawner:
    """What is used of a spawner."""

    def __init__(self, server: Server | None, title: str = "Board", job: str = "notebook_1") -> None:
        self.server, self.service_title, self.job_name = server, title and Translated(title), job


class _Tell(RequestHandler):
    def initialize(self, server: Server) -> None:
        self.server = server

    async def get(self) -> None:
        self.server.asked.append(self.request.headers.get("Authorization", ""))
        await self.server.silent.wait()
        self.set_status(self.server.status)
        self.finish(json.dumps(self.server.told))


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    (socket,) = bind_sockets(0, "127.0.0.1")
    server = Server(f"http://127.0.0.1:{socket.getsockname()[1]}/user/a%3Ab/")
    http = HTTPServer(Application([("/user/a%3Ab/pai/service", _Tell, {"server": server})]))
    http.add_sockets([socket])
    yield server
    server.silent.set()
    http.stop()
    await http.close_all_connections()


@pytest.mark.parametrize(
    ("state", "code", "says"),
    [
        ("answers", None, ""),
        ("starting", None, "The server runs, and Board is starting in it."),
        ("failed", 1, "The server runs, but Board did not start: open it to read why."),
        ("ended", 7, "The server runs, but Board has ended (exit code 7): open it to read why."),
        ("ended", -9, "The server runs, but Board has ended (signal 9): open it to read why."),
    ],
)
async def test_what_keeps_a_service_from_being_used_is_said(
    server: Server, state: str, code: int | None, says: str
) -> None:
    server.told |= {"state": state, "exitCode": code}
    assert str(await service_trouble(_Spawner(server), CONFIG) or "") == says
    assert server.asked == ["token own-token"]


async def test_only_a_server_with_a_service_and_an_address_is_asked(server: Server) -> None:
    for spawner, config in (
        (_Spawner(server, title=""), CONFIG),
        (_Spawner(None), CONFIG),
        (_Spawner(server), None),
    ):
        assert await service_trouble(spawner, config) is None
    assert server.asked == []


async def test_however_many_look_a_server_is_asked_once_in_some_seconds(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.told |= {"state": "ended", "exitCode": 1}
    spawner = _Spawner(server)
    found = await asyncio.gather(*(service_trouble(spawner, CONFIG) for _ in range(5)))
    found.append(await service_trouble(spawner, CONFIG))
    assert [str(one) for one in found] == [str(found[0])] * 6
    assert len(server.asked) == 1

    # its next start is another program
    server.told |= {"state": "answers"}
    spawner.job_name = "notebook_2"
    assert await service_trouble(spawner, CONFIG) is None
    server.told |= {"state": "failed"}
    monkeypatch.setattr(servers, "_KEPT", -1.0)
    assert await service_trouble(spawner, CONFIG) is not None
    assert len(server.asked) == 3


async def test_a_server_that_is_silent_or_knows_of_none_does_not_hold_up_the_page(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.status = 404
    assert await service_trouble(_Spawner(server), CONFIG) is None
    monkeypatch.setattr(servers, "_SERVICE_PATIENCE", 0.05)
    server.silent.clear()
    assert await service_trouble(_Spawner(server), CONFIG) is None
