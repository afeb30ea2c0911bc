"""A job that is followed from the queue to its end, before a real scheduler."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator

import pytest

from pai_labextension.kernels.job_spec import KernelEnd
from pai_labextension.kernels.kernel_job import JobFollower
from pai_labextension.tasks.connections import TaskConnections
from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.i18n import Message
from tests.labextension.kernels.conftest import PATIENCE, stop_all
from tests.testbed.warm import WarmScheduler


class Told:
    """What is told of a job that does not run."""

    def __init__(self) -> None:
        self.reasons: list[str] = []
        self.waits: list[tuple[str, str, int | None]] = []
        self.waited = asyncio.Event()

    def reason(self, reason: Message | str) -> None:
        self.reasons.append(str(reason))
        self.waited.set()

    def waiting(self, sub_state: str, reason: Message | str, place: int | None) -> None:
        self.waits.append((sub_state, str(reason), place))
        self.waited.set()

    async def until_running(self, follower: JobFollower) -> KernelEnd | None:
        async with asyncio.timeout(PATIENCE):
            return await follower.until_running(self.reason, self.waiting)


@pytest.fixture
async def connections(gpu_lab: WarmScheduler, alice: Client) -> AsyncIterator[TaskConnections]:
    connections = TaskConnections(gpu_lab.url, "token-of-alice")
    yield connections
    await connections.close()
    await stop_all(alice, "alice")


@pytest.fixture
async def job(alice: Client) -> str:
    """Submit a job that needs the P100."""
    role = {"name": "kernel", "command": "sleep 3600", "gpuNumber": 1, "memoryMB": 100}
    name = f"followed-{uuid.uuid4().hex[:8]}"
    return await alice.submit({"jobName": name, "image": "any", "gpuType": "P100", "taskRoles": [role]})


@pytest.fixture
async def follower(connections: TaskConnections, job: str) -> AsyncIterator[JobFollower]:
    follower = JobFollower(connections, "alice", job)
    yield follower
    await follower.close()


async def test_it_tells_place_and_reason_until_the_job_runs(holder: Client, follower: JobFollower) -> None:
    told = Told()
    running = asyncio.create_task(told.until_running(follower))
    await told.waited.wait()
    sub_state, reason, place = told.waits[0]
    assert place == 1
    assert "asks for 1 × P100, none is free" in reason
    assert sub_state != "STARTING"
    await stop_all(holder, "bob")
    assert await running is None
    assert (await follower.status())["state"] == "RUNNING"


@pytest.mark.usefixtures("holder")
async def test_a_sentence_comes_in_the_language_of_who_reads_now(
    connections: TaskConnections, follower: JobFollower
) -> None:
    assert "is free" in (await follower.status())["waitingReason"]
    connections.locale = "zh-CN"
    assert "排" in (await follower.status())["waitingReason"]


async def test_a_job_that_was_deleted_has_ended(follower: JobFollower, alice: Client, job: str) -> None:
    await alice.delete("alice", job)
    ending = None
    async with asyncio.timeout(PATIENCE):
        while ending is None:  # its task is ended first
            ending = await Told().until_running(follower)
    assert str(ending.message) in (
        "The job of this kernel was deleted.",
        "The job of this kernel was stopped.",
    )


async def test_it_stops_the_job_once_and_one_that_is_gone_is_no_error(
    connections: TaskConnections, follower: JobFollower, alice: Client, job: str
) -> None:
    await follower.stop()
    async with asyncio.timeout(PATIENCE):
        async for _ in alice.events("alice", job):
            pass
    assert (await follower.status())["state"] == "STOPPED"
    await follower.stop(after=60)
    await JobFollower(connections, "alice", "no-such-job").stop()


async def test_a_scheduler_that_is_away_is_said_and_waited_for() -> None:
    follower = JobFollower(TaskConnections("http://127.0.0.1:9", "token"), "alice", "kernel_1")
    told = Told()
    following = asyncio.create_task(told.until_running(follower))
    await told.waited.wait()
    assert told.reasons == ["The scheduler does not answer; the kernel goes on when it is back."]
    assert not following.done()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await follower.close()


async def test_a_token_that_is_no_longer_good_is_said(gpu_lab: WarmScheduler) -> None:
    follower = JobFollower(TaskConnections(gpu_lab.url, "nobodys"), "alice", "kernel_1")
    told = Told()
    following = asyncio.create_task(told.until_running(follower))
    await told.waited.wait()
    with pytest.raises(ApiError) as refused:
        await follower.status()
    assert told.reasons == [str(refused.value.message)]
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await follower.close()
