"""A request's body on its way: one piece at a time, and nobody waits for a reader who left."""

from __future__ import annotations

import asyncio

import pytest

from pai_labextension.streaming_proxy import BodyPipe


async def test_a_second_piece_waits_until_the_first_was_taken():
    pipe = BodyPipe()
    await pipe.put(b"first")
    second = asyncio.create_task(pipe.put(b"second"))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not second.done()
    assert await anext(aiter(pipe)) == b"first"
    await second


async def test_a_body_ends_where_its_sender_says():
    pipe = BodyPipe()

    async def send():
        for piece in (b"a", b"b"):
            await pipe.put(piece)
        await pipe.end()

    sender = asyncio.create_task(send())
    assert [piece async for piece in pipe] == [b"a", b"b"]
    await sender


async def test_a_body_that_was_begun_is_not_sent_again_without_its_beginning():
    pipe = BodyPipe()
    await pipe.put(b"first")
    assert await anext(aiter(pipe)) == b"first"
    with pytest.raises(ConnectionError):
        aiter(pipe)


async def test_a_dropped_pipe_discards_everything_and_blocks_nobody():
    pipe = BodyPipe()
    await pipe.put(b"first")
    waiting = asyncio.create_task(pipe.put(b"second"))
    await asyncio.sleep(0)
    pipe.drop()
    await waiting
    for _ in range(10):
        await pipe.put(b"more")
    await pipe.end()
