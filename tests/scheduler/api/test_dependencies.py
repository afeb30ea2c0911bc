"""One job after another over REST, on a real scheduler that is killed meanwhile."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.rest.models import JobLink, JobStatus
from tests.scheduler.conftest import checked
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job


def waits(name: str, *after: Any, command: str = "true", **fields: Any) -> dict[str, Any]:
    return hello_job(name, command, extras={"after": list(after)}, **fields)


async def status_of(client: Client, name: str) -> JobStatus:
    return (await client.job("alice", name))["jobStatus"]


async def end_of(client: Client, name: str) -> JobStatus:
    async for event in client.events("alice", name):
        if event["type"] == "ended":
            break
    return await status_of(client, name)


async def until_told(client: Client, name: str, kind: str) -> None:
    async for event in client.events("alice", name):
        if event["type"] == kind:
            return


def link(job: str, state: str | None, on: str = "succeeded", holds: bool | None = None) -> JobLink:
    return {"job": job, "state": state, "on": on, "holds": holds}  # type: ignore[typeddict-item]


async def test_a_job_waits_runs_after_the_other_and_is_shown_with_links_both_ways(alice: Client) -> None:
    await alice.submit(hello_job("after-prepare", "exec sleep 1000"))
    await alice.submit(waits("after-train", {"job": "after-prepare", "on": "ended"}))
    await alice.submit(waits("after-report", "after-train", {"job": "after-prepare", "on": "failed"}))
    train = await status_of(alice, "after-train")
    assert (train["state"], train["subState"]) == ("WAITING", "DEPENDENCY_WAIT")
    assert train["waitingReason"] == "Waiting for job after-prepare to end."
    assert (train["queuePlace"], train["startsWithin"]) == (None, None)
    queued = [entry["name"] for queue in (await alice.queue()).values() for entry in queue]
    assert "after-train" not in queued
    with pytest.raises(ApiError, match="not waiting for resources"):
        await alice.reorder("alice", "after-train", place=1)
    await until_told(alice, "after-prepare", "running")
    prepare = await status_of(alice, "after-prepare")
    assert prepare["dependents"] == [
        link("after-train", "WAITING", "ended"),
        link("after-report", "WAITING", "failed"),
    ]
    assert (prepare["dependencies"], prepare["dependentCount"]) == ([], 2)
    await alice.stop("alice", "after-prepare")
    train = await end_of(alice, "after-train")
    assert train["state"] == "SUCCEEDED"
    assert train["dependencies"] == [link("after-prepare", "STOPPED", "ended", True)]
    report = await end_of(alice, "after-report")
    assert (report["state"], report["appExitCode"], report["appExitType"]) == (
        "STOPPED",
        -7360,
        "USER_FAILURE",
    )
    assert report["appExitSpec"] is not None
    assert report["appExitSpec"]["phrase"] == "APP_DEPENDENCY_NEVER_SATISFIED"
    assert "after-prepare" in report["appExitDiagnostics"]
    assert report["executionType"] == "START"
    await alice.delete("alice", "after-prepare")
    assert (await status_of(alice, "after-train"))["dependencies"] == [
        link("after-prepare", None, "ended", True)
    ]


async def test_jobs_that_one_waits_for_must_be_its_owners_and_exist(
    alice: Client, bob: Client, root: Client
) -> None:
    await bob.submit(hello_job("after-bobs"))
    await alice.submit(hello_job("after-mine"))
    asks = waits("after-none", "after-mine", "after-bobs", {"job": "after-none"})
    with pytest.raises(ApiError) as refusal:
        await alice.submit(asks)
    paths = ["$.extras.after[1]", "$.extras.after[2].job"]
    assert (refusal.value.status, [error["path"] for error in refusal.value.errors]) == (400, paths)
    assert "after-bobs" in refusal.value.errors[0]["message"]
    assert [error["path"] for error in (await alice.validate(asks))["errors"]] == paths
    # an administrator who submits for somebody names that user's jobs
    await root.submit(waits("after-for-bob", "after-bobs"), user="bob")


@pytest.mark.parametrize(
    ("after", "path"),
    [
        ("prepare", "$.extras.after"),
        ([1], "$.extras.after[0]"),
        ([""], "$.extras.after[0]"),
        ([{"on": "failed"}], "$.extras.after[0].job"),
        ([{"job": "x", "on": "never"}], "$.extras.after[0].on"),
        ([{"job": "x", "when": "ended"}], "$.extras.after[0].when"),
        (["x"] * 1001, "$.extras.after"),
    ],
)
async def test_what_is_no_list_of_jobs_is_refused_at_its_path(alice: Client, after: Any, path: str) -> None:
    with pytest.raises(ApiError) as refusal:
        await alice.submit(hello_job("after-wrong", extras={"after": after}))
    assert path in [error["path"] for error in refusal.value.errors]


async def test_validate_says_that_a_job_would_wait_for_another_or_never_start(alice: Client) -> None:
    await alice.submit(hello_job("after-long", "exec sleep 1000"))
    answer = await alice.validate(waits("x", "after-long"))
    assert (answer["errors"], answer["fits"], answer["startsWithin"]) == ([], "later", None)
    assert answer["reason"] == "Waiting for job after-long to succeed."
    await alice.stop("alice", "after-long")
    await end_of(alice, "after-long")
    answer = await alice.validate(waits("x", "after-long"))
    assert (answer["errors"], answer["fits"]) == ([], "never")
    assert answer["reason"] == "Job after-long is STOPPED, and this one waited for it to succeed."
    assert (await alice.validate(waits("x", {"job": "after-long", "on": "ended"})))["fits"] == "now"


async def test_a_job_that_is_waited_for_may_have_ended_long_ago(alice: Client) -> None:
    await alice.submit(hello_job("after-done"))
    await end_of(alice, "after-done")
    await alice.submit(waits("after-good", "after-done"))
    good = await end_of(alice, "after-good")
    assert (good["state"], good["dependencies"]) == (
        "SUCCEEDED",
        [link("after-done", "SUCCEEDED", holds=True)],
    )
    await alice.submit(waits("after-never", {"job": "after-done", "on": "failed"}))
    never = await status_of(alice, "after-never")
    assert (never["state"], never["appExitCode"]) == ("STOPPED", -7360)


async def test_a_later_job_of_the_same_name_counts_for_nothing(alice: Client) -> None:
    await alice.submit(hello_job("after-name", "exec sleep 1000"))
    await alice.submit(waits("after-bound", "after-name"))
    await alice.delete("alice", "after-name")
    await alice.submit(hello_job("after-name"))
    assert (await end_of(alice, "after-name"))["state"] == "SUCCEEDED"
    bound = await end_of(alice, "after-bound")
    assert bound["appExitCode"] == -7360
    assert bound["dependencies"] == [link("after-name", None, holds=False)]
    assert (await status_of(alice, "after-name"))["dependents"] == []


async def test_a_schedules_job_waits_for_none(alice: Client) -> None:
    await alice.submit(hello_job("after-scheduled"))
    job = waits("nightly", "after-scheduled")
    with pytest.raises(ApiError) as refusal:
        await alice.set_schedule("alice", "after", job, cron="0 2 * * *", zone="UTC")
    assert (refusal.value.status, refusal.value.errors[0]["path"]) == (400, "$.job.extras.after")


async def test_a_job_goes_on_whose_dependency_ended_while_the_scheduler_was_killed(
    own_scheduler: StartScheduler,
) -> None:
    running: RunningScheduler = own_scheduler()
    gate = running.folder / "gate"
    async with checked(Client(running.url, "token-of-alice")) as alice:
        until_open = f"while ! [ -e {gate} ]; do sleep 0.1; done; touch {gate}.seen; exit $CODE"
        for name, code in (("good", 0), ("bad", 4)):
            await alice.submit(hello_job(name, until_open, jobEnvs={"CODE": code}))
            await until_told(alice, name, "running")
        await alice.submit(waits("after-good", "good"))
        await alice.submit(waits("after-bad", "bad"))
        await alice.submit(waits("after-both", "good", {"job": "bad", "on": "failed"}))
        await alice.submit(waits("chain", "after-bad", retryCount=-2))
        running.kill()
        gate.touch()
        while not (running.folder / "gate.seen").exists():  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        running.start()
        for name in ("after-good", "after-both"):
            assert (await end_of(alice, name))["state"] == "SUCCEEDED"
        for name, other in (("after-bad", "bad"), ("chain", "after-bad")):
            ended = await end_of(alice, name)
            assert (ended["state"], ended["appExitCode"], ended["retries"]) == ("STOPPED", -7360, 0)
            assert other in ended["appExitDiagnostics"]
        running.kill()
        running.start()
        assert (await status_of(alice, "after-good"))["dependencies"] == [
            link("good", "SUCCEEDED", holds=True)
        ]
