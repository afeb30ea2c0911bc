"""Routes whose handlers come late: nobody notices, and nothing is loaded before somebody asks."""

from __future__ import annotations

import asyncio
import threading
from importlib import import_module
from types import ModuleType
from typing import Any

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest
from tornado.httpserver import HTTPServer
from tornado.routing import PathMatches, Rule
from tornado.testing import bind_unused_port
from tornado.web import Application, RequestHandler, stream_request_body
from tornado.websocket import WebSocketHandler, websocket_connect

from pai_labextension.lazy_routes import LateRoutes, RouteGroup, RouteSettings

SETTINGS = RouteSettings("http://scheduler", "token", "/folder", "/user/a+b/")


class Names(RequestHandler):
    def initialize(self, greeting: str) -> None:
        self.greeting = greeting

    def get(self, name: str) -> None:
        self.finish(f"{self.greeting} {name}")


@stream_request_body
class Count(RequestHandler):
    def prepare(self) -> None:
        self.pieces: list[bytes] = []

    def data_received(self, chunk: bytes) -> None:
        self.pieces.append(chunk)

    def put(self) -> None:
        self.finish(str(sum(map(len, self.pieces))))


class Echo(WebSocketHandler):
    def on_message(self, message: str | bytes) -> None:
        self.write_message(message)


class Late:
    """A module that is made when it is asked for, and what became of it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.closed = False
        self.asked: list[RouteSettings] = []
        self.threads: list[threading.Thread] = []
        self.begun, self.go_on = asyncio.Event(), threading.Event()
        self.go_on.set()
        self._loop = asyncio.get_running_loop()
        monkeypatch.setattr("pai_labextension.lazy_routes.import_module", self._import)

    def _import(self, name: str, package: str) -> ModuleType:
        assert (name, package) == (".greetings", "pai_labextension")
        self.threads.append(threading.current_thread())
        self._loop.call_soon_threadsafe(self.begun.set)
        self.go_on.wait()
        module = ModuleType("greetings")
        module.make_part = self._make_part  # type: ignore[attr-defined]
        return module

    def _make_part(self, settings: RouteSettings) -> RouteGroup:
        self.asked.append(settings)
        return RouteGroup(
            [
                ("/pai/greet/(.*)", Names, {"greeting": "Hello"}),
                ("/pai/count", Count, {}),
                ("/pai/echo", Echo, {}),
            ],
            self._close,
        )

    async def _close(self) -> None:
        self.closed = True


@pytest.fixture(autouse=True)
async def late(monkeypatch):
    return Late(monkeypatch)


@pytest.fixture
async def server():
    application = Application()
    routes = LateRoutes(application, ".greetings", SETTINGS)
    application.add_handlers(".*$", [Rule(PathMatches("/user/a\\+b/pai/.*"), routes)])
    http = HTTPServer(application)
    socket, port = bind_unused_port()
    http.add_socket(socket)
    yield routes, f"127.0.0.1:{port}/user/a+b/pai"
    http.stop()
    await http.close_all_connections()


async def ask(url: str, **settings: Any) -> Any:
    return await AsyncHTTPClient().fetch(HTTPRequest(f"http://{url}", **settings), raise_error=False)


async def test_the_first_request_loads_the_handlers_and_is_answered_like_every_other(server, late):
    _, url = server
    assert late.threads == []
    assert (await ask(f"{url}/greet/Ada%20L")).body == b"Hello Ada L"
    assert (await ask(f"{url}/greet/Bob")).body == b"Hello Bob"
    assert len(late.threads) == 1
    assert late.asked == [SETTINGS]


async def test_a_module_is_loaded_once_off_the_loop_however_many_ask(server, late):
    _, url = server
    late.go_on.clear()
    asking = [asyncio.create_task(ask(f"{url}/greet/{number}")) for number in range(5)]
    # the loop is free meanwhile, or this would never be seen
    await late.begun.wait()
    late.go_on.set()
    assert [answer.body for answer in await asyncio.gather(*asking)] == [
        f"Hello {number}".encode() for number in range(5)
    ]
    assert [thread is threading.main_thread() for thread in late.threads] == [False]


async def test_a_body_may_be_what_loads_the_handlers(server):
    _, url = server
    assert (await ask(f"{url}/count", method="PUT", body=b"x" * 300_000)).body == b"300000"


async def test_a_websocket_may_be_what_loads_the_handlers(server):
    _, url = server
    socket = await websocket_connect(f"ws://{url}/echo")
    await socket.write_message("there?")
    assert await socket.read_message() == "there?"
    socket.close()


async def test_a_client_that_leaves_while_handlers_load_disturbs_nobody(server, late):
    _, url = server
    late.go_on.clear()
    address, _, path = url.partition("/")
    _, writer = await asyncio.open_connection(*address.split(":"))
    writer.write(f"PUT /{path}/count HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345".encode())
    await late.begun.wait()
    writer.close()
    await writer.wait_closed()
    late.go_on.set()
    assert (await ask(f"{url}/greet/Ada")).body == b"Hello Ada"


async def test_handlers_that_cannot_be_loaded_are_tried_again(browser, monkeypatch, caplog):
    tries = 0

    def half_installed(name: str, package: str) -> ModuleType:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ImportError("half installed")
        return import_module(name, package)

    monkeypatch.setattr("pai_labextension.lazy_routes.import_module", half_installed)
    assert (await browser.get("pai/memory")).status_code == 500
    assert "half installed" in caplog.text
    assert (await browser.get("pai/memory")).status_code == 200


async def test_what_was_opened_is_closed_and_what_was_never_loaded_is_not(server, late):
    routes, url = server
    await routes.close()
    assert not late.closed
    await ask(f"{url}/greet/Ada")
    await routes.close()
    assert late.closed
