"""What strangers and other tenants try at the REST API, and what it costs everybody else."""

from __future__ import annotations

import asyncio
import logging
import resource
import shutil
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from pai_scheduler.api import http_server as server_module
from pai_scheduler.api.app import make_app
from pai_scheduler.api.auth import TokensFile
from pai_scheduler.api.base import HandlerContext
from pai_scheduler.api.http_server import serve
from pai_scheduler.cluster.definition import Definition
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.service import admission
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.store.store import Store
from tests.testbed.empty_store import put_empty_store
from tests.testbed.scheduler import hello_job


class Desktop:
    """A scheduler within this process, and its address."""

    def __init__(self, service: Service, server: HTTPServer, port: int) -> None:
        self.service, self.server, self.port = service, server, port

    def client(self, token: str = "") -> httpx.AsyncClient:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{self.port}/api/v1", headers=headers, trust_env=False, timeout=30
        )

    async def raw(self, request: bytes) -> bytes:
        """Say exactly this; return the whole answer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(request)
        answer = await reader.read()
        writer.close()
        return answer


@pytest.fixture
async def desktop(tmp_path: Path) -> AsyncIterator[Desktop]:
    settings = ServiceSettings(Definition(grace_seconds=1))
    service = Service(ProcessEngine(tmp_path), Store.in_folder(put_empty_store(tmp_path)), settings)
    await service.start()
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"a": {"name": "alice"}, "b": {"name": "bob"}}')
    tokens.chmod(0o600)
    sockets = bind_sockets(0, "127.0.0.1")
    server = serve(make_app(HandlerContext(service, TokensFile(tokens))), sockets)
    yield Desktop(service, server, sockets[0].getsockname()[1])
    server.stop()
    await server.close_all_connections()
    await service.close()


# -- tenants apart

_OF_A_JOB = [
    ("GET", ""),
    ("DELETE", ""),
    ("GET", "/config"),
    ("GET", "/attempts"),
    ("GET", "/events"),
    ("GET", "/events?follow=1"),
    ("PUT", "/executionType"),
    ("GET", "/taskRoles/main/tasks/0/logs/all"),
    ("GET", "/taskRoles/main/tasks/0/logs/stdout?follow=1"),
]


async def test_nothing_tells_another_user_whether_a_job_is_there(desktop: Desktop) -> None:
    async with desktop.client("a") as alice, desktop.client("b") as bob:
        await alice.post("/jobs", json=hello_job("real", "echo secret"))
        for method, path in _OF_A_JOB:
            body = {"value": "STOP"} if path == "/executionType" else None
            real, none = [
                await bob.request(method, f"/user/alice/jobs/{name}{path}", json=body)
                for name in ("real", "none")
            ]
            assert real.status_code == 404, (method, path)
            assert real.text.replace("real", "") == none.text.replace("none", ""), (method, path)
        for user in ("alice", "nobody"):
            assert (await bob.get(f"/user/{user}/jobs")).status_code == 403
            assert (await bob.get(f"/user/{user}")).status_code == 403
            assert (await bob.put(f"/user/{user}/jobs/real", json=hello_job("real"))).status_code == 403
        assert "alice" not in (await bob.get("/events")).text + (await bob.get("/jobs")).text


@pytest.mark.parametrize(
    "name",
    ["..", "%2e%2e", "mine%2F..", "..%2Fmine", "mine%00", "mine%0a", "mine;x", "MINE", "~", "a" * 9000, "%"],
)
async def test_no_spelling_of_a_path_reaches_another_job(desktop: Desktop, name: str) -> None:
    async with desktop.client("a") as alice:
        await alice.post("/jobs", json=hello_job("mine"))
    for token in (b"a", b"b"):
        answer = await desktop.raw(
            b"GET /api/v1/user/alice/jobs/%s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
            b"Authorization: Bearer %s\r\n\r\n" % (name.encode(), token)
        )
        assert answer.startswith(b"HTTP/1.1 404 "), answer[:200]


@pytest.mark.parametrize(
    "headers",
    [
        {"Cookie": "token=a; jupyterhub-services=a; access_token=a"},
        {"Authorization": "Basic YTph"},
        {"X-Forwarded-User": "alice", "Remote-User": "alice"},
        {"Authorization": "Bearer a, Bearer b"},
    ],
)
async def test_only_a_bearer_token_says_who_one_is(desktop: Desktop, headers: dict[str, str]) -> None:
    async with desktop.client() as stranger:
        for query in ("", "?token=a", "?access_token=a", "?ticket=a"):
            assert (await stranger.get(f"/jobs{query}", headers=headers)).status_code == 401


async def test_a_web_page_elsewhere_can_neither_read_nor_write(desktop: Desktop) -> None:
    async with desktop.client("a") as alice:
        preflight = await alice.options(
            "/jobs",
            headers={
                "Origin": "https://evil.example",
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization",
            },
        )
        assert preflight.status_code == 405
        read = await alice.get("/jobs", headers={"Origin": "https://evil.example"})
    for answer in (preflight, read):
        assert not [name for name in answer.headers if name.startswith("access-control-")]


# -- what one costs the others


async def test_bodies_on_their_way_fill_no_memory(desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "MAX_BODIES", 100_000)
    head = b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 90000\r\n\r\n"
    _, first = await asyncio.open_connection("127.0.0.1", desktop.port)
    first.write(head + b"x" * 80_000)  # the rest never comes
    async with desktop.client("a") as alice:
        for _ in range(1000):  # until the first one's bytes are there
            answer = await alice.post("/validate", json=hello_job("b", extras={"pad": "x" * 50_000}))
            if answer.status_code != 200:
                break
        assert (answer.status_code, answer.json()["code"]) == (503, "TooBusyError")
        assert (await alice.get("/jobs")).status_code == 200
        first.close()
        for _ in range(1000):
            answer = await alice.post("/validate", json=hello_job("b", extras={"pad": "x" * 50_000}))
            if answer.status_code == 200:
                break
        assert answer.status_code == 200


@pytest.mark.parametrize("size", [10, 9_000_000])
async def test_a_body_that_takes_too_long_is_cut_off(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(server_module, "_BODY_SECONDS", 0.2)
    head = f"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", desktop.port)
    writer.write(f"{head}abc".encode())
    # one that is too large is refused at once, and what comes of it is read and thrown away for so long
    assert (await reader.read()).startswith(b"HTTP/1.1 413 " if size > 10 else b"")
    assert reader.at_eof()
    writer.close()
    async with desktop.client() as client:
        assert (await client.get("/healthz")).status_code == 200


async def test_a_connection_on_which_bodies_came_in_time_stays_open(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "_BODY_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", desktop.port)
    for _ in range(2):
        writer.write(b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}")
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 401 ")
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r")[0]))
        await asyncio.sleep(0.7)  # (late ones are looked for once a second)
    writer.close()


@pytest.mark.parametrize("sent", [b"", b"GET /healthz HTTP/1.1\r\nHost:"])
async def test_a_connection_whose_request_does_not_come_is_closed(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(server_module, "_IDLE_SECONDS", 0.2)
    reader, writer = await asyncio.open_connection("127.0.0.1", desktop.port)
    writer.write(sent)
    async with asyncio.timeout(60):
        assert await reader.read() == b""
    writer.close()


async def test_connections_never_take_the_last_files(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _what: (20, 20))
    idle = [await asyncio.open_connection("127.0.0.1", desktop.port) for _ in range(10)]
    with caplog.at_level(logging.WARNING, "pai_scheduler.api.http_server"):
        for _ in range(5):
            assert await desktop.raw(b"") == b""
    for _, writer in idle:
        writer.close()
    async with desktop.client() as client:
        for _ in range(1000):
            try:
                answer = await client.get("/healthz")
                break
            except httpx.TransportError:
                await asyncio.sleep(0.01)
    assert answer.status_code == 200


def _threads(monkeypatch: pytest.MonkeyPatch, where: Any, name: str) -> list[threading.Thread]:
    """Note which threads run a function."""
    ran, function = [], getattr(where, name)

    def noted(*args: Any, **options: Any) -> Any:
        ran.append(threading.current_thread())
        return function(*args, **options)

    monkeypatch.setattr(where, name, noted)
    return ran


async def test_a_large_job_is_validated_and_written_as_yaml_beside_everybody_elses_requests(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsing = _threads(monkeypatch, admission, "checked_config")
    writing = _threads(monkeypatch, yaml, "safe_dump")
    roles = [{"name": f"r{number}", "command": "true", "cpuNumber": 10**6} for number in range(100)]
    async with desktop.client("a") as alice:
        await alice.post("/jobs", json=hello_job("small"))
        for job in (hello_job("roles", taskRoles=roles), hello_job("extras", extras={"a": [1]})):
            assert (await alice.post("/validate", json=job)).status_code == 200
            assert (await alice.post("/jobs", json=job)).status_code == 202
        await alice.get("/user/alice/jobs/roles/config", headers={"Accept": "application/yaml"})
    assert [thread is threading.main_thread() for thread in parsing] == [True, False, False, False, False]
    assert [thread is threading.main_thread() for thread in writing] == [False]


async def test_who_follows_a_log_asks_the_database_once(
    desktop: Desktop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with desktop.client("a") as alice:
        await alice.post("/jobs", json=hello_job("quiet", "sleep 1"))
        looks = _threads(monkeypatch, desktop.service._store, "job")
        path = "/user/alice/jobs/quiet/taskRoles/main/tasks/0/logs/all?follow=1"
        assert (await alice.get(path)).content == b""
    assert len(looks) == 1


# -- a bad day


async def test_a_data_folder_that_is_deleted_is_said_and_nothing_is_promised(
    desktop: Desktop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with desktop.client("a") as alice:
        waits = [{"name": "main", "command": "true", "cpuNumber": 10**6}]
        assert (await alice.post("/jobs", json=hello_job("before", taskRoles=waits))).status_code == 202
        shutil.rmtree(tmp_path, ignore_errors=True)
        for _ in range(3):  # not only the first time
            submitted = await alice.post("/jobs", json=hello_job("after"))
            assert (submitted.status_code, submitted.json()["code"]) == (503, "StorageUnavailableError")
            assert "was deleted or replaced while the scheduler ran" in submitted.json()["message"]
        assert (await alice.get("/jobs")).status_code == 503
        assert (await alice.get("/healthz")).status_code == 200
    assert "Traceback" not in caplog.text


async def test_what_the_scheduler_writes_is_its_owners_alone(desktop: Desktop, tmp_path: Path) -> None:
    async with desktop.client("a") as alice:
        await alice.post("/jobs", json=hello_job("secret", jobEnvs={"KEY": "secret"}))
        await alice.get("/user/alice/jobs/secret/events?follow=1")
    shown = {
        str(path.relative_to(tmp_path))
        for path in tmp_path.iterdir()
        if path.stat().st_mode & 0o077 and path.name != "tokens.json"
    }
    assert shown == set()
