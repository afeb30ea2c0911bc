"""A job says that it has ended when everything of it has, on each engine; until then that it is ending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import WarmScheduler

_FINAL = ("SUCCEEDED", "FAILED", "STOPPED")
#: takes a while to end when it is told to, and writes then what must not be lost
_SAVES = "trap 'sleep 1; echo saved; exit 0' TERM; echo ready; while :; do sleep 0.1; done"

#: hears that it is to end, and stays
_STAYS = "trap 'echo told' TERM; echo ready; while :; do sleep 0.1; done"


@pytest.fixture(params=["process", "docker"])
async def running(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[RunningScheduler]:
    """Have a scheduler with each engine."""
    if request.param == "docker":
        host = request.getfixturevalue("docker_host")
        await asyncio.to_thread(provide, tiny_image, host)
        monkeypatch.setenv("DOCKER_HOST", host)
    scheduler = await asyncio.to_thread(WarmScheduler, tmp_path, "--engine", request.param)
    yield scheduler
    await asyncio.to_thread(scheduler.close)


@pytest.fixture
async def alice(running: RunningScheduler) -> AsyncIterator[Client]:
    """Be a user of it."""
    async with Client(running.url, "token-of-alice") as client:
        yield client


async def ready(alice: Client, index: int) -> None:
    """Return when a task would save what it has; there is no log before it has started."""
    output = b""
    while b"ready" not in output:
        async for part in alice.follow_log("alice", "saves", "main", index):
            output += part
            if b"ready" in output:
                return
        await asyncio.sleep(0.05)


async def test_a_state_is_final_when_the_last_task_its_log_and_the_job_events_are(alice: Client) -> None:
    role = {"name": "main", "taskNumber": 2, "command": _SAVES, "memoryMB": 100}
    await alice.submit({"jobName": "saves", "image": TINY, "taskRoles": [role]})
    for index in (0, 1):
        await ready(alice, index)
    # (what it prints may be here some milliseconds before it is told that it runs)
    async for event in alice.events("alice", "saves"):
        if event["type"] == "running":
            break
    await alice.stop("alice", "saves")
    while True:
        detail = await alice.job("alice", "saves")
        status = detail["jobStatus"]
        if status["state"] in _FINAL:
            break
        assert (status["state"], status["subState"], status["completedTime"]) == ("RUNNING", "ENDING", None)
        assert (status["appExitCode"], status["appExitDiagnostics"]) == (-7351, "Stopped by alice.")
        await asyncio.sleep(0.05)
    assert (status["state"], status["subState"], status["appExitCode"]) == ("STOPPED", "ENDED", -7351)
    tasks = detail["taskRoles"]["main"]["taskStatuses"]
    assert all(task["taskState"] in _FINAL for task in tasks)
    for index in (0, 1):
        assert (await alice.log("alice", "saves", "main", index)).endswith(b"saved\n")
    events = await alice.list_events("alice", "saves")
    assert [event["type"] for event in events].count("ended") == 1
    assert events[-1]["type"] == "ended"
    (attempt,) = await alice.attempts("alice", "saves")
    assert (attempt["state"], attempt["exitCode"]) == ("STOPPED", -7351)
    assert status["completedTime"] == attempt["completedTime"] == events[-1]["time"]


async def test_the_time_to_end_is_over_when_it_was_said_though_the_scheduler_was_killed(
    running: RunningScheduler, alice: Client
) -> None:
    # (a shell says "Terminated" of what it waits for, and goes on)
    role = {"name": "main", "memoryMB": 100, "command": _STAYS}
    extras = {"terminationGraceSeconds": 8}
    await alice.submit({"jobName": "saves", "image": TINY, "taskRoles": [role], "extras": extras})
    await ready(alice, 0)
    await alice.stop("alice", "saves")
    until = (await alice.job("alice", "saves"))["jobStatus"]["endingUntil"]
    assert until is not None
    async for part in alice.follow_log("alice", "saves", "main", 0):
        if b"told" in part:
            break
    await asyncio.to_thread(running.kill)
    await asyncio.to_thread(running.start)
    status = (await alice.job("alice", "saves"))["jobStatus"]
    assert (status["subState"], status["endingUntil"]) == ("ENDING", until)
    async for _ in alice.events("alice", "saves"):
        pass
    status = (await alice.job("alice", "saves"))["jobStatus"]
    assert (status["state"], status["appExitCode"], status["endingUntil"]) == ("STOPPED", -7351, None)
    assert status["completedTime"] is not None
    # (the timers of a process and of its supervisor differ by some ms)
    assert status["completedTime"] > until - 500
    assert (await alice.log("alice", "saves", "main", 0)).count(b"told") == 1


async def test_a_long_time_to_end_is_cut_short(alice: Client) -> None:
    role = {"name": "main", "memoryMB": 100, "command": _STAYS}
    extras = {"terminationGraceSeconds": 600}
    await alice.submit({"jobName": "saves", "image": TINY, "taskRoles": [role], "extras": extras})
    await ready(alice, 0)
    await alice.stop("alice", "saves")
    until = (await alice.job("alice", "saves"))["jobStatus"]["endingUntil"]
    await alice.stop("alice", "saves", force=True)
    async for _ in alice.events("alice", "saves"):
        pass
    status = (await alice.job("alice", "saves"))["jobStatus"]
    assert status["state"] == "STOPPED"
    assert until is not None
    assert status["completedTime"] is not None
    assert status["completedTime"] < until
