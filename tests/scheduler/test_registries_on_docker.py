"""A job's image, and what listens on this machine: the daemon is not sent there, nor is told what it says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from tests.scheduler.test_jobs_on_docker import job
from tests.testbed.scheduler import CLUSTER, RunningScheduler

NOT_FOR_USERS = "what-only-this-machine-may-read"
OPEN = CLUSTER.partition("#")[0]


class Inner:
    """A service on loopback that answers everything with a body that is nobody's business."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        inner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                inner.asked.append(self.path)
                body = NOT_FOR_USERS.encode()
                self.send_response(418)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.image = f"127.0.0.1:{self.server.server_port}/x"
        threading.Thread(target=self.server.serve_forever).start()


@pytest.fixture
def inner() -> Iterator[Inner]:
    service = Inner()
    yield service
    service.server.shutdown()
    service.server.server_close()


@pytest.fixture(autouse=True)
def _docker(docker_host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", docker_host)


def ask(scheduler: RunningScheduler, path: str, body: dict[str, Any]) -> httpx.Response:
    headers = {"Authorization": "Bearer token-of-alice"}
    return httpx.post(
        f"{scheduler.url}/api/v1{path}", json=body, headers=headers, trust_env=False, timeout=60
    )


def test_an_image_on_this_machine_is_refused_before_anybody_is_asked(
    inner: Inner, own_scheduler: Callable[..., RunningScheduler]
) -> None:
    scheduler = own_scheduler("--engine", "docker", cluster=OPEN)
    config = job("inside", inner.image, {"name": "main", "command": "true"})
    submitted = ask(scheduler, "/user/alice/jobs", config)
    validated = ask(scheduler, "/validate", config).json()
    assert submitted.status_code == 400, submitted.text
    (error,) = submitted.json()["errors"]
    assert error["path"] == "$.image"
    assert error["message"].startswith(f"No image may come from {inner.image.partition('/')[0]}")
    assert (validated["fits"], validated["errors"]) == ("never", [error])
    assert inner.asked == []


def test_what_a_registry_answers_is_not_shown_beyond_its_status(
    inner: Inner, own_scheduler: Callable[..., RunningScheduler]
) -> None:
    scheduler = own_scheduler("--engine", "docker")
    config = job("answered", inner.image, {"name": "main", "command": "true"})
    assert ask(scheduler, "/user/alice/jobs", config).status_code == 202
    headers = {"Authorization": "Bearer token-of-alice"}
    url = f"{scheduler.url}/api/v1/user/alice/jobs/answered"
    told = ""
    events = httpx.stream("GET", f"{url}/events?follow=1", headers=headers, trust_env=False, timeout=60)
    with events as answer:
        for line in answer.iter_lines():
            told += line
            if line.startswith("data: ") and json.loads(line[6:])["type"] in ("retry", "ended"):
                break
    told += httpx.get(url, headers=headers, trust_env=False).text
    executing = {"value": "STOP"}
    httpx.put(f"{url}/executionType", json=executing, headers=headers, trust_env=False)
    assert inner.asked
    assert NOT_FOR_USERS not in told
    assert "HTTP status 418" in told
    assert NOT_FOR_USERS in scheduler.log.read_text()
