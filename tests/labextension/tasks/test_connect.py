"""How to reach a task: what the dialog is told, the check that really logs in, code-server; with real parts.

Only code-server itself is played: a program of its name that takes its options and says what it says.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import msgspec
import pytest

from pai_labextension.models import CodeServerInfo, ConnectCheck, ConnectInfo
from pai_scheduler.client.rest import Client
from tests.labextension.conftest import BASE_URL
from tests.testbed.scheduler import RunningScheduler, StartScheduler

CODE_SERVER = """#!{python}
import http.server, os, sys
options = "--auth none --bind-addr 127.0.0.1:0 --disable-telemetry --disable-update-check".split()
assert sys.argv[1:] == options, sys.argv
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(f"{{os.getpid()}} {{self.path}}".encode())
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(f"[now] info  HTTP server listening on http://127.0.0.1:{{server.server_port}}/", flush=True)
server.serve_forever()
"""


@pytest.fixture(scope="module")
def cluster(module_scheduler: StartScheduler) -> RunningScheduler:
    return module_scheduler(ssh=True)


@pytest.fixture
async def alice(cluster: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(cluster.url, "token-of-alice") as client:
        yield client


Begin = Callable[..., Awaitable[None]]


@pytest.fixture
async def begin(alice: Client) -> AsyncIterator[Begin]:
    """Begin a job whose only task is main-0."""
    begun: list[str] = []

    async def start(
        name: str,
        command: str = "sleep 3600",
        *,
        extras: Mapping[str, Any] | None = None,
        **environment: str,
    ) -> None:
        ports = [{"label": "board", "portNumber": 2}]
        role = {"name": "main", "command": command, "portList": ports}
        job = {"jobName": name, "image": "local/any", "taskRoles": [role], "jobEnvs": environment}
        if extras:
            job["extras"] = extras
        await alice.submit(job)
        begun.append(name)
        async for event in alice.events("alice", name):
            if event["type"] in ("running", "ended"):
                return

    yield start
    for name in begun:
        await alice.stop("alice", name)


@pytest.fixture
async def browser(make_jupyter, cluster: RunningScheduler) -> httpx.AsyncClient:
    client: httpx.AsyncClient = await make_jupyter(cluster.url, "token-of-alice")
    return client


async def asked(browser: httpx.AsyncClient, job: str, method: str = "GET", what: str = "") -> Any:
    answer = await browser.request(method, f"pai/connect/alice/{job}/main-0{what}", timeout=90)
    assert answer.status_code == 200, answer.text
    model = {"": ConnectInfo, "/check": ConnectCheck, "/code-server": CodeServerInfo}[what]
    # all that is declared, and nothing else
    assert msgspec.convert(answer.json(), model) == answer.json()
    return answer.json()


async def test_all_is_told_that_a_program_needs(browser, begin, cluster, alice):
    await begin("told")
    told = await asked(browser, "told")
    about = await alice.about()
    status = (await alice.job("alice", "told"))["taskRoles"]["main"]["taskStatuses"][0]
    first, second = status["containerPorts"]["board"].split(",")
    work_dir, python = told.pop("workDir"), told.pop("python")
    assert Path(python).name in ("python3", "python")
    assert Path(python).is_file()
    assert Path(work_dir).is_dir()
    assert cluster.folder in Path(work_dir).parents
    links = {link["label"]: (link["port"], link["url"]) for link in told.pop("ports")}
    prefix = f"{BASE_URL}pai/ports/alice/told/main-0"
    assert links["board"] == (int(first), f"{prefix}/board/")
    assert links["board.1"] == (int(second), f"{prefix}/board.1/")
    assert "ssh" not in links
    assert "http" in links
    assert told == {
        "login": "alice+told+main-0",
        "user": "alice",
        "job": "told",
        "task": "main-0",
        "gateway": about["ssh"],
        "published": None,
        "off": None,
        "isolated": False,
    }


async def test_a_task_without_python_has_none_to_run_remotely(browser, begin, tmp_path):
    (tmp_path / "sh").symlink_to("/bin/sh")
    # (bash might read a start-up file of this account that has a PATH of its own)
    await begin("plain", "exec /bin/sleep 3600", PATH=str(tmp_path), SHELL="/bin/sh")
    told = await asked(browser, "plain")
    assert told["python"] == ""
    assert Path(told["workDir"]).is_dir()


async def test_a_notebook_servers_own_port_is_no_link(browser, begin):
    await begin("notebook_1", extras={"session": {"server": ""}})
    links = {link["label"] for link in (await asked(browser, "notebook_1"))["ports"]}
    assert links == {"board", "board.1"}


async def test_the_check_logs_in_and_what_was_opened_is_among_the_job_events(browser, begin, alice):
    await begin("tried")
    tried = await asked(browser, "tried", "POST", "/check")
    assert tried["ok"], tried
    assert tried["milliseconds"] > 0
    async for event in alice.events("alice", "tried"):
        if event["type"] == "access":
            break


async def test_a_task_that_has_ended_says_so_everywhere(browser, begin, alice):
    await begin("over", "true")
    async for event in alice.events("alice", "over"):
        if event["type"] == "ended":
            break
    browser.headers["Accept-Language"] = "zh-CN"
    told = await asked(browser, "over")
    assert (told["ports"], told["workDir"]) == ([], "")
    assert "over" in told["off"]
    tried = await asked(browser, "over", "POST", "/check")
    assert not tried["ok"]
    assert "over" in tried["message"]
    assert not tried["message"].isascii()
    refused = await browser.post("pai/connect/alice/over/main-0/code-server")
    assert refused.status_code == 502
    assert "over" in refused.json()["message"]


async def test_what_the_scheduler_refuses_is_said_in_one_language(browser):
    refusal = "调度器拒绝：找不到用户 bob 的作业 secret。"
    for language, said in (
        ("zh-CN", refusal),
        ("en", "The scheduler refuses: Job secret of user bob"),
    ):
        browser.headers["Accept-Language"] = language
        tried = await browser.post("pai/connect/bob/secret/main-0/check")
        assert tried.json()["message"].startswith(said)
        opened = await browser.post("pai/terminals/bob/secret/main-0/api/terminals")
        assert opened.json()["message"].startswith(said)


async def test_a_task_that_the_job_does_not_have_is_said(browser, begin):
    await begin("one")
    answer = await browser.get("pai/connect/alice/one/main-7")
    assert answer.json()["off"] == "main-7 of job one does not run."
    tried = await browser.post("pai/connect/alice/one/main-7/check")
    assert "No task main-7 of job one runs" in tried.json()["message"]


async def test_code_server_is_started_once_and_is_behind_the_link(browser, begin, tmp_path):
    home = tmp_path / "home it has"
    home.mkdir()
    program(tmp_path, CODE_SERVER.format(python=sys.executable))
    await begin("code", PATH=f"{tmp_path}:{os.environ['PATH']}", HOME=str(home))
    urls = await asyncio.gather(*(asked(browser, "code", "POST", "/code-server") for _ in range(3)))
    assert len({answer["url"] for answer in urls}) == 1
    url = urls[0]["url"]
    folder = (await asked(browser, "code"))["workDir"]
    path, _, query = url.partition("?")
    assert path.startswith(f"{BASE_URL}pai/ports/alice/code/main-0/")
    assert parse_qs(query) == {"folder": [folder]}
    page = str(browser.base_url.join(url))
    first = (await browser.get(f"{page}&a")).text
    pid, asked_for = first.split(maxsplit=1)
    assert asked_for == f"/?{query}&a"
    again = await asked(browser, "code", "POST", "/code-server")
    assert again["url"] == url
    assert (await browser.get(page)).text.split()[0] == pid


async def test_why_there_is_no_code_server_is_said(browser, begin, tmp_path):
    await begin("without")
    missing = await browser.post("pai/connect/alice/without/main-0/code-server")
    assert missing.status_code == 409
    assert "no code-server in this task" in missing.json()["message"]
    program(tmp_path, "#!/bin/sh\necho it lacks a library >&2\nexit 1\n")
    await begin("broken", PATH=f"{tmp_path}:{os.environ['PATH']}", HOME=str(tmp_path))
    broken = await browser.post("pai/connect/alice/broken/main-0/code-server")
    assert broken.status_code == 409
    assert "it lacks a library" in broken.json()["message"]


def program(folder: Path, text: str) -> None:
    file = folder / "code-server"
    file.write_text(text)
    file.chmod(0o755)


async def test_what_the_scheduler_refuses_is_handed_on(browser, make_jupyter, cluster, begin):
    await begin("mine")
    answer = await browser.get("pai/connect/alice/none/main-0")
    assert (answer.status_code, "none" in answer.json()["message"]) == (404, True)
    assert (await browser.get("pai/connect/alice/mi+ne/main-0")).status_code == 404
    assert (await browser.get("pai/connect/alice/mine/main")).status_code == 404
    bob = await make_jupyter(cluster.url, "token-of-bob")
    for method, what in (("GET", ""), ("POST", "/code-server")):
        refused = await bob.request(method, f"pai/connect/alice/mine/main-0{what}")
        assert refused.status_code in (403, 404)
    tried = (await bob.post("pai/connect/alice/mine/main-0/check")).json()
    assert not tried["ok"]


async def test_an_administrator_sees_how_but_gets_no_page_of_another_users(make_jupyter, cluster, begin):
    await begin("hers")
    root = await make_jupyter(cluster.url, "token-of-root")
    told = (await root.get("pai/connect/alice/hers/main-0")).json()
    assert (told["login"], told["ports"]) == ("alice+hers+main-0", [])
    assert (await root.post("pai/connect/alice/hers/main-0/check")).json()["ok"]
    refused = await root.post("pai/connect/alice/hers/main-0/code-server")
    assert refused.status_code == 403
