"""A web program that a profile names, behind a real Hub: its user gets it, others do not, its use counts."""

from __future__ import annotations

import html
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from tests.hub import PATIENCE, Hub, open_hub, wait_for
from tests.labextension.tasks import port_application

APPLICATION = str(Path(port_application.__file__))
#: It reads its port from the environment, as the labels of a job's ports have it.
START = "import os, runpy, sys; os.environ['PAI_CONTAINER_HOST_web_PORT_LIST'] = sys.argv[2]; "
START += "runpy.run_path(sys.argv[1], run_name='__main__')"
#: It listens on a socket of the file system, and gets the paths as the browser has them.
ON_A_SOCKET = """
import asyncio, sys
from tornado import httpserver, netutil, web
class Tell(web.RequestHandler):
    def get(self):
        self.finish({"uri": self.request.uri, "address": sys.argv[2]})
async def main():
    httpserver.HTTPServer(web.Application([(".*", Tell)])).add_socket(netutil.bind_unix_socket(sys.argv[1]))
    await asyncio.Event().wait()
asyncio.run(main())
"""
#: It begins when the file `go` is in its person's home, and ends when its page `die` is asked for.
MORTAL = """
import asyncio, os, pathlib, sys, time
from tornado import web
while not pathlib.Path("go").exists():
    time.sleep(0.1)
class Tell(web.RequestHandler):
    def get(self):
        if self.request.path == "/die":
            print("<i>the last words</i>")
            os._exit(7)
        self.finish({"pid": os.getpid(), "prefix": sys.argv[2]})
async def main():
    web.Application([(".*", Tell)]).listen(int(sys.argv[1]), "127.0.0.1")
    await asyncio.Event().wait()
asyncio.run(main())
"""
PROFILES = [
    {"display_name": "Notebook"},
    {
        "display_name": "Board",
        "description": "What a training wrote.",
        "service": {"command": [sys.executable, "-c", START, APPLICATION, "{port}"]},
    },
    {
        "display_name": "Socket",
        "service": {
            "command": [sys.executable, "-c", ON_A_SOCKET, "{unix_socket}", "{base_url}"],
            "strip_prefix": False,
        },
    },
    {
        "display_name": "Broken",
        "service": {
            "command": [sys.executable, "-c", "raise SystemExit('there is no such board')", "{port}"]
        },
    },
    {
        "display_name": "Silent",
        "service": {
            "command": [
                sys.executable,
                "-uc",
                "print('I only sleep'); import time; time.sleep(600)",
                "{port}",
            ],
            "start_seconds": 1,
        },
    },
    {"display_name": "Missing", "service": {"command": ["no-such-program", "{port}"]}},
    {
        "display_name": "Mortal",
        "service": {
            "title": "Curves <b>",
            "command": [sys.executable, "-uc", MORTAL, "{port}", "{prefix}"],
            "start_seconds": 600,
        },
    },
]
SESSIONS = "every: 1s\nrules:\n  - {idleAfter: 10m, warnBefore: 1s}\n"
SERVICE = "/user/alice/pai-service/"
MORTAL_PAGE = "/user/dora/pai-service/"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("hub")
    profiles, sessions = folder / "profiles.yaml", folder / "sessions.yaml"
    profiles.write_text(json.dumps(PROFILES))
    sessions.write_text(SESSIONS)
    with open_hub(folder, "process", "--sessions", str(sessions), PAI_PROFILES=str(profiles)) as hub:
        assert hub.start_server("alice", {"profile": "board"}).is_success
        hub.wait_ready("alice")
        yield hub


def idle_since(hub: Hub) -> int:
    return int(hub.sessions("alice", "GET", "api/users/alice/server").json().get("idleSince") or 0)


def test_the_hubs_link_opens_the_service_and_its_use_counts(hub: Hub) -> None:
    wait_for(lambda: idle_since(hub), "the service that watches over servers", hub.log)
    unused = idle_since(hub)
    with hub.browser("alice") as browser:
        page = browser.get("/user/alice/")
        assert page.url.path == SERVICE, page.text
        assert page.json()["uri"] == "/"
        below = browser.get(f"{SERVICE}runs/1?tag=loss")
        assert below.json()["uri"] == "/runs/1?tag=loss"
    wait_for(lambda: idle_since(hub) > unused, "the use of the service to count", hub.log)


def test_nobody_else_gets_it(hub: Hub) -> None:
    with hub.browser("mallory") as browser:
        refused = browser.get(SERVICE)
    assert refused.status_code == 403
    assert "uri" not in refused.text
    assert hub._call("mallory", "GET", SERVICE).status_code in (403, 404)


async def test_websockets_pass_for_its_user_alone(hub: Hub) -> None:
    url = f"{hub.url.replace('http', 'ws', 1)}{SERVICE}echo"
    own = {"Authorization": f"Bearer {hub.token('alice')}"}
    connection = await websocket_connect(HTTPRequest(url, headers=own, request_timeout=PATIENCE))
    await connection.write_message("你好")
    assert await connection.read_message() == "你好"
    connection.close()
    for headers in ({}, {"Authorization": f"Bearer {hub.token('mallory')}"}):
        with pytest.raises(HTTPClientError) as refused:
            await websocket_connect(HTTPRequest(url, headers=headers, request_timeout=PATIENCE))
        assert refused.value.code in (302, 403)


