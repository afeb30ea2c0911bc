"""Which tasks a job has, whether they may still write, and what is left of their logs."""

from __future__ import annotations

import shutil

import pytest

from pai_scheduler.job.task import TaskRef
from pai_scheduler.rest.errors import RequestError
from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, OpenService, refused


async def test_there_is_no_task_but_those_of_the_job(service: OpenService) -> None:
    await service.run("job")
    for role, index, attempt in (("other", 0, None), ("main", 1, None), ("main", 0, 1)):
        with refused(404, "NoJobError"):
            await service.tasks.find(ALICE, "alice", "job", role, index, attempt)


async def test_a_task_that_has_not_begun_or_runs_may_still_write_and_an_ended_one_may_not(
    service: OpenService,
) -> None:
    async def ended(name: str, attempt: int | None = None) -> bool:
        return service.tasks.has_ended(await service.tasks.find(ALICE, "alice", name, "main", 0, attempt))

    await service.admission.submit(ALICE, "alice", make_config(make_role(cpus=9), name="waits"))
    assert not await ended("waits")
    await service.begin("runs")
    assert not await ended("runs")
    await service.run("over", retryCount=1, command="exit 1")
    assert await ended("over", 0)
    assert await ended("over")


async def test_an_unknown_task_or_attempt_is_refused_with_those_that_exist(
    service: OpenService,
) -> None:
    await service.admission.submit(
        ALICE, "alice", make_config(make_role("w", 2), make_role("ps"), name="big")
    )
    with pytest.raises(RequestError, match=r"has no task w-7\. There are: w-0 … w-1, ps-0\."):
        await service.tasks.find(ALICE, "alice", "big", "w", 7)
    with pytest.raises(RequestError, match=r"has no attempt 3; they count from 0, the last is 0\."):
        await service.tasks.find(ALICE, "alice", "big", "w", 1, attempt=3)


async def test_a_log_that_was_removed_has_expired_and_one_that_never_was_has_not(
    service: OpenService,
) -> None:
    job = await service.run("over", "echo done")
    task = TaskRef(job.id, 0, "main", 0)
    log = service.tasks.log(task)
    assert not await service.tasks.is_log_expired(task, log)
    while log.exists:  # it is moved once the task has ended
        shutil.rmtree(log.folder, ignore_errors=True)
    assert await service.tasks.is_log_expired(task, log)
    await service.admission.submit(ALICE, "alice", make_config(make_role(cpus=9), name="waits"))
    never = await service.tasks.find(ALICE, "alice", "waits", "main", 0)
    assert not await service.tasks.is_log_expired(never, service.tasks.log(never))


async def test_what_a_task_has_used_is_told(service: OpenService) -> None:
    await service.begin("runs")
    task = await service.tasks.find(ALICE, "alice", "runs", "main", 0)
    assert (await service.tasks.usage(task)).interval > 0
