"""The disk of database, logs and task folders is full while jobs run, on both engines; then it has room.

What was acknowledged survives and comes out as it must, nothing runs twice, what could not be written down is
refused, and a kill -9 in the middle of it changes nothing about that.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import ApiError, Client
from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image
from tests.testbed.scheduler import CLUSTER
from tests.testbed.warm import WarmScheduler

from .outside import Containers, Processes

_MOST_SUBMISSIONS = 500


class Ballast:
    """Fills a disk to the last byte, and makes room again."""

    def __init__(self, disk: Path) -> None:
        self._file = disk / "ballast"

    def fill(self) -> None:
        """Take all the room there is; again where somebody has given some back."""
        with contextlib.suppress(OSError), self._file.open("ab", buffering=0) as file:
            for size in (65536, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(b"x" * size):
                        pass

    def drop(self) -> None:
        """Return it back."""
        self._file.unlink()


@pytest.fixture(params=["process", "docker"])
async def outside(
    request: pytest.FixtureRequest, small_disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Processes | Containers]:
    """Look at an engine past the scheduler."""
    data_dir = small_disk / "data"
    looking: Processes | Containers
    if request.param == "docker":
        host = request.getfixturevalue("docker_host")
        await asyncio.to_thread(provide, tiny_image, host)
        monkeypatch.setenv("DOCKER_HOST", host)
        looking = Containers(data_dir, host)
    else:
        looking = Processes(data_dir, tmp_path / "ran")
        looking.ran_file.touch()
    async with looking.watch():
        yield looking


@pytest.fixture
def scheduler(outside: Processes | Containers, small_disk: Path) -> Iterator[WarmScheduler]:
    """Run a scheduler with everything it keeps on the small disk."""
    with running_on(small_disk, outside) as running:
        yield running


@pytest.fixture
def careless(outside: Processes | Containers, small_disk: Path) -> Iterator[WarmScheduler]:
    """Run one that keeps nothing free: what it cannot write down is refused by the database."""
    with running_on(small_disk, outside, cluster=CLUSTER + "defaults: {minFreeMB: 0}\n") as running:
        yield running


@contextlib.contextmanager
def running_on(
    disk: Path, outside: Processes | Containers, cluster: str = CLUSTER
) -> Iterator[WarmScheduler]:
    """Run a scheduler with everything it keeps on a disk that may be full."""
    engine = "docker" if isinstance(outside, Containers) else "process"
    running = WarmScheduler(disk, "--engine", engine, cluster=cluster)
    yield running
    (disk / "ballast").unlink(missing_ok=True)
    running.close()


def job(outside: Processes | Containers, name: str, command: str, **role: object) -> dict[str, object]:
    say = (
        f"echo $PAI_JOB_NAME $PAI_CONTAINER_ID >> {outside.ran_file}; "
        if isinstance(outside, Processes)
        else ""
    )
    return {"jobName": name, "image": TINY, "taskRoles": [{"name": "main", "command": say + command, **role}]}


async def outcome(alice: Client, name: str) -> tuple[str, int | None]:
    """Wait for a job's end; return how it came out."""
    async for _ in alice.events("alice", name):
        pass
    status = (await alice.job("alice", name))["jobStatus"]
    return status["state"], status["appExitCode"]


async def reached(alice: Client, name: str, step: str) -> None:
    """Wait until a job has come so far."""
    async for event in alice.events("alice", name):
        if event["type"] == step:
            return


async def submit_until_refused(alice: Client, outside: Processes | Containers, prefix: str) -> list[str]:
    """Submit jobs until one is refused for the full disk; give those that were acknowledged."""
    acknowledged: list[str] = []
    for number in range(_MOST_SUBMISSIONS):
        try:
            # (it waits for ever, or what it writes down would take the room of the next)
            await alice.submit(
                job(outside, f"{prefix}-{number}", "exit 0", gpuNumber=1) | {"gpuType": "none"}
            )
        except ApiError as error:
            if (error.status, error.code) != (507, "InsufficientStorageError"):
                raise
            return acknowledged
        acknowledged.append(f"{prefix}-{number}")
    pytest.fail("the disk is never full")


