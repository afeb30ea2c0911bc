"""A person's jobs: listed, read, stopped and deleted, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any

import pytest

from pai_scheduler.core.model import State
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import AnonymousReader
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.virtual_clusters import WantedShare
from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, BOB, ROOT, OpenService, refused


async def test_a_running_job_is_stopped(service: OpenService) -> None:
    await service.begin("runs")
    await service.jobs.stop(ALICE, "alice", "runs")
    job = await service.until("runs")
    assert job.state is State.STOPPED
    assert job.attempt is not None
    assert [task.exit_code for task in job.attempt.tasks.values()] == [-7351]
    await service.jobs.stop(ALICE, "alice", "runs")
    assert (await service.jobs.get(ALICE, "alice", "runs")).state is State.STOPPED


async def test_a_deleted_running_job_is_gone_at_once_and_its_name_is_free(service: OpenService) -> None:
    running = await service.begin("same")
    log = service.tasks.log(TaskRef(running.id, 0, "main", 0))
    await service.jobs.delete(ALICE, "alice", "same")
    with refused(404, "NoJobError"):
        await service.jobs.get(ALICE, "alice", "same")
    assert await service.jobs.page(ALICE) == []
    assert (await service.run("same", "echo another")).id != running.id
    for _ in range(3000):
        if not log.folder.exists():
            break
        await asyncio.sleep(0.01)
    assert not log.folder.exists()
    assert await service.log_of("same") == b"another\n"


async def test_deleting_what_is_not_there_is_refused(service: OpenService) -> None:
    with refused(404, "NoJobError"):
        await service.jobs.delete(ALICE, "alice", "nothing")


async def test_another_users_job_is_not_found_whether_it_exists_or_not(service: OpenService) -> None:
    await service.run("mine")
    for name in ("mine", "nothing"):
        calls: list[Awaitable[Any]] = [
            service.jobs.get(BOB, "alice", name),
            service.jobs.config(BOB, "alice", name),
            service.jobs.attempts(BOB, "alice", name),
            service.job_events.read(BOB, "alice", name),
            service.tasks.find(BOB, "alice", name, "main", 0),
            service.jobs.stop(BOB, "alice", name),
            service.jobs.delete(BOB, "alice", name),
            anext(service.job_events.follow(BOB, "alice", name)),
        ]
        for call in calls:
            with refused(404, "NoJobError"):
                await call


async def test_users_see_their_own_jobs_and_admins_all(service: OpenService) -> None:
    await service.run("one")
    await service.admission.submit(BOB, "bob", make_config(name="two"))
    assert [job.name for job in await service.jobs.page(ALICE)] == ["one"]
    assert [job.name for job in await service.jobs.page(BOB, "bob")] == ["two"]
    assert [job.name for job in await service.jobs.page(ROOT)] == ["two", "one"]
    assert [job.name for job in await service.jobs.page(ROOT, "alice")] == ["one"]
    with refused(403, "ForbiddenUserError"):
        await service.jobs.page(BOB, "alice")
    assert {told.user for told in await service.job_events.read(BOB, None, None)} == {"bob"}
    assert {told.user for told in await service.job_events.read(ROOT, None, None)} == {"alice", "bob"}


async def test_the_config_is_what_was_submitted(service: OpenService) -> None:
    config = make_config(make_role(cpus=9), tmp={"x": 1}, extras={"y": [1]})
    await service.admission.submit(ALICE, "alice", config)
    del config["tmp"]
    assert await service.jobs.config(ALICE, "alice", "job") == config


async def test_who_reads_without_a_token_changes_nothing_and_sees_no_task(service: OpenService) -> None:
    await service.begin("private")
    anybody = AnonymousReader()
    assert [job.name for job in await service.jobs.page(anybody)] == ["private"]
    assert (await service.jobs.get(anybody, "alice", "private")).name == "private"
    calls: list[Awaitable[Any]] = [
        service.admission.submit(anybody, "", make_config(make_role(), name="mine")),
        service.jobs.stop(anybody, "alice", "private"),
        service.jobs.delete(anybody, "alice", "private"),
        service.jobs.reorder(anybody, "alice", "private", priority=1),
        service.job_events.read(anybody, "alice", "private"),
        service.tasks.find(anybody, "alice", "private", "main", 0),
        service.virtual_clusters.set(anybody, "speech", WantedShare(1)),
        service.virtual_clusters.set_stopped(anybody, "vision", True),
    ]
    for call in calls:
        with pytest.raises(RequestError) as refusal:
            await call
        assert refusal.value.status in (403, 404)
