"""What the spawner makes of what a server tells of its service, which its user may have changed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

from pai_scheduler.client.rest import Client
from pai_spawner import startup
from pai_spawner.messages import Translated
from pai_spawner.startup import ServerAddress, ServerFailed, ServiceState, wait_until_serving

ANSWERS = {"state": "answers", "exitCode": None, "startSeconds": 60, "reason": "", "log": ""}
Say = Callable[[RequestHandler], None]


class Played(RequestHandler):
    """A server that tells what it is given, one thing after the other, the last for ever."""

    def initialize(self, script: list[Say], asked: list[str]) -> None:
        self.script, self.asked = script, asked

    def get(self) -> None:
        self.asked.append(self.request.headers.get("Authorization", ""))
        say = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        say(self)


def text(body: str, status: int = 200) -> Say:
    def say(handler: RequestHandler) -> None:
        handler.set_status(status)
        handler.finish(body)

    return say


def tells(**facts: Any) -> Say:
    return text(json.dumps(ANSWERS | facts))


@pytest.fixture
async def address() -> AsyncIterator[Callable[..., ServerAddress]]:
    servers = []

    def serve(script: list[Say], asked: list[str]) -> ServerAddress:
        given = {"script": script, "asked": asked}
        server = HTTPServer(Application([("/user/a%3Ab/pai/service", Played, given)]))
        sockets = bind_sockets(0, "127.0.0.1")
        server.add_sockets(sockets)
        servers.append(server)
        return ServerAddress("127.0.0.1", sockets[0].getsockname()[1])

    yield serve
    for server in servers:
        server.stop()
        await server.close_all_connections()


@pytest.fixture
def wait(address: Callable[..., ServerAddress], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setattr(startup, "_ASK_SERVICE_EVERY", 0.01)

    async def wait(*script: Say, patience: float = 20.0, job: Any = None) -> tuple[list[str], list[str]]:
        """Return the tokens with which the server was asked, and what the person was told."""
        asked: list[str] = []
        told: list[str] = []

        async def config(_user: str, _job: str) -> dict[str, Any]:
            return {"jobEnvs": {"JUPYTERHUB_API_TOKEN": "own-token"}}

        async def detail(_user: str, _job: str) -> Any:
            return job or {"jobStatus": {"state": "WAITING", "subState": "QUEUED"}}

        async def log(*_: Any, **_options: Any) -> bytes:
            return b"the log of the job"

        await wait_until_serving(
            cast(Client, SimpleNamespace(config=config, job=detail, log=log)),
            *("a:b", "notebook_1", address(list(script), asked)),
            base_url="/user/a%3Ab/",
            title=Translated("Board"),
            tell=lambda message, _percent, /, **_facts: told.append(str(message)),
            patience=patience,
        )
        return asked, told

    return wait


async def test_it_is_asked_with_its_own_token_until_its_service_answers(wait: Callable[..., Any]) -> None:
    asked, told = await wait(text("", 500), tells(state="starting"), tells())
    assert asked == ["token own-token"] * 3
    assert told == ["The server answers; Board is starting in it."]


@pytest.mark.parametrize(
    ("facts", "says"),
    [
        ({"exitCode": 3}, "Board ended with exit code 3 before it answered."),
        ({"exitCode": -15}, "Board was ended by signal 15 before it answered."),
        (
            {"exitCode": -9},
            "Board was ended by signal 9 before it answered. Where nobody sent that, the memory",
        ),
        ({"exitCode": None, "startSeconds": 1}, "Board did not answer within 1 second."),
        ({"exitCode": None, "startSeconds": 90}, "Board did not answer within 90 seconds."),
        ({"reason": "No such file"}, "Board cannot be started: No such file"),
        ({"state": "ended", "exitCode": 0}, "Board ended with exit code 0 before it answered."),
    ],
)
async def test_why_it_did_not_start_is_said_with_its_last_lines(
    wait: Callable[..., Any], facts: dict[str, Any], says: str
) -> None:
    with pytest.raises(ServerFailed) as failed:
        await wait(tells(**{"state": "failed", "log": "one\ntwo"} | facts))
    assert str(failed.value.message).startswith(says)
    assert (failed.value.reason, failed.value.log) == ("service", "one\ntwo")


async def test_a_server_whose_image_knows_no_services_says_what_it_lacks(wait: Callable[..., Any]) -> None:
    with pytest.raises(ServerFailed, match=r"no pai-for-jupyter that can open Board.*\[services\]"):
        await wait(text("not found", 404))


@pytest.mark.parametrize(
    "nonsense",
    [
        text("<html>"),
        text("[]"),
        text("x" * 100_000),
        tells(state="happy"),
        tells(exitCode="one"),
        tells(startSeconds=None),
        text("", 302),
    ],
)
async def test_nonsense_is_asked_again_and_given_up_in_the_end(
    wait: Callable[..., Any], nonsense: Say
) -> None:
    assert await wait(nonsense, tells())
    with pytest.raises(ServerFailed, match="did not say within 0 s what Board does") as failed:
        await wait(nonsense, patience=0.2)
    assert (failed.value.reason, failed.value.log) == ("timeout", "the log of the job")


async def test_a_job_that_ends_meanwhile_is_noticed(wait: Callable[..., Any]) -> None:
    ended = {
        "name": "notebook_1",
        "jobStatus": {"state": "FAILED", "appExitCode": 1, "appExitSpec": None, "appExitDiagnostics": "why"},
    }
    async with asyncio.timeout(10):
        with pytest.raises(ServerFailed, match=r"ended with exit code 1 before it was ready\. why"):
            await wait(tells(state="starting"), job=ended)


def test_what_is_kept_of_the_last_lines_is_short() -> None:
    state = ServiceState.read({**ANSWERS, "log": "\n".join("x" * 5000 for _ in range(100)), "reason": 7})
    assert state is not None
    assert len(state.log) <= 8000
    assert state.reason == ""
