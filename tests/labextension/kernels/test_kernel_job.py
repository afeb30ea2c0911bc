"""What a notebook server makes of what a kernel's runner says; nobody follows the job here."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

from pai_labextension.kernels.channels import RunnerState
from pai_labextension.kernels.job_spec import KernelEnd
from pai_labextension.kernels.kernel_job import KernelJob, KernelPhase
from pai_labextension.messages import msg

PORTS = {"shell_port": 1, "iopub_port": 2, "stdin_port": 3, "control_port": 4, "hb_port": 5}


def state(code: int | None = None, *, limit: float = 60.0) -> RunnerState:
    connection = {"key": "secret", **PORTS}
    return RunnerState(connection, code, oom=False, busy=False, idle=0.0, limit=limit)


@pytest.fixture(autouse=True)
def no_way(unfollowed_job: KernelJob) -> None:
    """Let the way into the task lead nowhere."""

    async def through(_host: str, _port: int) -> tuple[Any, Any]:
        raise ConnectionError("there is no task")

    unfollowed_job._through = through  # type: ignore[assignment]


async def test_a_kernel_that_is_found_running_can_be_talked_to(unfollowed_job: KernelJob) -> None:
    unfollowed_job._hear("hello", state())
    assert await unfollowed_job.attached()
    assert await unfollowed_job.settled()
    assert (unfollowed_job.progress.phase, unfollowed_job.key) == (KernelPhase.RUNNING, b"secret")


async def test_an_idle_kernels_end_is_no_death_and_its_job_says_why(unfollowed_job: KernelJob) -> None:
    unfollowed_job._hear("hello", state())
    unfollowed_job._hear("idle", state())
    unfollowed_job._hear("exited", state(-signal.SIGTERM))
    assert not unfollowed_job.reachable.is_set()
    # nobody restarts it: that is done where there is an exit code
    assert (unfollowed_job.code, unfollowed_job.deaths) == (None, 0)
    unfollowed_job._end(KernelEnd(msg("The kernel has ended.")))
    assert unfollowed_job.ending is not None
    assert str(unfollowed_job.ending.message).startswith("Nobody used this kernel for 1 minute")
    assert await unfollowed_job.ended() == -9
    assert not await unfollowed_job.settled()


async def test_an_end_that_was_asked_for_is_no_death(unfollowed_job: KernelJob) -> None:
    unfollowed_job._hear("hello", state())
    unfollowed_job.expect_end()
    assert unfollowed_job.code is None
    unfollowed_job._hear("exited", state(0))
    assert await unfollowed_job.ended() == 0
    assert unfollowed_job.deaths == 0


async def test_who_keeps_cells_is_told_that_they_are_called_off(unfollowed_job: KernelJob) -> None:
    told: list[str] = []
    unfollowed_job.keepers.add(lambda: told.append("called off"))
    # a signal says so to nobody: a kernel that died is interrupted, too, before it is started again
    await unfollowed_job.signal(signal.SIGINT)
    assert told == []
    unfollowed_job.call_off()
    assert told == ["called off"]


async def test_who_waits_for_a_kernel_that_is_let_go_waits_no_longer(unfollowed_job: KernelJob) -> None:
    waiting = asyncio.create_task(unfollowed_job.settled())
    await asyncio.sleep(0)
    assert not waiting.done()
    await unfollowed_job.leave()
    assert not await waiting