@pytest.mark.parametrize("killed", [False, True], ids=["lives-on", "killed"])
async def test_a_full_disk_loses_nothing_that_was_acknowledged(
    careless: WarmScheduler, outside: Processes | Containers, small_disk: Path, killed: bool
) -> None:
    scheduler, ballast = careless, Ballast(small_disk)
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(job(outside, "fails", "echo begun; sleep 2; echo over; exit 7"))
        await alice.submit(job(outside, "talks", "i=0; while [ $i -lt 20000 ]; do echo $i; i=$((i+1)); done"))
        # (one that cannot start on a full disk is tried again, and has another attempt)
        for name in ("fails", "talks"):
            await reached(alice, name, "running")
        await asyncio.to_thread(ballast.fill)
        waiting = await submit_until_refused(alice, outside, "full")
        # the task ends, and more is refused, while nothing can be written
        await asyncio.sleep(2.5)
        await asyncio.to_thread(ballast.fill)
        waiting += await submit_until_refused(alice, outside, "fuller")
        if killed:
            scheduler.kill()
        ballast.drop()
        if killed:
            await asyncio.to_thread(scheduler.start)
        assert await outcome(alice, "fails") == ("FAILED", 7)
        assert await outcome(alice, "talks") == ("SUCCEEDED", 0)
        assert {found["name"] for found in await alice.jobs()} == {"fails", "talks", *waiting}
        for name in waiting:
            await alice.stop("alice", name)
            assert await outcome(alice, name) == ("STOPPED", -7351)
        # everything goes on
        await alice.submit(job(outside, "after", "exit 3"))
        assert await outcome(alice, "after") == ("FAILED", 3)
        for name in ("fails", "talks", "after"):
            assert len(await alice.attempts("alice", name)) == 1
    assert outside.ran() == {(name, 0, "main", 0): 1 for name in ("fails", "talks", "after")}
    for _ in range(1000):
        if not await outside.leftovers(alive=True):
            return
        await asyncio.sleep(0.01)
    pytest.fail(str(await outside.leftovers(alive=True)))


async def test_on_a_full_disk_every_job_can_be_stopped_and_deleted(
    scheduler: WarmScheduler, outside: Processes | Containers, small_disk: Path
) -> None:
    ballast = Ballast(small_disk)
    async with Client(scheduler.url, "token-of-alice") as alice:
        for name in ("stopped", "deleted", "kept"):
            await alice.submit(job(outside, name, "echo begun; exec sleep 1000"))
            await reached(alice, name, "running")
        roles = [{"name": "main", "command": "exit 0", "gpuNumber": 100}]
        await alice.submit({**job(outside, "waits", "exit 0"), "taskRoles": roles})
        await asyncio.to_thread(ballast.fill)
        with pytest.raises(ApiError, match="almost full") as refused:
            await alice.submit(job(outside, "refused", "exit 0"))
        assert (refused.value.status, refused.value.code) == (507, "InsufficientStorageError")
        async with httpx.AsyncClient() as anybody:
            ready = await anybody.get(
                f"{scheduler.url}/readyz", headers={"Authorization": "Bearer token-of-root"}
            )
        assert (ready.status_code, "almost full" in ready.text) == (503, True)
        # again and again: whatever is given back is taken by others at once
        for name in ("stopped", "waits"):
            await alice.stop("alice", name)
            assert await outcome(alice, name) == ("STOPPED", -7351)
            await asyncio.to_thread(ballast.fill)
        await alice.delete("alice", "deleted")
        await asyncio.to_thread(ballast.fill)
        async with Client(scheduler.url, "token-of-root") as root:
            await root.delete("alice", "stopped")
        ballast.drop()
        await alice.submit(job(outside, "after", "exit 3"))
        assert await outcome(alice, "after") == ("FAILED", 3)
        assert {found["name"] for found in await alice.jobs()} == {"waits", "kept", "after"}
        await alice.stop("alice", "kept")
        assert await outcome(alice, "kept") == ("STOPPED", -7351)


async def test_the_task_whose_log_fills_the_disk_is_ended_and_no_other(
    scheduler: WarmScheduler, outside: Processes | Containers
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(job(outside, "calm", "echo begun; exec sleep 1000"))
        await reached(alice, "calm", "running")
        await alice.submit(job(outside, "culprit", f"while echo {'x' * 4000}; do :; done"))
        assert await outcome(alice, "culprit") == ("FAILED", 137)
        status = (await alice.job("alice", "culprit"))["jobStatus"]
        assert status["appExitSpec"] is not None
        assert status["appExitSpec"]["code"] == 198
        assert "was filling it fastest" in status["appExitDiagnostics"]
        # its log is there until it is deleted
        with pytest.raises(ApiError, match="almost full"):
            await alice.submit(job(outside, "refused", "exit 0"))
        await alice.delete("alice", "culprit")
        async with asyncio.timeout(30):
            while True:
                with contextlib.suppress(ApiError):
                    await alice.submit(job(outside, "after", "exit 3"))
                    break
                await asyncio.sleep(0.05)
        assert await outcome(alice, "after") == ("FAILED", 3)
        assert (await alice.job("alice", "calm"))["jobStatus"]["state"] == "RUNNING"
        await alice.stop("alice", "calm")
        assert await outcome(alice, "calm") == ("STOPPED", -7351)
