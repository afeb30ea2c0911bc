"""Asking an agent for a connection: what it says at once is kept, and what it does not say is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from pai_scheduler.engine.swarm.connection import AgentConnection
from pai_scheduler.engine.swarm.tunnel import FarEnd, scheduler_tls
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.ports import free_port
from pai_scheduler.workers.tunnel_server import server as reach_module
from pai_scheduler.workers.tunnel_server.server import reach
from tests.scheduler.engine.agent.small_agent import SmallAgent

TASK = TaskRef("0123456789ab", 0, "main", 0)
Answering = Callable[[bytes], FarEnd]


@pytest.fixture
async def answering() -> AsyncIterator[Answering]:
    """Return where it is answered, without TLS, with bytes that nobody else would answer with."""
    heads: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(heads[-1])
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)

    def far(head: bytes) -> FarEnd:
        heads.append(head)
        return FarEnd("a connection", "127.0.0.1", server.sockets[0].getsockname()[1], "/v1/x", "session")

    async with server:
        yield far


async def test_what_comes_together_with_the_answer_is_not_lost(answering: Answering) -> None:
    protected, begun = await reach(answering(b"HTTP/1.1 101 Go on\r\nUpgrade: tcp\r\n\r\n\0\0\0\1x"), None)
    protected.close()
    assert begun == b"\0\0\0\1x"


@pytest.mark.parametrize(
    ("head", "why"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\n", "status 200"),
        (b"", "the agent has ended the connection"),
        (b"HTTP/1.1 101 Go", "the agent has ended the connection"),
        (b"hello\r\n\r\n", "the answer is none of an agent"),
        (b"HTTP/1.1 yes\r\n\r\n", "the answer is none of an agent"),
        (b"HTTP/1.1 101 Go on\r\n" + 2**14 * b"x" + b"\r\n\r\n", "the answer is none of an agent"),
    ],
)
async def test_an_answer_that_is_not_the_one_is_said(answering: Answering, head: bytes, why: str) -> None:
    with pytest.raises(ConnectionError, match=f"/v1/x: {why}"):
        await reach(answering(head), None)


async def test_a_machine_without_an_agent_is_said() -> None:
    with pytest.raises(ConnectionError, match=r"/v1/x: \[Errno 111\]"):
        await reach(FarEnd("a connection", "127.0.0.1", free_port(), "/v1/x", "session"), None)


async def test_an_agent_that_does_not_answer_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reach_module, "_CONNECT_SECONDS", 0.05)
    held: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0) as server:
        far = FarEnd("a connection", "127.0.0.1", server.sockets[0].getsockname()[1], "/v1/x", "session")
        with pytest.raises(ConnectionError, match=r"/v1/x: no answer within 0\.05 s"):
            await reach(far, None)
        for writer in held:
            writer.close()


async def test_an_agent_that_we_do_not_know_is_told_nothing(
    agent: SmallAgent, connection: AgentConnection, answering: Answering
) -> None:
    # it speaks no TLS
    far = answering(b"HTTP/1.1 101 Go on\r\n\r\n")
    with pytest.raises(ConnectionError, match="/v1/x: "):
        await reach(far, scheduler_tls(agent.credentials))
    # and an agent answers nobody who speaks none
    with pytest.raises(ConnectionError):
        await reach(connection.task_port(TASK, 1, ""), None)
