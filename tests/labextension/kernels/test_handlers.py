"""What a notebook server tells of its kernels that are jobs, over HTTP; there is no scheduler here."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from pai_labextension.kernels.channels import RunnerState
from pai_labextension.kernels.job_spec import KernelEnd, idle_ending, out_of_memory
from pai_labextension.kernels.kernel_job import KernelJob, KernelPhase, KernelProgress
from pai_labextension.kernels.manager import EndedKernel
from pai_labextension.messages import msg
from tests.labextension.kernels.conftest import P100, NotebookServer


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[NotebookServer]:
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    server = NotebookServer(tmp_path, "http://127.0.0.1:9")
    yield server
    server.kernels._kernels.clear()
    await server.close()


@pytest.fixture
def job(server: NotebookServer, unfollowed_job: KernelJob) -> KernelJob:
    """Give the server a kernel that is a job."""
    kernel = str(uuid.uuid4())
    server.kernels._kernels[kernel] = SimpleNamespace(
        kernel_name=P100, kernel_id=kernel, provisioner=SimpleNamespace(job=unfollowed_job)
    )
    return unfollowed_job


def id_of(server: NotebookServer) -> str:
    (kernel,) = server.kernels.list_kernel_ids()
    return str(kernel)


async def listed(server: NotebookServer, language: str = "en") -> list[dict[str, Any]]:
    answer = await server.browser.get("/pai/kernels", headers={"Accept-Language": language})
    assert answer.status_code == 200, answer.text
    kernels: list[dict[str, Any]] = answer.json()["kernels"]
    return kernels


async def test_who_is_not_logged_in_sees_and_changes_nothing(server: NotebookServer) -> None:
    async with httpx.AsyncClient(base_url=server.url, trust_env=False) as stranger:
        assert (await stranger.get("/pai/kernels")).status_code == 403
        assert (await stranger.post(f"/pai/kernels/{uuid.uuid4()}/keep")).status_code == 403


async def test_kernels_beside_the_server_are_not_listed(server: NotebookServer) -> None:
    server.kernels._kernels["local"] = SimpleNamespace(provisioner=SimpleNamespace())
    assert await listed(server) == []


async def test_a_kernel_that_waits_says_why_in_the_readers_language(
    server: NotebookServer, job: KernelJob
) -> None:
    job.progress = KernelProgress(KernelPhase.WAITING, msg("The task runs; the kernel starts."), 3)
    (state,) = await listed(server)
    assert state == {
        "id": id_of(server),
        "name": P100,
        "job": "kernel_1",
        "user": "alice",
        "phase": "waiting",
        "reason": "The task runs; the kernel starts.",
        "place": 3,
        "idleLimit": 0,
        "idleLeft": None,
        "deaths": 0,
        "death": "",
        "log": "",
    }
    (state,) = await listed(server, "zh-CN")
    assert "任务" in state["reason"]
    # what the scheduler says comes in its reader's language already
    job.progress = KernelProgress(KernelPhase.WAITING, "排在第 3 位", 3)
    assert [state["reason"] for state in await listed(server, "zh-CN")] == ["排在第 3 位"]


async def test_a_kernel_that_runs_says_how_it_died_before_and_how_long_it_may_be_idle(
    server: NotebookServer, job: KernelJob
) -> None:
    job.progress = KernelProgress(KernelPhase.RUNNING)
    job.death, job.deaths = out_of_memory(512), 2
    job._hear("activity", RunnerState({"key": "k"}, None, oom=False, busy=False, idle=100.0, limit=1800.0))
    (state,) = await listed(server)
    assert (state["phase"], state["deaths"], state["idleLimit"]) == ("running", 2, 1800)
    assert 1690 < state["idleLeft"] <= 1700
    assert "512 MB" in state["death"]
    job._hear("activity", RunnerState({"key": "k"}, None, oom=False, busy=True, idle=0.0, limit=1800.0))
    assert [state["idleLeft"] for state in await listed(server)] == [None]


async def test_it_is_told_why_a_kernel_has_ended_until_another_one_has_its_id(
    server: NotebookServer, job: KernelJob
) -> None:
    server.kernels.remember(
        EndedKernel("gone", P100, "kernel_2", KernelEnd(idle_ending(1800).message, "last"))
    )
    server.kernels.remember(EndedKernel(id_of(server), P100, "kernel_3", idle_ending(60)))
    running, ended = await listed(server)
    assert (running["job"], running["phase"]) == (job.job, "waiting")
    assert (ended["id"], ended["phase"], ended["log"]) == ("gone", "ended", "last")
    assert ended["reason"].startswith("Nobody used this kernel for 30 minutes")


async def test_more_time_is_refused_for_a_kernel_that_is_gone(server: NotebookServer) -> None:
    path = f"/pai/kernels/{uuid.uuid4()}/keep"
    answer = await server.browser.post(path)
    assert (answer.status_code, answer.json()["message"]) == (404, "This kernel has ended.")
    answer = await server.browser.post(path, headers={"Accept-Language": "zh-CN"})
    assert "已结束" in answer.json()["message"]


async def test_more_time_for_a_kernel_that_still_waits_is_no_error(
    server: NotebookServer, job: KernelJob
) -> None:
    del job
    assert (await server.browser.post(f"/pai/kernels/{id_of(server)}/keep")).status_code == 204


async def test_a_task_that_cannot_be_reached_is_said(
    server: NotebookServer, job: KernelJob, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken() -> None:
        raise ConnectionError("the way is gone")

    monkeypatch.setattr(job, "keep", broken)
    answer = await server.browser.post(f"/pai/kernels/{id_of(server)}/keep")
    assert answer.status_code == 502
    assert answer.json()["message"] == "The task cannot be reached: the way is gone"
