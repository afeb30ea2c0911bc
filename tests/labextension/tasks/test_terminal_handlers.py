"""JupyterLab's terminals in a task, through a real Jupyter server; the task is a real sshd."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncssh
import httpx
import msgspec
import pytest
from jupyter_server.auth import Authorizer
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from pai_labextension.models import TerminalInfo
from pai_labextension.tasks.connections import TaskConnections, TaskName
from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.i18n import msg
from tests.labextension.conftest import BROWSER_TOKEN
from tests.testbed.sshd import RunningSshd

pytestmark = pytest.mark.usefixtures("sshd")

TASK = "pai/terminals/alice/train/worker-0"


@pytest.fixture
def sshd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RunningSshd]:
    folder = tmp_path / "sshd"
    folder.mkdir()
    running = RunningSshd(folder)

    async def open_task(_connections: TaskConnections, task: TaskName) -> asyncssh.SSHClientConnection:
        if task.job != "train":
            raise RemoteError(msg("Job {job} has several tasks: name one of {tasks}.", job="x", tasks="a-0"))
        return await running.connect()

    monkeypatch.setattr(TaskConnections, "open", open_task)
    yield running
    running.close()


async def socket(browser: httpx.AsyncClient, path: str, **headers: str) -> WebSocketClientConnection:
    url = str(browser.base_url).replace("http", "ws", 1) + path
    headers = {"Authorization": f"token {BROWSER_TOKEN}", **headers}
    return await websocket_connect(HTTPRequest(url, headers=headers))


async def hears(socket: WebSocketClientConnection, text: str) -> str:
    heard = ""
    async with asyncio.timeout(60):
        while text not in heard:
            message = await socket.read_message()
            assert message is not None, f"closed after {heard!r}"
            kind, content = json.loads(message)
            heard += str(content) if kind == "stdout" else f"<{kind}>"
    return heard


async def opened(browser: httpx.AsyncClient, **body: Any) -> str:
    answer = await browser.post(f"{TASK}/api/terminals", json=body)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["name"])


def say(*words: object) -> str:
    return json.dumps(words)


async def test_a_terminal_is_opened_listed_used_and_hung_up(browser):
    assert (await browser.get(f"{TASK}/api/terminals")).json() == []
    name = await opened(browser)
    (listed,) = msgspec.convert((await browser.get(f"{TASK}/api/terminals")).json(), list[TerminalInfo])
    assert (listed["name"], listed["last_activity"][-1]) == (name, "Z")
    assert (await browser.get(f"{TASK}/api/terminals/{name}")).json()["name"] == name

    line = await socket(browser, f"{TASK}/terminals/websocket/{name}")
    await line.write_message(say("set_size", 41, 123, 600, 800))
    await line.write_message(say("stdin", "stty size; echo 你''好\r"))
    heard = await hears(line, "你好")
    assert heard.startswith("<setup>")
    assert "41 123" in heard

    assert (await browser.delete(f"{TASK}/api/terminals/{name}")).status_code == 204
    await hears(line, "<disconnect>")
    assert await line.read_message() is None
    assert (await browser.get(f"{TASK}/api/terminals/{name}")).status_code == 404


async def test_after_a_cut_the_shell_is_still_there_with_what_it_said(browser):
    name = await opened(browser)
    line = await socket(browser, f"{TASK}/terminals/websocket/{name}")
    await line.write_message(say("stdin", "kept=yes; echo said be''fore\r"))
    await hears(line, "said before")
    line.close()
    again = await socket(browser, f"{TASK}/terminals/websocket/{name}")
    await hears(again, "said before")
    await again.write_message(say("stdin", "echo kept=$kept.\r"))
    await hears(again, "kept=yes.")
    again.close()


async def test_the_end_of_the_shell_ends_the_terminal(browser):
    name = await opened(browser, name="mine")
    assert name == "mine"
    line = await socket(browser, f"{TASK}/terminals/websocket/{name}")
    await line.write_message(say("stdin", "exit\r"))
    await hears(line, "<disconnect>")


async def test_nonsense_in_a_message_harms_nobody(browser):
    name = await opened(browser)
    line = await socket(browser, f"{TASK}/terminals/websocket/{name}")
    for nonsense in ("", "{", "[]", "null", '["stdin"]', '["stdin", 5]', '["set_size", "a", {}]', '["x"]'):
        await line.write_message(nonsense)
    await line.write_message(b"\xff\x00", binary=True)
    await line.write_message(say("stdin", "echo al''ive\r"))
    await hears(line, "alive")
    line.close()


async def test_why_a_task_cannot_be_reached_is_said_in_the_readers_language(browser):
    answer = await browser.post("pai/terminals/alice/other/worker-0/api/terminals")
    assert answer.status_code == 502
    assert "has several tasks" in answer.json()["message"]


@pytest.mark.parametrize(
    "task", ["alice/train/worker", "alice/train/worker-x", "alice/tr+ain/worker-0", "alice/..%2fx/worker-0"]
)
async def test_what_can_be_no_task_is_not_asked_for(browser, task):
    assert (await browser.post(f"pai/terminals/{task}/api/terminals")).status_code == 404


@pytest.mark.parametrize("name", ["a b", "../x", "", "x" * 65, 5, ["a"]])
async def test_a_name_that_is_none_is_refused(browser, name):
    assert (await browser.post(f"{TASK}/api/terminals", json={"name": name})).status_code == 400


async def test_a_stranger_a_page_of_another_site_and_a_shell_of_another_task_are_refused(browser):
    name = await opened(browser)
    path = f"{TASK}/terminals/websocket/{name}"
    # who has shown the token once has a cookie, as a browser does
    logged_in = {"Authorization": "", "Cookie": "; ".join(f"{k}={v}" for k, v in browser.cookies.items())}
    own = f"http://{browser.base_url.netloc.decode()}"
    (await socket(browser, path, **logged_in, Origin=own)).close()
    for refused in (
        {"Authorization": "token wrong"},
        {**logged_in, "Origin": "http://evil.example"},
        {**logged_in, "Origin": "null"},
    ):
        with pytest.raises(HTTPClientError) as error:
            await socket(browser, path, **refused)
        assert error.value.code == 403
    for elsewhere in (path.replace("worker-0", "worker-1"), path.replace(f"/{name}", "/77")):
        with pytest.raises(HTTPClientError) as error:
            await socket(browser, elsewhere)
        assert error.value.code == 404
    stranger = httpx.AsyncClient(base_url=browser.base_url, trust_env=False)
    async with stranger:
        assert (await stranger.post(f"{TASK}/api/terminals")).status_code == 403
        assert (await stranger.get(f"{TASK}/api/terminals")).status_code == 403


class NobodyMay(Authorizer):
    def is_authorized(self, _handler: Any, _user: Any, _action: str, resource: str) -> bool:
        return resource != "pai"


async def test_users_whom_the_server_refuses_get_no_terminal(make_jupyter, scheduler):
    browser = await make_jupyter(scheduler.url, authorizer_class=NobodyMay)
    assert (await browser.post(f"{TASK}/api/terminals")).status_code == 403
    with pytest.raises(HTTPClientError) as error:
        await socket(browser, f"{TASK}/terminals/websocket/1")
    assert error.value.code == 403
