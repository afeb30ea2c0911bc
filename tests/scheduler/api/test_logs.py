"""Logs over REST: parts, the end, following, attempts, and very long ones."""

from __future__ import annotations

import asyncio
import hashlib
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client import Client
from tests.testbed.scheduler import RunningScheduler, hello_job


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
        job["taskRoles"][0]["gpuNumber"] = 4  # type: ignore[index]
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


async def _read_all(client: Client, job: str) -> bytes:
    return b"".join([part async for part in client.follow_log("alice", job, "main", 0)])


def _peak_kb(pid: int) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
