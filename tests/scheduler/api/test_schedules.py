"""Schedules over REST, on a real scheduler; it fires by the real clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import pytest

from pai_scheduler.client.rest import ApiError, Client
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job


async def test_a_schedule_is_made_shown_changed_run_and_deleted(alice: Client, root: Client) -> None:
    made = await alice.set_schedule(
        "alice", "rest", hello_job("rest"), cron="0 2 1 1 *", zone="Asia/Shanghai", overlap="allow"
    )
    assert (made["username"], made["overlap"], made["lastRun"]) == ("alice", "allow", None)
    assert made["nextTime"] is not None
    assert made in await alice.schedules("alice")
    assert (await root.schedule("alice", "rest"))["job"] == hello_job("rest")
    paused = await alice.pause_schedule("alice", "rest")
    assert (paused["paused"], paused["nextTime"]) == (True, None)
    job = await alice.run_schedule("alice", "rest")
    async for _ in alice.events("alice", job):
        pass
    assert (await alice.job("alice", job))["jobStatus"]["state"] == "SUCCEEDED"
    last = (await alice.pause_schedule("alice", "rest", paused=False))["lastRun"]
    assert last is not None
    assert (last["job"], last["outcome"], last["message"]) == (job, "submitted", "")
    await alice.remove_schedule("alice", "rest")
    with pytest.raises(ApiError) as refusal:
        await alice.schedule("alice", "rest")
    assert (refusal.value.status, refusal.value.code) == (404, "NoScheduleError")


async def test_what_is_due_runs_by_itself_after_a_kill(own_scheduler: StartScheduler) -> None:
    running: RunningScheduler = own_scheduler()
    async with Client(running.url, "token-of-alice") as alice:
        await alice.set_schedule("alice", "due", hello_job("due"), cron="* * * * *", zone="UTC")
        running.kill()
        running.start()
        while (last := (await alice.schedule("alice", "due"))["lastRun"]) is None:  # noqa: ASYNC110
            await asyncio.sleep(0.5)
        await alice.remove_schedule("alice", "due")
        assert last["outcome"] == "submitted"
        jobs = [job["name"] for job in await alice.jobs("alice") if job["name"].startswith("due-")]
        assert last["job"] in jobs
        # one for each minute at most
        assert len({name[: len("due-yyyymmdd-hhmm")] for name in jobs}) == len(jobs)


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"timeZone": "UTC", "job": {}}, "$.cron"),
        ({"cron": "0 2 * * *", "job": {}}, "$.timeZone"),
        ({"cron": "0 2 * * *", "timeZone": "UTC"}, "$.job"),
        ({"cron": "0 2 * * *", "timeZone": "UTC", "job": []}, "$.job"),
        ({"cron": "0 2 * * *", "timeZone": "UTC", "job": {}, "overlap": "queue"}, "$.overlap"),
        ({"cron": "0 2 * * *", "timeZone": "UTC", "job": {}, "overlap": []}, "$.overlap"),
        ({"cron": "0 2 * * *", "timeZone": "UTC", "job": {}, "paused": 1}, "$.paused"),
        ({"cron": "0 2 * * *", "timeZone": "Mars", "job": {}}, "$.timeZone"),
        ({"cron": "0 2 * * *", "timeZone": "UTC", "job": {}}, "$.job.image"),
    ],
)
async def test_a_wrong_schedule_is_refused_with_its_place(
    http: httpx.AsyncClient, body: dict[str, Any], place: str
) -> None:
    answer = await http.put("/user/alice/schedules/wrong", json=body)
    assert answer.status_code == 400
    assert place in [error["path"] for error in answer.json()["errors"]]


async def test_the_next_times_of_an_expression_are_told_before_there_is_a_schedule(alice: Client) -> None:
    first, *others = await alice.schedule_times("30 2 * * *", "UTC")
    assert first > time.time() * 1000
    assert first % 86_400_000 == 150 * 60_000
    assert others == [first + 86_400_000, first + 2 * 86_400_000]


@pytest.mark.parametrize(
    ("cron", "zone", "said"),
    [("61 * * * *", "UTC", "minute must be 0 to 59"), ("0 2 * * *", "Mars", "no time zone Mars")],
)
async def test_what_is_no_time_is_said(alice: Client, cron: str, zone: str, said: str) -> None:
    with pytest.raises(ApiError, match=said) as refusal:
        await alice.schedule_times(cron, zone)
    assert refusal.value.status == 400


async def test_another_users_schedules_are_not_there(alice: Client, bob: Client) -> None:
    await alice.set_schedule("alice", "mine", hello_job("mine"), cron="0 2 1 1 *", zone="UTC")
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: bob.schedule("alice", "mine"),
        lambda: bob.pause_schedule("alice", "mine"),
        lambda: bob.run_schedule("alice", "mine"),
        lambda: bob.remove_schedule("alice", "mine"),
    ]
    for call in calls:
        with pytest.raises(ApiError) as refusal:
            await call()
        assert (refusal.value.status, refusal.value.code) == (404, "NoScheduleError")
    with pytest.raises(ApiError) as refusal:
        await bob.schedules("alice")
    assert refusal.value.status == 403
    await alice.remove_schedule("alice", "mine")