def test_a_program_may_listen_on_a_socket_and_expect_its_own_address(hub: Hub) -> None:
    assert hub.start_server("carol", {"profile": "socket"}).is_success
    hub.wait_ready("carol")
    with hub.browser("carol") as browser:
        told = browser.get("/user/carol/pai-service/runs?tag=loss").json()
    assert told == {"uri": "/user/carol/pai-service/runs?tag=loss", "address": "/user/carol/pai-service/"}


def started(hub: Hub, name: str, profile: str) -> list[dict[str, Any]]:
    """Start a service's server and wait until that is over; gives what the progress page was told.

    What fails within the two seconds for which the Hub waits is its answer, and has no progress page.
    """
    answer = hub.start_server(name, {"profile": profile})
    if answer.status_code == 500:
        told = [{"failed": True, "message": answer.json()["message"]}]
    else:
        assert answer.is_success, answer.text
        told = hub.progress(name, lambda event: bool(event.get("ready") or event.get("failed")))
    # what has failed is told while the Hub still stops it, and until then its page says that
    wait_for(lambda: not hub.server(name).get("pending"), "the start to be over", hub.log)
    return told


@pytest.mark.parametrize(
    ("profile", "why", "log"),
    [
        ("broken", "Broken ended with exit code 1 before it answered.", "there is no such board"),
        ("silent", "Silent did not answer within 1 second.", "I only sleep"),
        ("missing", "Missing cannot be started: [Errno 2] No such file or directory: ", ""),
    ],
)
def test_a_program_that_does_not_start_ends_the_start_and_the_hub_says_why(
    hub: Hub, profile: str, why: str, log: str
) -> None:
    told = started(hub, "bob", profile)
    title = profile.capitalize()
    if len(told) > 1:
        assert f"The server answers; {title} is starting in it." in [event["message"] for event in told]
    assert told[-1]["failed"]
    with hub.browser("bob") as browser:
        page = html.unescape(browser.get("/user/bob/", headers={"Accept": "text/html"}).text)
    assert "The server did not start" in page
    assert why in page
    assert log in page
    wait_for(lambda: not hub.running_jobs("bob"), "its job to end", hub.log)


def test_the_server_is_ready_when_its_program_answers_also_when_the_hub_was_killed_meanwhile(
    hub: Hub,
) -> None:
    assert hub.start_server("dora", {"profile": "mortal"}).status_code == 202
    starting = "The server answers; Curves <b> is starting in it."
    hub.progress("dora", lambda event: event["message"] == starting)
    hub.kill()
    hub.start()
    hub.progress("dora", lambda event: event["message"] == starting)
    assert not hub.server("dora")["ready"]
    with hub.browser("dora") as browser:
        page = browser.get(f"{MORTAL_PAGE}", headers={"Accept": "text/html"})
        assert MORTAL_PAGE not in page.url.path, page.text
    (hub.folder / "home" / "dora" / "go").touch()
    hub.wait_ready("dora")
    with hub.browser("dora") as browser:
        assert browser.get("/user/dora/").json()["prefix"] == "/user/dora/pai-service"
        assert "Open Curves &lt;b&gt;" in browser.get("/hub/home").text
    with hub.browser("dora", "zh-CN") as browser:
        assert "打开 Curves &lt;b&gt;" in browser.get("/hub/home").text


def test_a_program_that_dies_says_how_and_is_started_again_with_a_click(hub: Hub) -> None:
    asks = {"Accept": "text/html"}
    with hub.browser("dora") as browser:
        first = browser.get(MORTAL_PAGE).json()["pid"]
        died = browser.get(f"{MORTAL_PAGE}die", headers=asks)
        assert died.status_code == 503
        assert "<h1>Curves &lt;b&gt; has ended</h1>" in died.text
        assert "It ended by itself, with exit code 7." in died.text
        assert "&lt;i&gt;the last words&lt;/i&gt;" in died.text
        assert browser.get(MORTAL_PAGE).json() == {
            "message": "Curves <b> has ended. It ended by itself, with exit code 7."
        }
        chinese = browser.get(MORTAL_PAGE, headers={**asks, "Accept-Language": "zh-CN"}).text
        assert "退出码为 7" in chinese
        assert browser.get("/user/dora/lab").status_code == 200
        # what the home has heard of it holds for some seconds
        told = "The server runs, but Curves &lt;b&gt; has ended (exit code 7): open it to read why."
        wait_for(lambda: told in browser.get("/hub/home").text, "the home to say so", hub.log)

        # only its user's click starts it
        forged = browser.post("/user/dora/pai/service", headers={"Origin": "http://elsewhere.test"})
        assert forged.status_code == 403
        with hub.browser("mallory") as other:
            assert other.get("/user/dora/pai/service").status_code == 403
            assert other.post("/user/dora/pai/service").status_code == 403
        (hub.folder / "home" / "dora" / "go").unlink()
        action, token = re.findall(r'action="([^"]+)"|name="_xsrf" value="([^"]+)"', died.text)
        again = browser.post(action[0], data={"_xsrf": html.unescape(token[1])}, headers=asks)
        assert (again.status_code, again.url.path) == (503, MORTAL_PAGE)
        assert "<h1>Curves &lt;b&gt; is starting</h1>" in again.text
        (hub.folder / "home" / "dora" / "go").touch()
        wait_for(lambda: browser.get(MORTAL_PAGE).status_code == 200, "the program to answer again", hub.log)
        assert browser.get(MORTAL_PAGE).json()["pid"] != first
