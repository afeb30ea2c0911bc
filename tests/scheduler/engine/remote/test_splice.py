"""Plain connections carried over another one, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from pai_scheduler.engine.remote.splice import Streams, splice_streams


class Pair:
    """Two ends of a TCP connection on loopback."""

    def __init__(self, near: Streams, far: Streams) -> None:
        self.near, self.far = near, far


async def connected() -> Pair:
    loop = asyncio.get_running_loop()
    taken: asyncio.Future[Streams] = loop.create_future()
    server = await asyncio.start_server(lambda *streams: taken.set_result(streams), "127.0.0.1", 0)
    near = await asyncio.open_connection(*server.sockets[0].getsockname())
    server.close()
    return Pair(near, await taken)


class Carried:
    """A client and a server with two splices and a carrying connection between them."""

    def __init__(self, client: Pair, carrier: Pair, server: Pair) -> None:
        self.client, self.server, self.carrier = client.near, server.near, carrier
        self.ends = [
            asyncio.create_task(splice_streams(client.far, carrier.near)),
            asyncio.create_task(splice_streams(server.far, carrier.far)),
        ]


@pytest.fixture
async def carried() -> AsyncIterator[Carried]:
    carried = Carried(await connected(), await connected(), await connected())
    yield carried
    for end in carried.ends:
        end.cancel()
    await asyncio.gather(*carried.ends, return_exceptions=True)
    for _, writer in (carried.client, carried.server):
        writer.close()


@pytest.mark.parametrize("size", [1, 2**16 - 1, 2**16, 5 * 2**20])
async def test_what_one_side_sends_the_other_gets_whole(carried: Carried, size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    reader, writer = carried.server
    carried.client[1].write(data[:size])
    assert await reader.readexactly(size) == data[:size]
    writer.write(b"thanks")
    assert await carried.client[0].readexactly(6) == b"thanks"


async def test_a_side_that_has_sent_all_still_hears_the_answer(carried: Carried) -> None:
    carried.client[1].write(b"question")
    carried.client[1].write_eof()
    assert await carried.server[0].read() == b"question"
    carried.server[1].write(b"answer")
    carried.server[1].write_eof()
    assert await carried.client[0].read() == b"answer"
    async with asyncio.timeout(30):
        await asyncio.gather(*carried.ends)


async def test_a_carrier_that_breaks_does_not_look_like_the_end_of_what_was_sent(carried: Carried) -> None:
    carried.client[1].write(b"half of it")
    assert await carried.server[0].readexactly(10) == b"half of it"
    carried.carrier.near[1].transport.abort()
    with pytest.raises(ConnectionResetError):
        await carried.server[0].read()
    results = await asyncio.gather(*carried.ends, return_exceptions=True)
    assert any(isinstance(result, OSError | EOFError) for result in results)


async def test_a_piece_that_is_too_long_is_none_of_ours() -> None:
    plain, carrier = await connected(), await connected()
    end = asyncio.create_task(splice_streams(plain.far, carrier.near))
    carrier.far[1].write((2**16 + 1).to_bytes(4))
    with pytest.raises(ConnectionError, match="65537 bytes"):
        await end
    with contextlib.suppress(OSError):
        assert await plain.near[0].read() == b""
    for _, writer in (plain.near, carrier.far):
        writer.close()
