"""A service in a real Jupyter server: passed on while its program answers, else told, for its user alone."""

from __future__ import annotations

import asyncio
import html
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.labextension.conftest import MakeServer

SERVICE = "pai-service/"
HTML = {"Accept": "text/html"}
#: It answers once the file `go` is there, and ends when `die` is asked for.
PROGRAM = """
import os, pathlib, sys, time
from http.server import BaseHTTPRequestHandler, HTTPServer
class Tell(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.endswith("die"):
            print("the <last> words", flush=True)
            os._exit(int(sys.argv[3]))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(self.path.encode())
while not pathlib.Path(sys.argv[2], "go").exists():
    time.sleep(0.05)
HTTPServer(("127.0.0.1", int(sys.argv[1])), Tell).serve_forever()
"""
Serve = Callable[..., Any]


@pytest.fixture
def serve(make_jupyter: MakeServer, tmp_path: Path) -> Serve:
    """Return what makes a Jupyter server with a service; gives a browser's way to it."""

    async def serve(*, code: int = 3, go: bool = True, **settings: Any) -> httpx.AsyncClient:
        if go:
            (tmp_path / "go").touch()
        command = [sys.executable, "-c", PROGRAM, "{port}", str(tmp_path), str(code)]
        told = {
            "title": "Board <1>",
            "command": command,
            "strip_prefix": True,
            "start_seconds": 60,
            **settings,
        }
        extensions = {"pai_labextension": True, "jupyter_server_proxy": True}
        browser: httpx.AsyncClient = await make_jupyter(
            "http://scheduler.test", service=told, jpserver_extensions=extensions
        )
        return browser

    return serve


async def state_of(browser: httpx.AsyncClient, *states: str) -> dict[str, Any]:
    """Wait for one of these states, and return what is told."""
    async with asyncio.timeout(30):
        while True:
            told: dict[str, Any] = (await browser.get("pai/service")).json()
            if told["state"] in states:
                return told
            await asyncio.sleep(0.05)


async def test_while_it_starts_its_page_says_so_and_looks_again(serve: Serve, tmp_path: Path) -> None:
    browser = await serve(go=False)
    waiting = await browser.get(SERVICE, headers=HTML)
    assert waiting.status_code == 503
    assert "<h1>Board &lt;1&gt; is starting</h1>" in waiting.text
    assert 'http-equiv="refresh"' in waiting.text
    assert "<button" not in waiting.text
    assert waiting.headers["Cache-Control"] == "no-store"
    assert "default-src 'none'" in waiting.headers["Content-Security-Policy"]
    for method in ("POST", "PUT", "DELETE"):
        refused = await browser.request(method, f"{SERVICE}data")
        assert (refused.status_code, refused.json()) == (
            503,
            {"message": "Board <1> is starting. It is shown here as soon as it answers."},
        )
    (tmp_path / "go").touch()
    await state_of(browser, "answers")
    assert (await browser.get(f"{SERVICE}a%20b%2Fc?d=%26")).text == "/a%20b%2Fc?d=%26"


@pytest.mark.parametrize(
    ("code", "says"),
    [(3, "It ended by itself, with exit code 3."), (0, "It ended by itself, with exit code 0.")],
)
async def test_one_that_dies_of_a_request_says_how_at_once_and_a_click_starts_it(
    serve: Serve, code: int, says: str
) -> None:
    browser = await serve(code=code)
    await state_of(browser, "answers")
    died = await browser.get(f"{SERVICE}die", headers=HTML)
    assert died.status_code == 503
    assert "<h1>Board &lt;1&gt; has ended</h1>" in died.text
    assert says in died.text
    assert "the &lt;last&gt; words" in died.text
    assert 'href="/user/a%40b/lab"' in died.text
    chinese = await browser.get(SERVICE, headers={**HTML, "Accept-Language": "zh-CN"})
    assert "<h1>Board &lt;1&gt; 已结束</h1>" in chinese.text
    assert '<html lang="zh-CN">' in chinese.text

    (address,) = re.findall(r'action="([^"]+)"', died.text)
    again = await browser.post(f"http://{died.url.netloc.decode()}{html.unescape(address)}")
    assert (again.status_code, again.headers["Location"]) == (303, "/user/a%40b/pai-service/")
    await state_of(browser, "answers")
    assert (await browser.get(SERVICE)).text == "/"


async def test_nobody_is_told_or_starts_anything_without_a_login(serve: Serve) -> None:
    browser = await serve(go=False)
    del browser.headers["Authorization"]
    for method, path in (("GET", "pai/service"), ("POST", "pai/service"), ("POST", SERVICE)):
        assert (await browser.request(method, path)).status_code in (302, 403)
    assert "Board" not in (await browser.get(SERVICE, headers=HTML)).text


async def test_a_service_gets_its_prefix_where_it_wants_it_and_a_tile_in_the_launcher(serve: Serve) -> None:
    browser = await serve(strip_prefix=False)
    await state_of(browser, "answers")
    assert (await browser.get(f"{SERVICE}runs")).text == "/user/a%40b/pai-service/runs"
    (tile,) = (await browser.get("server-proxy/servers-info")).json()["server_processes"]
    assert (tile["name"], tile["launcher_entry"]["title"]) == ("pai-service", "Board <1>")


async def test_what_it_told_is_what_the_spawner_reads(serve: Serve) -> None:
    told = await state_of(await serve(command=["no-such-program", "{port}"], start_seconds=7), "failed")
    assert told == {
        "title": "Board <1>",
        "state": "failed",
        "exitCode": None,
        "startSeconds": 7,
        "reason": "[Errno 2] No such file or directory: 'no-such-program'",
        "log": "",
    }


async def test_a_server_without_a_service_knows_of_none(browser: httpx.AsyncClient) -> None:
    answer = await browser.get("pai/service")
    assert (answer.status_code, answer.json()["message"]) == (404, "No service opens in this server.")
