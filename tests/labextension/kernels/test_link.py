"""The conversation with a runner, whose part is played by a few lines of a pipe's other end."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from pai_labextension.kernels.channels import RunnerError, RunnerLink, RunnerState

SAID = {"kernel": None, "busy": False, "idle": 3, "limit": 60}
STATE = RunnerState({}, None, oom=False, busy=False, idle=3.0, limit=60.0)


class Process:
    """The ends of a program in a task: what it says is fed to `stdout`, what it is asked is kept."""

    def __init__(self) -> None:
        self.stdout = asyncio.StreamReader()
        self.stdin = self
        self.asked: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.closed = self.broken = False

    def write(self, line: bytes) -> None:
        if self.broken:
            raise BrokenPipeError("gone")
        self.asked.put_nowait(json.loads(line))

    def close(self) -> None:
        self.closed = True

    def say(self, what: object) -> None:
        self.stdout.feed_data(json.dumps(what).encode() + b"\n")


class Conversation:
    def __init__(self) -> None:
        self.process = Process()
        self.heard: list[tuple[str, RunnerState]] = []
        self.link = RunnerLink(self.process, lambda *said: self.heard.append(said))  # type: ignore[arg-type]
        self.running = asyncio.create_task(self.link.run())


@pytest.fixture
async def talk() -> Any:
    conversation = Conversation()
    yield conversation
    conversation.running.cancel()
    await asyncio.gather(conversation.running, return_exceptions=True)


async def test_events_are_told_in_order_with_the_kernels_state(talk: Conversation) -> None:
    connection = {"shell_port": 5, "key": "k"}
    talk.process.say({"event": "hello", **SAID})
    kernel = {"connection": connection, "code": -9, "oom": True}
    talk.process.say({"event": "exited", **SAID, "kernel": kernel})
    talk.process.stdout.feed_eof()
    await talk.running
    exited = RunnerState(connection, -9, oom=True, busy=False, idle=3.0, limit=60.0)
    assert talk.heard == [("hello", STATE), ("exited", exited)]
    assert talk.process.closed


async def test_each_request_gets_its_own_answer_in_whatever_order_they_come(talk: Conversation) -> None:
    start, keep = (asyncio.create_task(talk.link.ask(what, of=1)) for what in ("start", "keep"))
    asked = [await talk.process.asked.get() for _ in range(2)]
    assert [(each["do"], each["of"]) for each in asked] == [("start", 1), ("keep", 1)]
    talk.process.say({"id": asked[1]["id"], "error": "not now"})
    talk.process.say({"id": "nobody asked", "ok": 1})
    talk.process.say({"id": asked[0]["id"], "ok": {"code": None}})
    with pytest.raises(RunnerError, match="not now"):
        await keep
    assert await start == {"code": None}


async def test_who_waits_for_an_answer_is_told_when_the_way_breaks(talk: Conversation) -> None:
    asking = asyncio.create_task(talk.link.ask("start"))
    await talk.process.asked.get()
    talk.process.stdout.feed_eof()
    with pytest.raises(ConnectionError, match="broke off"):
        await asking
    talk.process.broken = True
    with pytest.raises(ConnectionError, match="gone"):
        await talk.link.ask("end")


@pytest.mark.parametrize(
    "line", [b"bash: python: command not found\n", b"[]\n", b"{}\n", b'{"event": "hello"}\n', b"\xff\n"]
)
async def test_what_is_no_runner_is_said_to_be_none(talk: Conversation, line: bytes) -> None:
    talk.process.stdout.feed_data(line)
    with pytest.raises(RunnerError, match="no runner"):
        await talk.running
    assert talk.process.closed
