"""The application under a prefix, with faults in the scheduler behind it, and with readers who leave."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from tornado.netutil import bind_sockets

from pai_scheduler.api import events, streaming
from pai_scheduler.api.app import make_app
from pai_scheduler.api.auth import TokensFile
from pai_scheduler.api.base import HandlerContext
from pai_scheduler.api.http_server import serve
from pai_scheduler.cluster.definition import Definition
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.store.store import Store
from tests.testbed.scheduler import hello_job


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Service]:
    """Run a real scheduler within this process."""
    settings = ServiceSettings(Definition(grace_seconds=1))
    service = Service(ProcessEngine(tmp_path), Store.in_folder(tmp_path), settings)
    await service.start()
    yield service
    await service.close()


@pytest.fixture
async def http(service: Service, tmp_path: Path) -> AsyncIterator[httpx.AsyncClient]:
    """Answer under the prefix that the Hub gives a service, and talk to it as alice."""
    tokens = tmp_path / "tokens.json"
    tokens.write_text('{"t": {"name": "alice"}}')
    tokens.chmod(0o600)
    sockets = bind_sockets(0, "127.0.0.1")
    server = serve(make_app(HandlerContext(service, TokensFile(tokens), "/services/p.i/")), sockets)
    url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    async with httpx.AsyncClient(
        base_url=url, headers={"Authorization": "Bearer t"}, trust_env=False
    ) as client:
        yield client
    server.stop()
    await server.close_all_connections()


async def test_everything_answers_under_the_prefix_only(http: httpx.AsyncClient) -> None:
    assert (await http.get("/services/p.i/healthz")).status_code == 200
    assert (await http.get("/services/p.i/api/v1/jobs")).json() == []
    assert (await http.get("/services/p.i/api/v1/authn/info")).json()[
        "loginURI"
    ] == "/services/p.i/api/v1/token"
    for path in ("/healthz", "/api/v1/jobs", "/services/pxi/api/v1/jobs"):
        assert (await http.get(path)).json()["code"] == "NoApiError"
    answer = await http.post("/services/p.i/api/v1/jobs", json=hello_job("a"))
    assert answer.headers["Location"] == "/services/p.i/api/v1/user/alice/jobs/a"


async def test_links_are_the_callers_view(http: httpx.AsyncClient) -> None:
    await http.post("/services/p.i/api/v1/jobs", json=hello_job("a"))
    headers = {"X-Forwarded-Proto": "https", "Host": "hub.example"}
    detail = (await http.get("/services/p.i/api/v1/user/alice/jobs/a", headers=headers)).json()
    log = detail["taskRoles"]["main"]["taskStatuses"][0]["containerLog"]
    assert log.startswith(
        "https://hub.example/services/p.i/api/v1/user/alice/jobs/a/taskRoles/main/tasks/0/logs/all"
    )


async def test_a_fault_of_ours_is_logged_with_its_traceback_and_told_without(
    http: httpx.AsyncClient,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("the inner workings")

    monkeypatch.setattr(service, "node_uses", fail)
    answer = await http.get("/services/p.i/api/v1/nodes")
    assert (answer.status_code, answer.json()["code"]) == (500, "UnknownError")
    assert "inner workings" not in answer.text
    incident = answer.json()["message"].split("under ")[1].split(".")[0]
    record = next(record for record in caplog.records if incident in record.message)
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError


async def test_a_fault_in_the_middle_of_an_answer_breaks_it_off(
    http: httpx.AsyncClient, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await http.post("/services/p.i/api/v1/jobs", json=hello_job("a", "sleep 60"))

    def ended(*_args: object) -> bool:
        raise ZeroDivisionError

    monkeypatch.setattr(service.tasks, "has_ended", ended)
    with pytest.raises(httpx.RemoteProtocolError):
        await http.get("/services/p.i/api/v1/user/alice/jobs/a/taskRoles/main/tasks/0/logs/all?follow=1")
    await http.put("/services/p.i/api/v1/user/alice/jobs/a/executionType", json={"value": "STOP"})


async def test_a_silent_stream_sends_heartbeats(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "HEARTBEAT_SECONDS", 0.01)
    beats = 0
    async with http.stream("GET", "/services/p.i/api/v1/events?follow=1") as response:
        async for line in response.aiter_lines():
            beats += line == ": still here"
            if beats == 3:
                break
    assert beats == 3


async def test_a_reader_who_leaves_is_forgotten(http: httpx.AsyncClient, service: Service) -> None:
    async with http.stream("GET", "/services/p.i/api/v1/events?follow=1") as response:
        async for _ in response.aiter_lines():
            break
        for _ in range(100):
            if service.job_events.followed:
                break
            await asyncio.sleep(0.02)
        assert service.job_events.followed
    for _ in range(500):
        if not service.job_events.followed:
            break
        await asyncio.sleep(0.02)
    assert not service.job_events.followed


async def test_a_list_longer_than_a_page_comes_whole(
    http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/services/p.i/api/v1/events"
    assert (await http.get(path)).json() == []
    for number in range(3):
        await http.post("/services/p.i/api/v1/jobs", json=hello_job(f"job-{number}"))
        follow = f"/services/p.i/api/v1/user/alice/jobs/job-{number}/events?follow=1"
        await http.get(follow)
    whole = (await http.get(path)).json()
    assert len(whole) > 10
    for size in (1, 7, len(whole)):
        monkeypatch.setattr(streaming, "_BATCH", size)
        monkeypatch.setattr(streaming, "SLICE", min(size, 5))
        assert (await http.get(path)).json() == whole
