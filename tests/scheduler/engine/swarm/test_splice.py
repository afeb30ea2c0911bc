"""Plain connections carried over another one, on real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from pai_scheduler.engine.swarm.tunnel import reset_at_close, splice

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def connected() -> tuple[socket.socket, socket.socket]:
    """Return the two ends of a TCP connection on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far, _ = listening.accept()
    return near, far


class Carried:
    """A client and a server with two splices and a carrying connection between them."""

    def __init__(
        self, client: Streams, server: Streams, ends: list[asyncio.Task[None]], carrier: socket.socket
    ) -> None:
        self.client, self.server, self.ends, self._carrier = client, server, ends, carrier

    @classmethod
    async def begin(cls) -> Carried:
        (client, near), (carrier, other), (far, server) = connected(), connected(), connected()
        ends = [asyncio.create_task(splice(near, carrier)), asyncio.create_task(splice(far, other))]
        streams = [await asyncio.open_connection(sock=end) for end in (client, server)]
        return cls(streams[0], streams[1], ends, carrier)

    def break_carrier(self) -> None:
        self._carrier.shutdown(socket.SHUT_RDWR)

    async def close(self) -> None:
        for end in self.ends:
            end.cancel()
        await asyncio.gather(*self.ends, return_exceptions=True)
        for _, writer in (self.client, self.server):
            writer.close()


@pytest.fixture
async def carried() -> AsyncIterator[Carried]:
    carried = await Carried.begin()
    yield carried
    await carried.close()


@pytest.mark.parametrize("size", [1, 2**16 - 5, 2**16 - 4, 2**16, 5 * 2**20])
async def test_what_one_side_sends_the_other_gets_whole(carried: Carried, size: int) -> None:
    data = (bytes(range(251)) * (size // 251 + 1))[:size]
    reader, writer = carried.server
    carried.client[1].write(data)
    assert await reader.readexactly(size) == data
    writer.write(b"thanks")
    assert await carried.client[0].readexactly(6) == b"thanks"


async def test_much_goes_both_ways_at_once(carried: Carried) -> None:
    data = os.urandom(5 * 2**20)
    carried.client[1].write(data)
    carried.server[1].write(data[::-1])
    async with asyncio.timeout(60):
        got = await asyncio.gather(
            carried.server[0].readexactly(len(data)), carried.client[0].readexactly(len(data))
        )
    assert got == [data, data[::-1]]


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
    carried.break_carrier()
    for reader, _ in (carried.server, carried.client):
        with pytest.raises(ConnectionResetError):
            await reader.read()
    results = await asyncio.gather(*carried.ends, return_exceptions=True)
    assert [type(result) for result in results] == [ConnectionResetError, ConnectionResetError]


async def test_what_is_cancelled_does_not_look_like_the_end_of_what_was_sent(carried: Carried) -> None:
    carried.client[1].write(b"half of it")
    assert await carried.server[0].readexactly(10) == b"half of it"
    carried.ends[0].cancel()
    for reader, _ in (carried.server, carried.client):
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_a_side_that_breaks_off_is_seen_so_at_the_other(carried: Carried) -> None:
    carried.client[1].write(b"half of it")
    assert await carried.server[0].readexactly(10) == b"half of it"
    reset_at_close(carried.client[1].get_extra_info("socket"))
    carried.client[1].transport.abort()
    with pytest.raises(ConnectionResetError):
        await carried.server[0].read()


async def test_who_reads_slowly_holds_up_who_sends(carried: Carried) -> None:
    sent, too_much = 0, 64 * 2**20
    carried.client[1].transport.set_write_buffer_limits(0)
    # (it stops when all that is between the two is full)
    with contextlib.suppress(TimeoutError):
        while sent < too_much:
            carried.client[1].write(bytes(2**20))
            sent += 2**20
            async with asyncio.timeout(1):
                await carried.client[1].drain()
    assert sent < too_much
    async with asyncio.timeout(60):
        assert await carried.server[0].readexactly(sent) == bytes(sent)


async def test_pieces_that_come_byte_by_byte_or_many_at_once_are_put_together() -> None:
    (client, near), (carrier, other) = connected(), connected()
    end = asyncio.create_task(splice(near, carrier, b"\0\0\0\3ab"))
    reader, writer = await asyncio.open_connection(sock=client)
    other.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    loop = asyncio.get_running_loop()
    other.setblocking(False)
    for byte in b"c\0\0\0\1d":
        await loop.sock_sendall(other, bytes([byte]))
        await asyncio.sleep(0)
    assert await reader.readexactly(4) == b"abcd"
    await loop.sock_sendall(other, 5000 * b"\0\0\0\2xy" + bytes(4))
    assert await reader.read() == 5000 * b"xy"
    writer.write_eof()
    async with asyncio.timeout(30):
        assert await loop.sock_recv(other, 100) == bytes(4)
        await end
    writer.close()
    other.close()


async def test_a_piece_that_is_too_long_is_none_of_ours() -> None:
    (client, near), (carrier, other) = connected(), connected()
    end = asyncio.create_task(splice(near, carrier))
    other.sendall((2**16 + 1).to_bytes(4))
    with pytest.raises(ConnectionError, match="65537 bytes"):
        await end
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    client.close()
    other.close()


def test_a_process_that_is_killed_does_not_make_it_look_like_the_end_of_what_was_sent() -> None:
    (client, near), (carrier, other) = connected(), connected()
    script = (
        "import asyncio, socket, sys\n"
        "from pai_scheduler.engine.swarm.tunnel import splice\n"
        "async def main():\n"
        "    await splice(*(socket.socket(fileno=int(number)) for number in sys.argv[1:]))\n"
        "asyncio.run(main())\n"
    )
    numbers = [near.fileno(), carrier.fileno()]
    with subprocess.Popen([sys.executable, "-c", script, *map(str, numbers)], pass_fds=numbers) as process:
        near.close()
        carrier.close()
        client.sendall(b"hello")
        assert other.recv(9) == b"\0\0\0\5hello"
        process.send_signal(signal.SIGKILL)
    with pytest.raises(ConnectionResetError):
        client.recv(1)
    assert other.recv(1) == b"", "without the piece that says that it is the end"
    client.close()
    other.close()
