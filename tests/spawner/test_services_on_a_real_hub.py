"""A web program that a profile names, behind a real Hub: its user gets it, others do not, its use counts."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

from tests.hub import PATIENCE, Hub, open_hub, wait_for
from tests.labextension import port_application

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
            "command": [sys.executable, "-c", "raise SystemExit('there is no such board')", "{port}"],
            "start_seconds": 1,
        },
    },
]
SESSIONS = "every: 1s\nrules:\n  - {idleAfter: 10m, warnBefore: 1s}\n"
SERVICE = "/user/alice/pai-service/"


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


def test_a_program_that_does_not_start_says_why_in_the_servers_log_and_jupyterlab_is_there(hub: Hub) -> None:
    assert hub.start_server("bob", {"profile": "broken"}).is_success
    hub.wait_ready("bob")
    with hub.browser("bob") as browser:
        failed = browser.get("/user/bob/")
        assert (failed.status_code, failed.url.path) == (500, "/user/bob/pai-service/")
        assert browser.get("/user/bob/lab").status_code == 200
    (job,) = hub.running_jobs("bob")
    log = f"user/bob/jobs/{job['name']}/taskRoles/notebook/tasks/0/logs"
    said = "".join(hub.scheduler("bob", "GET", f"{log}/{stream}").text for stream in ("stdout", "stderr"))
    assert "there is no such board" in said
