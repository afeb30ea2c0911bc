"""A notebook server's kernels: what it knows of those that are jobs, and what it lets go of."""

from __future__ import annotations

import asyncio
import uuid
from types import SimpleNamespace
from typing import Any

import pytest
from traitlets.config import Config

from pai_labextension.kernels import manager as manager_module
from pai_labextension.kernels.job_spec import KernelEnd, idle_ending
from pai_labextension.kernels.kernel_job import KernelJob
from pai_labextension.kernels.manager import (
    EndedKernel,
    JobKernelManager,
    JobKernelRestarter,
    JobKernelsManager,
    job_of,
)
from pai_labextension.messages import msg
from pai_scheduler.client.rest import Client
from tests.labextension.kernels.conftest import PATIENCE, StartServer

KERNEL = str(uuid.UUID(int=7))


def kernels(**sections: Any) -> JobKernelsManager:
    return JobKernelsManager(config=Config(sections))


class Provisioner:
    """A kernel's provisioner after its job has ended: what it held is given back once."""

    def __init__(self, job: KernelJob) -> None:
        self.job, self.cleaned = job, 0

    async def cleanup(self) -> None:
        self.cleaned += 1


def one_kernel(owner: JobKernelsManager, job: KernelJob) -> JobKernelManager:
    one = JobKernelManager(parent=owner)
    one.provisioner = Provisioner(job)  # type: ignore[assignment]
    one.kernel_id, one.kernel_name = KERNEL, "python3"
    owner._kernels[KERNEL] = one
    return one


def test_a_kernel_is_a_job_where_its_provisioner_has_one() -> None:
    assert job_of(SimpleNamespace(provisioner=SimpleNamespace(job=5))) == 5
    for other in (None, SimpleNamespace(), SimpleNamespace(provisioner=None)):
        assert job_of(other) is None


def test_the_last_fifty_endings_are_remembered() -> None:
    owner = kernels()
    for number in range(60):
        owner.remember(EndedKernel(str(number), "python3", "kernel_1", idle_ending(60)))
    assert list(owner.ended) == [str(number) for number in range(10, 60)]


@pytest.mark.parametrize(
    "sections",
    [{}, {"PAIKernels": {"enabled": False}, "PAIExtension": {"token": "mine"}}],
    ids=["no token", "not wanted"],
)
async def test_where_there_are_no_such_kernels_nobody_waits_for_them(
    sections: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PAI_TOKEN", "JUPYTERHUB_API_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    owner = kernels(**sections)
    owner.begin()
    async with asyncio.timeout(PATIENCE):
        assert await owner.list_kernels() == []
    assert owner.pai_service_now is None


async def test_lists_wait_for_the_first_look_but_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = kernels()
    waiting = asyncio.create_task(owner.list_kernels())
    await asyncio.sleep(0)
    assert not waiting.done()
    owner._settled.set()
    assert await waiting == []
    monkeypatch.setattr(manager_module, "_SETTLE_SECONDS", 0.01)
    assert await kernels().list_kernels() == []


async def test_a_scheduler_that_is_away_keeps_no_list_waiting() -> None:
    owner = kernels(PAIExtension={"token": "mine", "api_url": "http://127.0.0.1:9"})
    owner.begin()
    async with asyncio.timeout(PATIENCE):
        await owner._settled.wait()
    # it looks again by itself
    assert owner._finding is not None
    assert not owner._finding.done()
    await owner.shutdown_all()
    assert owner._finding.done()


async def test_a_kernel_whose_job_has_ended_is_let_go_remembered_and_dead(unfollowed_job: KernelJob) -> None:
    owner = kernels()
    one = one_kernel(owner, unfollowed_job)
    unfollowed_job.ending = KernelEnd(msg("The job of this kernel was stopped."), "last line")
    restarter = JobKernelRestarter(kernel_manager=one)
    told: list[str] = []
    restarter.add_callback(lambda: told.append("dead"), "dead")
    restarter.add_callback(lambda: told.append("restart"), "restart")
    await restarter.poll()
    assert told == ["dead"]
    assert one.execution_state == "dead"
    assert owner.ended[KERNEL] == EndedKernel(KERNEL, "python3", "kernel_1", unfollowed_job.ending)
    assert isinstance(one.provisioner, Provisioner)
    assert one.provisioner.cleaned == 1


async def test_a_kernel_that_is_being_shut_down_is_no_death(unfollowed_job: KernelJob) -> None:
    owner = kernels()
    one = one_kernel(owner, unfollowed_job)
    one.shutting_down = True
    for unfollowed_job.ending in (None, KernelEnd(msg("The kernel has ended."))):
        restarter = JobKernelRestarter(kernel_manager=one)
        restarter.add_callback(lambda: pytest.fail("nobody is to hear of it"), "dead")
        await restarter.poll()
    assert not owner.ended


async def test_a_job_that_says_that_its_kernel_ended_is_looked_at_at_once(
    unfollowed_job: KernelJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = asyncio.Event()

    async def poll(_: JobKernelRestarter) -> None:
        looked.set()

    monkeypatch.setattr(JobKernelRestarter, "poll", poll)
    restarter = JobKernelRestarter(kernel_manager=one_kernel(kernels(), unfollowed_job), time_to_dead=3600)
    restarter.start()
    await asyncio.sleep(0)
    assert not looked.is_set()
    unfollowed_job._set_code(-9)
    async with asyncio.timeout(PATIENCE):
        await looked.wait()
    restarter.stop()


async def test_at_the_servers_end_kernels_that_are_jobs_run_on(
    start_server: StartServer, alice: Client
) -> None:
    server = start_server()
    beside, job = await server.start("python3", "local.ipynb"), await server.start()
    await server.until(job, lambda state: state.get("phase") == "running")
    local: Any = server.kernels.get_kernel(beside)
    await server.kernels.shutdown_all()
    assert server.kernels.list_kernel_ids() == []
    assert not await local.is_alive()
    (left,) = [each for each in await alice.jobs("alice") if each["subState"] != "ENDED"]
    assert left["state"] == "RUNNING"
