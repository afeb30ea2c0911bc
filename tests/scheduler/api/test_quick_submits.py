"""A job that is submitted without tornado is answered as tornado's handler answers, whatever comes of it."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from typing import Any, cast

import httpx
import pytest

from pai_scheduler.api.quick_submits import Limits, QuickConnection, QuickSubmits
from tests.testbed.scheduler import RunningScheduler

#: a header with which nothing is read quickly
UNUSUAL = {"TE": "trailers"}
ALICE = {"Authorization": "Bearer token-of-alice"}
ROLE = {"name": "main", "command": "sleep 100", "gpuNumber": 1}


class Connection:
    """A connection on which each byte that is sent is chosen."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, body: bytes, headers: dict[str, str], start: str = "POST /api/v1/jobs") -> None:
        lines = {"Host": "localhost", "Content-Length": str(len(body)), **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self.writer.write(f"{start} HTTP/1.1\r\n{head}\r\n".encode() + body)

    async def answer(self) -> tuple[str, dict[str, list[str]], bytes]:
        """Return the first line, the headers without the date, and the body of the next answer."""
        start, *lines = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        headers: dict[str, list[str]] = {}
        for line in lines:
            name, _, value = line.partition(": ")
            headers.setdefault(name, []).append(value)
        assert headers.pop("Date")
        return start, headers, await self.reader.readexactly(int(headers["Content-Length"][0]))


@pytest.fixture
async def connection(scheduler: RunningScheduler) -> AsyncIterator[Connection]:
    host, port = scheduler.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    yield Connection(reader, writer)
    writer.close()


def job(name: str, **fields: Any) -> bytes:
    return json.dumps({"jobName": name, "image": "x", "taskRoles": [ROLE], **fields}).encode()


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (job("NAME"), ALICE, 202),
        (job("NAME", killAllOnCompletedTaskNumber=1, codeDir="hdfs://elsewhere/蓝"), ALICE, 202),
        (job("NAME", virtualCluster="nowhere"), ALICE, 404),
        (job("NAME", taskRoles=[]), ALICE, 400),
        (job("NAME", taskRoles=[]), {**ALICE, "Accept-Language": "zh-CN,en;q=0.5"}, 400),
        (job("quick-taken"), ALICE, 409),
        (job("NAME"), {}, 401),
        (job("NAME"), {"Authorization": "Bearer nobody's"}, 401),
        (b"", ALICE, 400),
        (b'{"a": \n}', ALICE, 400),
        (b"[1]", ALICE, 400),
        (b"\xff", ALICE, 400),
        (
            b"jobName=NAME&image=x&taskRoles[0][name]=a&taskRoles[0][command]=true",
            {**ALICE, "Content-Type": "application/x-www-form-urlencoded"},
            202,
        ),
        (job("NAME"), {**ALICE, "Connection": "close"}, 202),
    ],
)
async def test_both_ways_answer_the_same(
    connection: Connection,
    http: httpx.AsyncClient,
    scheduler: RunningScheduler,
    body: bytes,
    headers: dict[str, str],
    status: int,
    request: pytest.FixtureRequest,
) -> None:
    await http.post("/jobs", content=job("quick-taken"))
    name = f"q{abs(hash(request.node.name)) % 10**8}"
    quickly, by_tornado = (
        body.replace(b"NAME", f"{name}a".encode()),
        body.replace(b"NAME", f"{name}b".encode()),
    )
    connection.send(quickly, headers)
    start, answered, content = await connection.answer()
    host, port = scheduler.url.removeprefix("http://").split(":")
    other = Connection(*await asyncio.open_connection(host, int(port)))
    other.send(by_tornado, headers | UNUSUAL)
    expected = await other.answer()
    other.writer.close()
    assert start.startswith(f"HTTP/1.1 {status}")
    told = json.loads(json.dumps([start, answered, content.decode()]).replace(f"{name}a", f"{name}b"))
    assert told == [expected[0], expected[1], expected[2].decode()]


