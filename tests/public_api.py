"""Uses of the public API that mypy must accept (`make lint`); nothing here is ever run."""

from __future__ import annotations

from collections.abc import Awaitable
from concurrent.futures import Future
from pathlib import Path
from typing import assert_type

from pai_labextension import ClusterView, JobForm, JobMonitor, JobTable
from pai_labextension import remote as also_remote
from pai_scheduler.client import (
    ApiError,
    CallError,
    Client,
    FilesClient,
    FilesError,
    JobFailedError,
    NotSendableError,
    RemoteFunction,
    RemoteTraceback,
    Sweep,
    UnreachableError,
    download,
    remote,
    submit_with_code,
    upload,
)
from pai_scheduler.rest.cluster import NodeInfo
from pai_scheduler.rest.models import AttemptInfo, JobDetail, JobSummary, Validation

ERRORS = (
    ApiError,
    CallError,
    FilesError,
    JobFailedError,
    NotSendableError,
    RemoteTraceback,
    UnreachableError,
)
JOB = {"jobName": "train", "image": "local/any", "taskRoles": []}


@remote
def plain(number: int) -> str:
    return str(number)


@remote(gpus=1, memory_mb=4096, code=Path(), after=["prepare:ended"], env={"SEED": "1"})
def trained(rate: float, *, steps: int = 10) -> float:
    return rate * steps


async def calls() -> None:
    assert_type(plain(1), str)
    assert_type(trained.submit(0.1, steps=5), Future[float])
    assert_type(trained.aio(0.1), Awaitable[float])
    assert_type(trained.map([0.1, 0.2]), Sweep[float])
    assert_type(trained.map([0.1]).values(), dict[int, float])
    assert_type(trained.options(gpus=2).local(0.1), float)
    given: RemoteFunction[[int], str] = plain
    given(2)
    # what is not so is an error
    trained("fast")  # type: ignore[arg-type]
    remote(gpu=1)  # type: ignore[call-overload]


async def jobs() -> None:
    async with Client("http://127.0.0.1:8000/services/pai", "token") as client:
        assert_type(await client.submit(JOB, user="alice"), str)
        assert_type(await client.validate(JOB), Validation)
        assert_type(await client.jobs("alice", states=["RUNNING"], limit=10), list[JobSummary])
        detail = await client.job("alice", "train")
        assert_type(detail, JobDetail)
        assert_type(detail["jobStatus"]["retries"], int)
        detail["jobStatus"]["nothing"]  # type: ignore[typeddict-item]
        assert_type(await client.attempts("alice", "train"), list[AttemptInfo])
        assert_type(await client.nodes(), list[NodeInfo])
        async for event in client.events("alice", "train"):
            assert_type(event["type"], str)
        await client.stop("alice", "train", force=True)


async def files() -> None:
    async with FilesClient("http://127.0.0.1:8000/services/pai", "token") as client:
        await upload(client, Path("data"), "data")
        await download(client, "results", Path("results"))
        assert_type((await client.status("data")).length, int)
        async with Client() as scheduler:
            assert_type(await submit_with_code(scheduler, client, JOB, Path(), user="alice"), str)


async def widgets() -> None:
    form = JobForm(JOB)
    monitor = await form.submit()
    assert_type((await monitor.wait()).exit_code, int | None)
    assert_type(monitor.log("worker", 0, last=1000), str)
    assert_type(JobTable(["running"], limit=5).jobs, list[JobSummary])
    assert_type(ClusterView().free, dict[str, int])
    also_remote(plain)
    for widget in (ClusterView(), JobForm(), JobMonitor("train"), JobTable()):
        widget.layout.width = "100%"
