"""The loopback proxy: containers reach one port of loopback, over Docker's bridge, and nothing else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from urllib.parse import urlsplit

import pytest

from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.loopback_proxy import LoopbackProxy
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.testing.lab import Lab
from pai_scheduler.testing.ports import free_port

#: Another address of loopback, on which a proxy to 127.0.0.1 can be tried without Docker.
OUTSIDE = "127.0.0.2"

Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture
async def inside() -> AsyncIterator[Callable[[Handler], Awaitable[int]]]:
    """Serve on a port of 127.0.0.1."""
    servers: list[asyncio.Server] = []

    async def serve(handler: Handler) -> int:
        servers.append(await asyncio.start_server(handler, "127.0.0.1", 0))
        return int(servers[-1].sockets[0].getsockname()[1])

    yield serve
    for server in servers:
        server.close()


async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    request = await reader.readuntil(b"\r\n\r\n")
    body = b"hello, " + request.split()[1]
    writer.write(b"HTTP/1.0 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
    await writer.drain()
    writer.close()


async def test_a_container_reaches_a_server_on_loopback_through_the_proxy(
    open_docker: Callable[..., Awaitable[DockerEngine]],
    debian_image: str,
    inside: Callable[[Handler], Awaitable[int]],
) -> None:
    engine = await open_docker(front_door=await inside(hello))
    lab = await Lab.over(engine, debian_image)
    get = "python3 -c 'import sys, urllib.request as r; print(r.urlopen(sys.argv[1]).read().decode())'"
    task, _ = await lab.run(f"{get} {engine.front_door_url}/there")
    assert lab.output(task) == "hello, /there\n"
    await lab.clean()


async def test_without_the_proxy_a_container_reaches_nothing_on_loopback(
    docker_lab: Lab, inside: Callable[[Handler], Awaitable[int]]
) -> None:
    port = await inside(hello)
    assert docker_lab.engine.front_door_url is None
    knock = f"""python3 -c "
import socket
for host in ('127.0.0.1', '172.17.0.1'):
    try:
        socket.create_connection((host, {port}), timeout=3)
        print('open')
    except OSError as error:
        print('closed')
" """
    task, _ = await docker_lab.run(knock)
    assert docker_lab.output(task) == "closed\nclosed\n"


async def test_bytes_pass_both_ways_and_each_side_may_finish_first(
    inside: Callable[[Handler], Awaitable[int]],
) -> None:
    async def reverse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read())[::-1])
        await writer.drain()
        writer.close()

    proxy = LoopbackProxy(OUTSIDE, await inside(reverse))
    await proxy.open()
    reader, writer = await asyncio.open_connection(proxy.address, proxy.port)
    data = bytes(range(256)) * 40_000
    writer.write(data)
    writer.write_eof()
    assert await reader.read() == data[::-1]
    writer.close()
    await proxy.close()


async def test_the_end_of_a_clients_connection_is_seen_by_the_server(
    inside: Callable[[Handler], Awaitable[int]],
) -> None:
    left = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        left.set()
        writer.close()

    proxy = LoopbackProxy(OUTSIDE, await inside(wait))
    await proxy.open()
    _, writer = await asyncio.open_connection(proxy.address, proxy.port)
    writer.close()
    await asyncio.wait_for(left.wait(), 60)
    await proxy.close()


async def test_nobody_inside_ends_the_connection_and_not_the_proxy() -> None:
    port = free_port()
    proxy = LoopbackProxy(OUTSIDE, port)
    await proxy.open()
    reader, writer = await asyncio.open_connection(proxy.address, proxy.port)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()
    opened = await asyncio.start_server(hello, "127.0.0.1", port)
    reader, writer = await asyncio.open_connection(proxy.address, proxy.port)
    writer.write(b"GET /later HTTP/1.0\r\n\r\n")
    assert (await reader.read()).endswith(b"hello, /later")
    writer.close()
    await proxy.close()
    opened.close()


async def test_more_clients_than_allowed_are_refused(
    inside: Callable[[Handler], Awaitable[int]],
) -> None:
    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"in")
        await reader.read()
        writer.close()

    proxy = LoopbackProxy(OUTSIDE, await inside(wait), most_connections=1)
    await proxy.open()
    first_reader, first = await asyncio.open_connection(proxy.address, proxy.port)
    assert await first_reader.readexactly(2) == b"in"
    second_reader, second = await asyncio.open_connection(proxy.address, proxy.port)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await second_reader.readexactly(2)
    first.close()
    second.close()
    await proxy.close()


async def test_a_port_that_is_taken_is_one_sentence() -> None:
    taken = await asyncio.start_server(hello, OUTSIDE, 0)
    port = taken.sockets[0].getsockname()[1]
    with pytest.raises(EngineError, match=f"let in at {OUTSIDE}:{port}: another program listens"):
        await LoopbackProxy(OUTSIDE, port).open()
    taken.close()


async def test_containers_that_cannot_be_let_in_are_an_error_only_where_they_must(
    open_docker: Callable[..., Awaitable[DockerEngine]], inside: Callable[[Handler], Awaitable[int]]
) -> None:
    gateway = urlsplit(str((await open_docker(front_door=await inside(hello))).front_door_url)).hostname
    with socket.create_server((str(gateway), 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(EngineError, match=f"let in at {gateway}:{port}: another program listens there"):
            await open_docker(front_door=port)
        assert (await open_docker(front_door=port, proxy_needed=False)).front_door_url is None
