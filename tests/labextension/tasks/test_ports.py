"""Which port a label means, and how a task's ports are listed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import aiohttp
import asyncssh
import pytest
from aiohttp import web

from pai_labextension.tasks.ports import TaskPorts, http_session
from pai_scheduler.client.ssh.connection import SharedConnection
from tests.testbed.sshd import RunningSshd

PORTS = TaskPorts({"web": [1001, 1002], "web.1": [1003], "8080": [1004], "empty": [], "a.b": [1005]}, "")


@pytest.mark.parametrize(
    ("label", "number"),
    [
        ("web", 1001),
        ("web.0", 1001),
        ("web.1", 1003),
        ("web.2", None),
        ("a.b", 1005),
        ("a.b.0", 1005),
        ("8080", 1004),
        ("8081", 8081),
        ("65535", 65535),
        ("65536", None),
        ("0", None),
        ("-1", None),
        ("٣", None),
        ("web.²", None),
        ("empty", None),
        ("", None),
        ("..", None),
    ],
)
def test_a_label_is_a_port_and_so_is_a_number(label, number):
    assert PORTS.number(label) == number


def test_a_list_names_each_port_by_what_finds_it():
    ports = TaskPorts({"web": [1001, 1002], "board": [1003]}, "")
    assert ports.listed() == [("web", 1001), ("web.1", 1002), ("board", 1003)]
    assert all(ports.number(label) == port for label, port in ports.listed())


# HTTP through a real sshd: where an application is looked for, and what happens when a connection breaks.


@pytest.fixture
def sshd(tmp_path: Path) -> Iterator[RunningSshd]:
    running = RunningSshd(tmp_path)
    yield running
    running.close()


@pytest.fixture
async def opened() -> list[asyncssh.SSHClientConnection]:
    return []


@pytest.fixture
async def shared(
    sshd: RunningSshd, opened: list[asyncssh.SSHClientConnection]
) -> AsyncIterator[SharedConnection]:
    async def connect() -> asyncssh.SSHClientConnection:
        opened.append(await sshd.connect())
        return opened[-1]

    made = SharedConnection(connect, idle=0.1)
    yield made
    await made.close()


async def application(address: str) -> tuple[web.AppRunner, int]:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, address, 0).start()
    return runner, runner.addresses[0][1]


async def text(http: aiohttp.ClientSession, port: int, path: str) -> str:
    async with http.get(f"http://localhost:{port}{path}") as answer:
        return await answer.text()


async def test_requests_share_a_connection_which_is_closed_when_nobody_needs_it(shared, opened):
    runner, port = await application("127.0.0.1")
    async with http_session(shared, "") as http:
        paths = [f"/{number}" for number in range(20)]
        assert await asyncio.gather(*(text(http, port, path) for path in paths)) == paths
        (connection,) = opened
        assert not connection.is_closed()
    async with asyncio.timeout(30):
        await connection.wait_closed()
    assert shared.unused
    await runner.cleanup()


async def test_a_connection_that_broke_is_replaced_without_anybody_noticing(shared, opened):
    runner, port = await application("127.0.0.1")
    async with http_session(shared, "") as http:
        assert await text(http, port, "/a") == "/a"
        opened[0].abort()
        assert await text(http, port, "/b") == "/b"
    assert len(opened) == 2
    await runner.cleanup()


async def test_an_application_that_does_not_listen_on_the_loopback_is_found_at_the_tasks_address(shared):
    runner, port = await application("127.0.0.77")
    async with http_session(shared, "127.0.0.77") as http:
        assert await text(http, port, "/a") == "/a"
    async with http_session(shared, "") as http:
        with pytest.raises(asyncssh.ChannelOpenError):
            await text(http, port, "/a")
    await runner.cleanup()


async def test_nobody_who_listens_is_told_from_nobody_who_is_allowed(shared):
    runner, port = await application("127.0.0.1")
    await runner.cleanup()
    async with http_session(shared, "") as http:
        with pytest.raises(asyncssh.ChannelOpenError) as error:
            await text(http, port, "/")
        assert error.value.code == asyncssh.constants.OPEN_CONNECT_FAILED
