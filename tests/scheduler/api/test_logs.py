"""Logs over REST: parts, the end, following, attempts, and very long ones."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.rest.log_position import STAMP_LENGTH
from tests.testbed.answers import check_answer
from tests.testbed.scheduler import CLUSTER, RunningScheduler, StartScheduler, hello_job


def _path(job: str, stream: str = "all") -> str:
    return f"/user/alice/jobs/{job}/taskRoles/main/tasks/0/logs/{stream}"


@pytest.fixture
async def digits(alice: Client) -> str:
    """Have a job that wrote 0123456789."""
    if "digits" not in [job["name"] for job in await alice.jobs()]:
        await alice.submit(hello_job("digits", "printf 0123456789"))
    async for _ in alice.events("alice", "digits"):
        pass
    return _path("digits")


@pytest.mark.parametrize(
    ("query", "expected", "begin"),
    [
        ("", b"0123456789", 0),
        ("?offset=3", b"3456789", 3),
        ("?offset=3&limit=2", b"34", 3),
        ("?offset=-4", b"6789", 6),
        ("?offset=-4&limit=1", b"6", 6),
        ("?offset=-99", b"0123456789", 0),
        ("?offset=99", b"", 10),
        ("?limit=0", b"", 0),
        ("?attempt=0", b"0123456789", 0),
        ("?follow=1&offset=8", b"89", 8),
        ("?follow=1&limit=3", b"012", 0),
        ("?follow=true&offset=-2", b"89", 8),
    ],
)
async def test_any_part_of_a_log_can_be_read(
    http: httpx.AsyncClient, digits: str, query: str, expected: bytes, begin: int
) -> None:
    answer = await http.get(digits + query)
    assert answer.content == expected
    assert answer.headers["X-Log-Offset"] == str(begin)
    assert answer.headers["Content-Type"].startswith("text/plain")


async def test_a_log_is_read_from_a_time_on(alice: Client, http: httpx.AsyncClient) -> None:
    await alice.submit(hello_job("read-since", "echo first; sleep 0.3; echo second; sleep 0.3; echo third"))
    async for _ in alice.events("alice", "read-since"):
        pass
    path = _path("read-since")
    lines = (await http.get(f"{path}?timestamps=1")).text.splitlines()
    second = datetime.fromisoformat(lines[1].split(" ")[0])
    since = round(second.timestamp() * 1000)
    for query, expected, begin in (
        (f"since={since}", "second\nthird\n", 6),
        (f"since={since}&limit=3", "sec", 6),
        (f"since={since + 1}", "third\n", 13),
        (f"since={since}&follow=1", "second\nthird\n", 6),
        ("since=0", "first\nsecond\nthird\n", 0),
        (f"since={since + 3_600_000}", "", 19),
    ):
        answer = await http.get(f"{path}?{query}")
        assert (answer.text, answer.headers["X-Log-Offset"]) == (expected, str(begin)), query
    assert (await http.get(f"{path}?since=-1")).status_code == 400


async def test_a_log_that_there_is_not_is_refused(http: httpx.AsyncClient, digits: str) -> None:
    wrong = [digits.replace("tasks/0", "tasks/1"), digits.replace("/main/", "/other/"), f"{digits}?attempt=5"]
    for path in wrong:
        assert (await http.get(path)).status_code == 404, path
    assert (await http.get(digits.replace("/all", "/middle"))).json()["code"] == "NoApiError"


async def test_a_followed_log_comes_while_it_is_written(alice: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    command = (
        f"echo first; while [ ! -e {gate} ]; do sleep 0.05; done; echo second >&2; sleep 0.3; printf third"
    )
    await alice.submit(hello_job("written-slowly", command))
    received = b""
    async for part in alice.follow_log("alice", "written-slowly", "main", 0):
        received += part
        if received == b"first\n":
            gate.touch()
    assert received == b"first\nsecond\nthird"


async def test_a_log_can_be_followed_before_its_task_has_begun(alice: Client) -> None:
    holder = hello_job("holds-all-gpus", "sleep 600")
    waiter = hello_job("waits-for-gpus", "echo at last")
    for job in (holder, waiter):
        job["taskRoles"][0]["gpuNumber"] = 4
        job["gpuType"] = "P100"
        await alice.submit(job)
    follower = asyncio.create_task(_read_all(alice, "waits-for-gpus"))
    await asyncio.sleep(0.5)
    assert not follower.done()
    await alice.stop("alice", "holds-all-gpus")
    assert await follower == b"at last\n"


async def test_following_stays_with_its_attempt(alice: Client) -> None:
    await alice.submit(hello_job("two-attempts", "echo attempt; exit 1", retryCount=1))
    async for _ in alice.events("alice", "two-attempts"):
        pass
    ran = [item["attempt"] for item in await alice.attempts("alice", "two-attempts") if item["exitCode"] == 1]
    assert len(ran) == 2
    for attempt in ran:
        parts = [part async for part in alice.follow_log("alice", "two-attempts", "main", 0, attempt=attempt)]
        assert b"".join(parts) == b"attempt\n"


async def test_a_long_log_comes_whole_and_is_never_held(scheduler: RunningScheduler, alice: Client) -> None:
    million = "x" * 999
    await alice.submit(hello_job("long-log", f"yes {million} | head -n 100000"))  # 100 MB
    async for _ in alice.events("alice", "long-log"):
        pass
    before = _peak_kb(scheduler.process.pid)
    digest, length = hashlib.sha256(), 0
    async for part in alice.log_parts("alice", "long-log", "main", 0, "stdout"):
        digest.update(part)
        length += len(part)
    assert length == 100_000_000
    assert digest.digest() == hashlib.sha256((million + "\n").encode() * 100_000).digest()
    assert _peak_kb(scheduler.process.pid) - before < 30_000
    await alice.delete("alice", "long-log")


# times, and logs that are too long or too old


STAMP = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ")


@pytest.mark.parametrize("stream", ["stdout", "stderr", "all"])
async def test_each_line_can_be_had_with_its_time(
    http: httpx.AsyncClient, alice: Client, stream: str
) -> None:
    if "timed" not in [job["name"] for job in await alice.jobs()]:
        await alice.submit(
            hello_job("timed", "echo one; echo two; sleep 0.2; echo three >&2; sleep 0.2; printf four")
        )
    parts = [part async for part in alice.log_stream("alice", "timed", "main", 0, stream, follow=True)]
    plain = b"".join(part.data for part in parts).decode()
    for query in ("?timestamps=1", "?timestamps=1&follow=1"):
        lines = (await http.get(_path("timed", stream) + query)).text.splitlines()
        stamps = [STAMP.match(line) for line in lines]
        assert all(stamps)
        assert [line[STAMP_LENGTH:] for line in lines] == plain.splitlines()
        times = [stamp[0] for stamp in stamps if stamp]
        assert times == sorted(times)
    assert len(plain.splitlines()) == {"stdout": 3, "stderr": 1, "all": 4}[stream]
    cut = (await http.get(_path("timed", stream) + "?timestamps=1&offset=2&limit=3")).text
    assert STAMP.sub("", cut) == plain[2:5]
    assert STAMP.match(cut)


@pytest.fixture(scope="module")
def strict(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler that keeps one MB of a log."""
    return module_scheduler(cluster=f"{CLUSTER}\ndefaults: {{logs: {{maxMBPerTask: 1, keepDays: 3}}}}\n")


