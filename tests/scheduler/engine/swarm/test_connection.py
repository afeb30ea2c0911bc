"""Calls to what is no agent, or none that can be reached: each kind of failure is told from the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from pai_scheduler.engine.swarm import connection as connection_module
from pai_scheduler.engine.swarm.connection import (
    AgentConnection,
    AgentRefusedError,
    AgentUnreachableError,
    SessionOverError,
)
from pai_scheduler.engine.swarm.protocol import encode
from pai_scheduler.engine.swarm.tunnel import FarEnd
from pai_scheduler.i18n import msg
from pai_scheduler.job.message_documents import message_document
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.ports import free_port

WHY = msg("The node {node} does not answer: {why}", node="node-b", why="no route")


class Answerer:
    """Gives every request the same answer, and keeps the heads of those that came."""

    def __init__(self) -> None:
        self.answer = b""
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(self.answer)
        writer.close()

    def give(self, status: int, body: bytes) -> None:
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        self.answer = head.encode() + body


@pytest.fixture
def answerer() -> Answerer:
    return Answerer()


@pytest.fixture
async def connection(answerer: Answerer) -> AsyncIterator[AgentConnection]:
    async with await asyncio.start_server(answerer.serve, "127.0.0.1", 0) as server:
        connection = AgentConnection("127.0.0.1", server.sockets[0].getsockname()[1], None)
        await connection.open()
        yield connection
        await connection.close()


async def test_a_call_names_its_session_and_gives_what_was_answered(
    answerer: Answerer, connection: AgentConnection
) -> None:
    answerer.give(200, encode("done"))
    assert await connection.call("usage", None, str, "a-session") == "done"
    assert answerer.heads[0].startswith(b"POST /v1/usage HTTP/1.1\r\n")
    assert b"Pai-Session: a-session\r\n" in answerer.heads[0]
    answerer.give(200, encode("/where/it/is"))
    assert await connection.find_folder("0" * 64, "a name/with % and #", "") == "/where/it/is"
    assert answerer.heads[1].startswith(
        f"GET /v1/folders/{'0' * 64}/a%20name%2Fwith%20%25%20and%20%23 ".encode()
    )


async def test_a_session_that_is_over_is_told_from_a_refusal(
    answerer: Answerer, connection: AgentConnection
) -> None:
    answerer.give(409, encode("the session is over"))
    with pytest.raises(SessionOverError):
        await connection.call("usage", None, str)
    answerer.give(422, encode(message_document(WHY)))
    with pytest.raises(AgentRefusedError) as refused:
        await connection.call("usage", None, str)
    assert refused.value.message == WHY


@pytest.mark.parametrize("body", [b"", b"<html>a proxy</html>", encode("a text"), b"\xc1" * 2000])
@pytest.mark.parametrize("status", [404, 422, 500])
async def test_what_no_agent_answers_is_quoted(
    answerer: Answerer, connection: AgentConnection, status: int, body: bytes
) -> None:
    answerer.give(status, body)
    with pytest.raises(AgentRefusedError, match=f"answered what was not expected: {status}") as refused:
        await connection.call("usage", None, str)
    assert len(str(refused.value)) < 5000


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", b"hello\r\n\r\n"]
)
async def test_an_answer_that_does_not_come_whole_says_nothing_of_what_was_asked(
    answerer: Answerer, connection: AgentConnection, answer: bytes
) -> None:
    answerer.answer = answer
    with pytest.raises(AgentUnreachableError) as failure:
        await connection.call("usage", None, str)
    assert str(failure.value)


async def test_a_machine_without_an_agent_is_unreachable() -> None:
    connection = AgentConnection("127.0.0.1", free_port(), None)
    with pytest.raises(RuntimeError, match="not open"):
        await connection.call("usage", None, str)
    await connection.open()
    with pytest.raises(AgentUnreachableError, match="Cannot connect"):
        await connection.call("usage", None, str)
    await connection.close()


async def test_an_agent_that_does_not_answer_in_time_is_unreachable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_module, "_CALL_SECONDS", 0.05)
    held: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0) as server:
        connection = AgentConnection("127.0.0.1", server.sockets[0].getsockname()[1], None)
        await connection.open()
        with pytest.raises(AgentUnreachableError):
            await connection.find_folder("0" * 64, "code", "")
        with pytest.raises(AgentUnreachableError):
            await connection.call("usage", None, str, seconds=0.05)
        await connection.close()
        for writer in held:
            writer.close()


async def test_an_agent_has_an_address_of_either_kind(answerer: Answerer) -> None:
    answerer.give(200, encode("done"))
    async with await asyncio.start_server(answerer.serve, "::1", 0) as server:
        connection = AgentConnection("::1", server.sockets[0].getsockname()[1], None)
        await connection.open()
        assert await connection.call("usage", None, str) == "done"
        await connection.close()


def test_far_ends_are_where_the_agent_is_now() -> None:
    connection = AgentConnection("10.0.0.2", 7947, None)
    task = TaskRef("0123456789ab", 0, "a role", 1)
    connection.host = "10.0.0.3"
    assert connection.task_port(task, 22, "a-session") == FarEnd(
        "a connection to a task",
        "10.0.0.3",
        7947,
        "/v1/tasks/pai-0123456789ab-0-a%20role-1/connect/22",
        "a-session",
    )
    caller = connection.caller("0" * 32, "a-session")
    assert (caller.what, caller.path) == ("a connection of a container", f"/v1/callers/{'0' * 32}")
