"""Kernels' jobs, made and found before a real scheduler."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest
from traitlets.config import Config

from pai_labextension.kernels.job_spec import KernelDemand, KernelRecord, kernel_job
from pai_labextension.kernels.service import KernelNotStartedError, KernelService, OwnServer, memory_of
from pai_labextension.kernels.settings import PAIKernels
from pai_scheduler.client.rest import Client
from tests.labextension.kernels.conftest import stop_all
from tests.testbed.warm import WarmScheduler


def demand(**more: object) -> KernelDemand:
    wanted = {
        "image": "any",
        "gpus": 0,
        "gpu_type": "",
        "cpus": 1,
        "memory_mb": 512,
        "shm_mb": 64,
        "virtual_cluster": "default",
        "preemptible": False,
        "idle_seconds": 0,
        "python": "python3",
    }
    return KernelDemand(**{**wanted, **more})  # type: ignore[arg-type]


def record(server: str = "/user/alice/") -> KernelRecord:
    return KernelRecord(str(uuid.uuid4()), server, "pai-python3-cpu", "/home/alice/a.ipynb")


def settings(url: str) -> PAIKernels:
    extension = {"api_url": url, "token": "token-of-alice"}
    return PAIKernels(config=Config({"PAIExtension": extension}), server="/user/alice/")


@pytest.fixture
async def service(
    gpu_lab: WarmScheduler, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[KernelService]:
    monkeypatch.delenv("PAI_JOB_NAME", raising=False)
    service = KernelService(settings(gpu_lab.url))
    yield service
    await service.close()
    await stop_all(alice, "alice")


async def test_a_kernel_is_found_again_by_its_own_server_only(service: KernelService, alice: Client) -> None:
    mine, others = record(), record("/user/alice/second/")
    jobs = [await service.submit(each, demand()) for each in (mine, others)]
    try:
        (found,) = await service.found()
        assert (found.job, found.record) == (jobs[0].job, mine)
        assert memory_of(found.config) == 512
        await stop_all(alice, "alice")
        assert await service.found() == []
    finally:
        for job in jobs:
            await job.leave()


async def test_one_that_can_never_be_is_refused_and_leaves_no_job(
    service: KernelService, alice: Client
) -> None:
    before = await alice.jobs("alice")
    with pytest.raises(KernelNotStartedError, match="memory"):
        await service.submit(record(), demand(memory_mb=10_000_000))
    with pytest.raises(KernelNotStartedError, match="nowhere"):
        await service.submit(record(), demand(virtual_cluster="nowhere"))
    assert await alice.jobs("alice") == before


async def test_a_server_that_is_a_job_knows_its_image_home_and_queue(
    service: KernelService, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"notebook-{uuid.uuid4().hex[:8]}"
    job = kernel_job(
        name,
        record(),
        demand(),
        home="/home/jovyan",
        shared_folders=["*"],
        env={"HOME": "/home/jovyan", "X": "1"},
    )
    monkeypatch.setenv("PAI_JOB_NAME", await alice.submit(job))
    own = await service.own_server(alice)
    assert own == OwnServer("any", "default", "/home/jovyan", ("*",), {"HOME": "/home/jovyan"})


async def test_a_server_that_is_no_job_of_this_scheduler_is_none(
    service: KernelService, alice: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_JOB_NAME", "no-such-job")
    assert await service.own_server(alice) == OwnServer.read({})


async def test_a_scheduler_that_is_away_is_named_when_a_kernel_is_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pai_labextension.kernels.service._PATIENCE", 0.0)
    service = KernelService(settings("http://127.0.0.1:9"))
    with pytest.raises(KernelNotStartedError, match="The scheduler does not answer"):
        await service.submit(record(), demand())
    await service.close()