@pytest.fixture
async def strict_http(strict: RunningScheduler) -> AsyncIterator[httpx.AsyncClient]:
    """Talk to it, as alice."""
    async with httpx.AsyncClient(
        base_url=f"{strict.url}/api/v1",
        headers={"Authorization": "Bearer token-of-alice"},
        trust_env=False,
        timeout=30,
        event_hooks={"response": [check_answer]},
    ) as client:
        yield client


LINES = 30_000
WHOLE = "".join(f"{n:08} {'.' * 90}\n" for n in range(LINES)).encode()


@pytest.fixture
async def long_log(strict: RunningScheduler) -> AsyncIterator[Client]:
    """Have a job, `long`, that wrote 3 MB."""
    async with Client(strict.url, "token-of-alice") as alice:
        if not await alice.jobs():
            count = f"python3 -c \"for n in range({LINES}): print('%08d' % n, '.' * 90)\""
            await alice.submit(hello_job("long", count))
        async for _ in alice.events("alice", "long"):
            pass
        yield alice


@pytest.mark.parametrize("query", ["?", "?follow=1&", "?timestamps=1&", "?follow=1&timestamps=1&"])
async def test_a_log_that_is_too_long_says_in_one_line_what_was_left_out_of_it(
    strict_http: httpx.AsyncClient, long_log: Client, query: str
) -> None:
    del long_log
    answer = await strict_http.get(_path("long") + query)
    start, stop = map(int, answer.headers["X-Log-Removed"].split("-"))
    assert 100_000 < start < stop < len(WHOLE) - 400_000
    text = STAMP.sub("", answer.text)
    head, line, tail = text.partition(f"[{stop - start:,} bytes were left out here: a log longer than 1 MB")
    assert line
    assert head.encode().rstrip(b"\n") == WHOLE[:start].rstrip(b"\n")
    assert tail.partition("\n")[2].encode() == WHOLE[stop:]
    assert len(head) - start + len(line) + tail.index("\n") + 1 == int(answer.headers["X-Log-Notice"])


