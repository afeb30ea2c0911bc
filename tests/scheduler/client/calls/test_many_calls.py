"""Many calls at once, more than a user may follow or have: they wait, and none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from pai_scheduler.client import ApiError, Client, remote
from pai_scheduler.client.calls import session
from pai_scheduler.client.calls.output import JobProgress
from pai_scheduler.client.calls.sweep import Sweep
from tests.testbed.scheduler import CLUSTER, RunningScheduler, StartScheduler, hello_job

MANY = 7


def limited(start: StartScheduler, **defaults: int) -> RunningScheduler:
    """Start a scheduler with other limits of a user."""
    text = ", ".join(f"{name}: {value}" for name, value in defaults.items())
    return start(cluster=f"{CLUSTER}\ndefaults: {{{text}}}\n")


def remotely(scheduler: RunningScheduler, function: Callable[..., Any]) -> Any:
    return remote(url=scheduler.url, token="token-of-alice", locale="en")(function)


def double(number: int) -> int:
    print("doubling", number)
    return 2 * number


async def test_all_calls_of_a_program_follow_one_stream(
    own_scheduler: StartScheduler, tmp_path: Path
) -> None:
    scheduler = own_scheduler()
    go_on = tmp_path / "go-on"

    def wait(path: str) -> None:
        import time
        from pathlib import Path

        Path(path).parent.joinpath(f"begun-{time.time_ns()}").touch()
        while not Path(path).exists():
            time.sleep(0.05)

    futures = [remotely(scheduler, wait).submit(str(go_on)) for _ in range(5)]
    async with asyncio.timeout(60):
        while len(list(tmp_path.glob("begun-*"))) < 5:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.1)
    open_streams = 'pai_open_streams{handler="EventsHandler"}'
    headers = {"Authorization": "Bearer token-of-root"}
    async with httpx.AsyncClient(trust_env=False, headers=headers) as client, asyncio.timeout(60):
        while open_streams not in (metrics := (await client.get(f"{scheduler.url}/metrics")).text):  # noqa: ASYNC110
            await asyncio.sleep(0.1)
    go_on.touch()
    assert f"{open_streams} 1.0" in metrics.splitlines()
    for future in futures:
        await asyncio.to_thread(future.result, 60)


async def test_calls_whose_user_may_follow_nothing_more_come_to_their_end(
    own_scheduler: StartScheduler, capfd: pytest.CaptureFixture[str]
) -> None:
    scheduler = limited(own_scheduler, streamsPerUser=1)
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("followed", "sleep 3600"))
        events = alice.events("alice", "followed")
        await anext(events)
        far = remotely(scheduler, double)
        futures = [far.submit(number) for number in range(5)]
        assert [await asyncio.to_thread(future.result, 60) for future in futures] == [0, 2, 4, 6, 8]
        assert await asyncio.to_thread(far, 21) == 42
        assert capfd.readouterr().out == "doubling 21\n"
        await alice.stop("alice", "followed")
        await events.aclose()  # type: ignore[attr-defined]


def test_more_logs_than_may_be_followed_are_read_all_the_same(
    own_scheduler: StartScheduler, capfd: pytest.CaptureFixture[str]
) -> None:
    scheduler = limited(own_scheduler, streamsPerUser=2)
    far = remotely(scheduler, double)
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(far, range(8))) == [2 * number for number in range(8)]
    assert sorted(capfd.readouterr().out.splitlines()) == [f"doubling {number}" for number in range(8)]


def test_more_calls_than_a_user_may_have_jobs_wait_for_each_other(own_scheduler: StartScheduler) -> None:
    scheduler = limited(own_scheduler, jobsPerUser=3)
    futures = [remotely(scheduler, double).submit(number) for number in range(MANY)]
    assert [future.result(120) for future in futures] == [2 * number for number in range(MANY)]


async def test_a_call_waits_and_says_so_where_the_user_has_as_many_jobs_as_one_may_have(
    own_scheduler: StartScheduler, capfd: pytest.CaptureFixture[str]
) -> None:
    scheduler = limited(own_scheduler, jobsPerUser=2)
    async with Client(scheduler.url, "token-of-alice") as alice, asyncio.timeout(60):
        for name in ("first", "second"):
            await alice.submit(hello_job(name, "sleep 3600"))
        call = asyncio.create_task(asyncio.to_thread(remotely(scheduler, double), 21))
        shown = ""
        while "which is all that one user may have" not in shown:
            await asyncio.sleep(0.1)
            shown += capfd.readouterr().err
        assert not call.done()
        await alice.stop("alice", "first")
        assert await call == 42
        await alice.stop("alice", "second")


def test_who_interrupts_a_sweep_that_is_not_submitted_yet_reads_that_it_will_be(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_progress: JobProgress, _pause: float = 0.0) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(JobProgress, "draw", interrupt)
    with pytest.raises(KeyboardInterrupt):
        Sweep(1, "en").results()
    assert capsys.readouterr().err.startswith("The job is not submitted yet")


async def test_a_call_whose_job_was_deleted_ends_and_says_so(
    own_scheduler: StartScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "LOOK", 0.5)
    scheduler = own_scheduler()

    def sleep() -> None:
        import time

        time.sleep(3600)

    future = remotely(scheduler, sleep).submit()
    async with Client(scheduler.url, "token-of-alice") as alice, asyncio.timeout(60):
        while not (jobs := await alice.jobs(states=["RUNNING"])):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.1)
        await alice.delete("alice", jobs[0]["name"])
    with pytest.raises(ApiError) as caught:
        await asyncio.to_thread(future.result, 60)
    assert caught.value.code == "NoJobError"


async def test_an_administrators_calls_follow_their_own_jobs_only(own_scheduler: StartScheduler) -> None:
    scheduler = own_scheduler()
    async with Client(scheduler.url, "token-of-root") as root, Client(scheduler.url, "token-of-bob") as bob:
        await bob.submit(hello_job("of-bob"))
        assert [event async for event in bob.events("bob", "of-bob")]
        assert await root.list_user_events("root") == []
        assert {event["job"] for event in await root.list_user_events("bob")} == {"of-bob"}
        far = remote(url=scheduler.url, token="token-of-root", locale="en")(double)
        assert await far.aio(1) == 2
        assert len({event["job"] for event in await root.list_user_events("root")}) == 1
