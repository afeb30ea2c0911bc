"""A request's body on its way: one piece at a time; nobody waits for a server who left, or stands still."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest
from aiohttp.abc import AbstractStreamWriter

from pai_labextension.proxy.handlers import ForwardHandler
from pai_labextension.proxy.streaming import BodyPipe


class Server(AbstractStreamWriter):
    """Takes a piece whenever it may."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []
        self.may = asyncio.Semaphore(0)

    async def write(self, chunk: Any) -> None:
        self.taken.append(chunk)

    async def drain(self) -> None:
        await self.may.acquire()

    async def write_eof(self, chunk: bytes = b"") -> None: ...

    def enable_compression(self, *_args: Any, **_more: Any) -> None: ...

    def enable_chunking(self) -> None: ...

    async def write_headers(self, *_args: Any) -> None: ...


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_sender_waits_until_the_server_takes_more() -> None:
    pipe, server = BodyPipe(), Server()
    writing = asyncio.create_task(pipe.write(server))
    await pipe.put(b"first")
    await turns()
    await pipe.put(b"second")
    third = asyncio.create_task(pipe.put(b"third"))
    await turns()
    assert (server.taken, third.done()) == ([b"first"], False)
    server.may.release()
    await third
    writing.cancel()


async def test_a_body_ends_where_its_sender_says() -> None:
    pipe, server = BodyPipe(), Server()
    for _ in range(2):
        server.may.release()
    writing = asyncio.create_task(pipe.write(server))
    for piece in (b"a", b"b"):
        await pipe.put(piece)
    await pipe.end()
    await writing
    assert server.taken == [b"a", b"b"]


async def test_a_body_that_was_begun_is_not_sent_again_without_its_beginning() -> None:
    pipe, server = BodyPipe(), Server()
    writing = asyncio.create_task(pipe.write(server))
    await pipe.put(b"first")
    await turns()
    with pytest.raises(ConnectionError):
        await pipe.write(server)
    writing.cancel()


async def test_a_server_that_takes_nothing_for_too_long_is_given_up() -> None:
    pipe = BodyPipe(patience=0.05)
    await pipe.put(b"first")
    with pytest.raises(TimeoutError, match="took nothing of what was sent"):
        await pipe.write(Server())


async def test_a_sender_may_pause_for_longer_than_a_server() -> None:
    pipe, server = BodyPipe(patience=0.05), Server()
    server.may.release()
    writing = asyncio.create_task(pipe.write(server))
    await asyncio.sleep(0.2)
    await pipe.put(b"late")
    await pipe.end()
    await writing
    assert server.taken == [b"late"]


async def test_a_dropped_pipe_discards_everything_and_blocks_nobody() -> None:
    pipe = BodyPipe()
    await pipe.put(b"first")
    waiting = asyncio.create_task(pipe.put(b"second"))
    await asyncio.sleep(0)
    pipe.drop()
    await waiting
    for _ in range(10):
        await pipe.put(b"more")
    await pipe.end()


async def test_an_upload_to_a_scheduler_that_stands_still_ends_with_the_reason(
    make_jupyter: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ForwardHandler, "patience", 0.3)
    gone = asyncio.Event()

    async def stand_still(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await gone.wait()
        writer.close()

    async with await asyncio.start_server(stand_still, "127.0.0.1", 0, limit=1024) as server:
        host, port = server.sockets[0].getsockname()
        browser: httpx.AsyncClient = await make_jupyter(f"http://{host}:{port}")
        # more than the buffers on the way hold
        answer = await browser.put("pai/webhdfs/v1/alice/a?op=CREATE", content=b"x" * 30_000_000)
        gone.set()
    assert answer.status_code == 502
    assert "took nothing of what was sent for 0.3 s" in answer.json()["message"]