async def test_reading_at_a_removed_offset_says_so_and_goes_on_where_there_is_something(
    strict_http: httpx.AsyncClient, long_log: Client
) -> None:
    del long_log
    whole = await strict_http.get(_path("long"))
    start, stop = map(int, whole.headers["X-Log-Removed"].split("-"))
    path = _path("long")
    inside = await strict_http.get(f"{path}?offset={start + 1000}&limit=300")
    notice = int(inside.headers["X-Log-Notice"])
    assert inside.headers["X-Log-Offset"] == str(stop)
    assert inside.content[:notice].startswith(b"[")
    assert inside.content[notice:] == WHOLE[stop : stop + 300]
    for offset, limit in ((0, 500), (start - 300, 300), (stop, 400), (-500, 500), (start + 5, 0)):
        beside = await strict_http.get(f"{path}?offset={offset}&limit={limit}")
        begin = offset if offset >= 0 else len(WHOLE) + offset
        assert beside.content == WHOLE[begin : begin + limit]
        assert "X-Log-Removed" not in beside.headers
    across = await strict_http.get(f"{path}?offset={start - 10}&limit={stop - start + 20}")
    assert across.content[:10] == WHOLE[start - 10 : start]
    assert across.content[-10:] == WHOLE[stop : stop + 10]


@pytest.mark.parametrize("timestamps", [False, True])
async def test_a_reader_that_counts_knows_its_place_behind_what_was_left_out(
    long_log: Client, timestamps: bool
) -> None:
    parts = [
        part
        async for part in long_log.log_stream("alice", "long", "main", 0, follow=True, timestamps=timestamps)
    ]
    assert parts[-1].next_offset == len(WHOLE)
    again = long_log.log_stream("alice", "long", "main", 0, offset=parts[-2].next_offset)
    rest = b"".join([part.data async for part in again])
    assert rest == WHOLE[parts[-2].next_offset :]


async def test_a_log_that_was_removed_by_age_is_not_an_empty_one(
    strict: RunningScheduler, strict_http: httpx.AsyncClient, long_log: Client
) -> None:
    await long_log.submit(hello_job("old", "echo words; exit 1", retryCount=1))
    async for _ in long_log.events("alice", "old"):
        pass
    ended = strict.data_dir / "ended"
    assert (await strict_http.get(_path("old"))).content == b"words\n"
    strict.terminate()
    four_days_ago = time.time() - 4 * 24 * 3600
    for folder in ended.iterdir():
        if (folder / "log" / "stdout").read_bytes() == b"words\n":
            os.utime(folder, (four_days_ago, four_days_ago))
    strict.start()
    async with asyncio.timeout(30):
        while len(list(ended.iterdir())) > 1:  # noqa: ASYNC110 (another process does it)
            await asyncio.sleep(0.02)
    for query in ("", "?follow=1", "?attempt=0", "?attempt=1&timestamps=1"):
        gone = await strict_http.get(_path("old") + query)
        assert (gone.status_code, gone.json()["code"]) == (410, "LogRemovedError")
        assert "3 days after the end" in gone.json()["message"]
    assert (await strict_http.get(_path("long"))).status_code == 200


async def test_a_task_that_never_ran_has_an_empty_log_and_not_a_removed_one(
    strict_http: httpx.AsyncClient, long_log: Client
) -> None:
    never = hello_job("never")
    never["taskRoles"][0]["gpuNumber"] = 4
    never["gpuType"] = "K80"
    await long_log.submit(never)
    await long_log.stop("alice", "never")
    answer = await strict_http.get(_path("never"))
    assert (answer.status_code, answer.content) == (200, b"")


async def _read_all(client: Client, job: str) -> bytes:
    return b"".join([part async for part in client.follow_log("alice", job, "main", 0)])


def _peak_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