async def test_a_connection_serves_whatever_comes_on_it(connection: Connection) -> None:
    connection.send(job("quick-1"), ALICE)
    assert (await connection.answer())[0] == "HTTP/1.1 202 Accepted"
    connection.send(b"", ALICE, start="GET /api/v1/user/alice/jobs/quick-1")
    assert json.loads((await connection.answer())[2])["name"] == "quick-1"
    connection.send(job("quick-2"), ALICE)
    assert (await connection.answer())[0] == "HTTP/1.1 202 Accepted"


async def test_requests_that_come_together_are_answered_in_order(connection: Connection) -> None:
    for number in range(3):
        connection.send(job(f"together-{number}"), ALICE)
    connection.send(b"", ALICE, start="GET /api/v1/user/alice/jobs/together-2")
    for number in range(3):
        _, headers, _ = await connection.answer()
        assert headers["Location"] == [f"/api/v1/user/alice/jobs/together-{number}"]
    assert json.loads((await connection.answer())[2])["name"] == "together-2"


async def test_a_head_that_comes_again_counts_for_the_request_it_is_before(
    connection: Connection,
) -> None:
    longer = job("same-head-3", codeDir="hdfs://longer")
    for body in (job("same-head-1"), job("same-head-2"), longer, job("same-head-4")):
        connection.send(body, ALICE)
        start, headers, _ = await connection.answer()
        assert start == "HTTP/1.1 202 Accepted"
        assert headers["Location"] == [f"/api/v1/user/alice/jobs/{json.loads(body)['jobName']}"]
    connection.send(job("same-head-1"), {"Authorization": "Bearer nobody's"})
    assert (await connection.answer())[0] == "HTTP/1.1 401 Unauthorized"


async def test_a_job_that_comes_in_pieces_is_taken(connection: Connection) -> None:
    body = job("pieces")
    connection.send(body[:0], {**ALICE, "Content-Length": str(len(body))})
    for piece in (body[:10], body[10:11], body[11:]):
        await connection.writer.drain()
        await asyncio.sleep(0.01)  # (so that it is likely to come by itself; no answer depends on it)
        connection.writer.write(piece)
    assert (await connection.answer())[0] == "HTTP/1.1 202 Accepted"


async def test_a_large_job_is_taken(connection: Connection) -> None:
    connection.send(job("large", extras={"pad": "x" * 200_000}), ALICE)
    assert (await connection.answer())[0] == "HTTP/1.1 202 Accepted"


async def test_a_job_is_kept_whose_sender_does_not_wait(
    connection: Connection, http: httpx.AsyncClient
) -> None:
    connection.send(job("left"), ALICE)
    await connection.writer.drain()
    connection.writer.close()
    while (await http.get("/user/alice/jobs/left")).status_code != 200:  # noqa: ASYNC110 - the API only tells
        await asyncio.sleep(0.01)


class _Opened:
    """One end of a connection whose other end is read by a `QuickConnection` with these limits."""

    def __init__(self, limits: Limits) -> None:
        self.closed, self.given = asyncio.Event(), asyncio.get_running_loop().create_future()
        self.far, near = socket.socketpair()
        near.setblocking(False)
        quick = QuickSubmits(cast("Any", type("_", (), {"prefix": "/"})), ["/api/v1/jobs"])
        self.connection = QuickConnection(
            quick,
            near,
            "192.0.2.1",
            limits,
            lambda _, begun: self.given.set_result(begun),
            lambda _: self.closed.set(),
        )


async def test_a_connection_on_which_nothing_comes_is_closed() -> None:
    opened = _Opened(Limits(0.01, 60, lambda _: True))
    await opened.closed.wait()
    assert opened.far.recv(1) == b""


async def test_a_body_that_does_not_come_ends_the_connection_and_is_counted_no_more() -> None:
    held: list[int] = []

    def hold(size: int) -> bool:
        held.append(size)
        return True

    opened = _Opened(Limits(60, 0.01, hold))
    opened.far.send(b"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{")
    await asyncio.wait_for(opened.closed.wait(), 30)
    assert held[0] == 50
    assert sum(held) == 0


async def test_where_all_bodies_fill_their_room_tornado_says_so() -> None:
    opened = _Opened(Limits(60, 60, lambda size: size <= 0))
    request = b"POST /api/v1/jobs HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\n{"
    opened.far.send(request)
    assert await opened.given == request
