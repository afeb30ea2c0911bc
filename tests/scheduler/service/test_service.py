"""The service over a real database and real processes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.core.model import Attempt, State, SubState
from pai_scheduler.engine.protocol import Gang
from pai_scheduler.job.task import TaskRef
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.security.principal import AnonymousReader
from pai_scheduler.service.virtual_clusters import WantedShare
from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, BOB, FOREVER, ROOT, MakeService, OpenService, refused


def ran(attempts: list[Attempt]) -> list[Attempt]:
    """Leave out those that never ran, as another program of this machine had one of their ports."""
    return [attempt for attempt in attempts if attempt.launched is not None]


# -- from submission to the end


async def test_a_job_runs_and_its_log_is_there(service: OpenService) -> None:
    job = await service.run("hello", "echo hello $PAI_JOB_NAME of $PAI_USER_NAME at $PAI_DEFAULT_FS_URI")
    assert job.state is State.SUCCEEDED
    assert await service.log_of("hello") == b"hello hello of alice at file:///fs\n"
    types = [told.entry.type for told in await service.job_events.read(ALICE, "alice", "hello")]
    assert types[:2] == ["submitted", "placed"]
    assert types[-4:] == ["task-started", "running", "task-ended", "ended"]


async def test_a_failed_job_has_the_real_exit_code(service: OpenService) -> None:
    job = await service.run("fails", "echo oh >&2; exit 7")
    assert job.state is State.FAILED
    assert job.verdict is not None
    assert job.verdict.exit_code == 7
    assert await service.log_of("fails") == b"oh\n"


async def test_a_gang_runs_and_each_task_knows_all_others(service: OpenService) -> None:
    role = make_role(tasks=3, command="echo $PAI_TASK_ROLE_main_HOST_LIST | tr , '\\n' | sort | uniq | wc -l")
    await service.admission.submit(ALICE, "alice", make_config(role, name="gang"))
    assert (await service.until("gang")).state is State.SUCCEEDED
    assert [await service.log_of("gang", index) for index in range(3)] == [b"3\n"] * 3


async def test_a_failing_job_is_tried_again_and_every_attempt_keeps_its_log(service: OpenService) -> None:
    job = await service.run("again", "echo $PAI_CONTAINER_ID; exit 3", retryCount=2)
    assert (job.state, job.retries.user) == (State.FAILED, 2)
    attempts = ran(await service.jobs.attempts(ALICE, "alice", "again"))
    assert [attempt.verdict and attempt.verdict.exit_code for attempt in attempts] == [3, 3, 3]
    for attempt in attempts:
        log = service.tasks.log(TaskRef(job.id, attempt.number, "main", 0))
        assert log.read("stdout").decode() == TaskRef(job.id, attempt.number, "main", 0).name + "\n"


async def test_simulated_gpus_are_given_to_one_job_at_a_time(service: OpenService) -> None:
    await service.admission.submit(
        ALICE, "alice", make_config(make_role(command=FOREVER, gpus=2), name="first", gpuType="P100")
    )
    await service.until("first", lambda job: job.state is State.RUNNING)
    await service.admission.submit(ALICE, "alice", make_config(make_role(gpus=1), name="second"))
    second = await service.jobs.get(ALICE, "alice", "second")
    assert str(service.queues.waiting_reason(second)) == (
        "Waiting in virtual cluster default, place 1 in the queue: the job asks for 1 × GPU, none is free. "
        "It fits after the end of the job that runs."
    )
    (node,) = service.nodes()
    assert node.gpu_jobs == {0: ("alice", "first"), 1: ("alice", "first")}
    await service.jobs.stop(ALICE, "alice", "first")
    assert (await service.until("second")).state is State.SUCCEEDED
    (node,) = service.nodes()
    assert (node.cpus, node.gpu_jobs) == (0, {})


# -- stop and delete


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


# -- users apart


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


# -- what is asked of a job and its tasks


async def test_the_config_is_what_was_submitted(service: OpenService) -> None:
    config = make_config(make_role(cpus=9), tmp={"x": 1}, extras={"y": [1]})
    await service.admission.submit(ALICE, "alice", config)
    del config["tmp"]
    assert await service.jobs.config(ALICE, "alice", "job") == config


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


# -- after a restart, and on a full disk


async def test_a_restart_takes_up_what_runs_what_ended_meanwhile_and_what_waits(
    make_service: MakeService, tmp_path: Path
) -> None:
    service = await make_service()
    gate = tmp_path / "gate"
    await service.begin("runs-on", f"while [ ! -e {gate} ]; do sleep 0.02; done; echo once; exit 5")
    await service.begin("ends", f"while [ ! -e {gate}-ends ]; do sleep 0.02; done; exit 6")
    await service.admission.submit(ALICE, "alice", make_config(make_role(cpus=8), name="waits"))
    await service.close()
    (tmp_path / "gate-ends").touch()
    service = await make_service()
    job = await service.until("ends")
    assert (job.state, job.verdict and job.verdict.exit_code) == (State.FAILED, 6)
    assert (await service.jobs.get(ALICE, "alice", "runs-on")).state is State.RUNNING
    assert (await service.jobs.get(ALICE, "alice", "waits")).sub_state is SubState.QUEUED
    gate.touch()
    job = await service.until("runs-on")
    assert job.verdict is not None
    assert job.verdict.exit_code == 5
    assert len(ran(await service.jobs.attempts(ALICE, "alice", "runs-on"))) == 1
    assert await service.log_of("runs-on") == b"once\n"
    assert (await service.until("waits")).state is State.SUCCEEDED


async def test_what_a_kill_came_before_is_cleaned_up_after_the_restart(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = await make_service()

    async def die_before(_: Gang) -> None:
        return

    with monkeypatch.context() as context:
        context.setattr(service.engine, "release", die_before)
        await service.run("over", "echo scratch > file; echo logged")
        assert [file.read_text() for file in tmp_path.glob("tasks/*/work/file")] == ["scratch\n"]
    service = await make_service()
    assert list(tmp_path.glob("tasks/*/work")) == []
    assert await service.log_of("over") == b"logged\n"


async def test_on_a_full_disk_nothing_is_accepted_nothing_is_lost_and_all_goes_on_afterwards(
    service: OpenService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pai_scheduler.execution.writer._RETRY_SECONDS", 0.02)
    gate = tmp_path / "gate"
    await service.begin("before", f"while [ ! -e {gate} ]; do sleep 0.02; done; exit 4")
    service.disk.full = True
    gate.touch()
    with refused(507, "InsufficientStorageError"):
        await service.admission.submit(ALICE, "alice", make_config(name="refused"))
    with refused(507, "InsufficientStorageError"):
        await service.jobs.stop(ALICE, "alice", "before")
    assert [job.name for job in await service.jobs.page(ALICE)] == ["before"]
    service.disk.full = False
    job = await service.until("before")
    assert (job.state, job.verdict and job.verdict.exit_code) == (State.FAILED, 4)
    assert (await service.run("refused")).state is State.SUCCEEDED
    (node,) = service.nodes()
    assert node.cpus == 0


# -- the queue, and what ends or holds a job


async def test_waiting_jobs_are_listed_in_order_and_may_be_moved(service: OpenService) -> None:
    for name in ("a", "b"):
        await service.admission.submit(ALICE, "alice", make_config(make_role(cpus=9), name=name))
    await service.admission.submit(BOB, "bob", make_config(make_role(cpus=9), name="c"))
    names = [entry.job.name for entry in service.queues.waiting("default")]
    assert names == ["a", "b", "c"]
    await service.jobs.reorder(ALICE, "alice", "b", place=1)
    with refused(404, "NoJobError"):
        await service.jobs.reorder(ALICE, "bob", "c", place=1)
    await service.jobs.reorder(BOB, "bob", "c", place=1)  # among their own: nobody else's moves back
    assert [entry.job.name for entry in service.queues.waiting("default")] == ["b", "a", "c"]
    await service.jobs.reorder(ROOT, "bob", "c", place=1)
    assert [entry.job.name for entry in service.queues.waiting("default")] == ["c", "b", "a"]
    await service.jobs.reorder(ALICE, "alice", "a", priority=99)
    assert service.queues.place(await service.jobs.get(ALICE, "alice", "a")) == 1
    with refused(404, "NoVirtualClusterError"):
        service.queues.names("nowhere")


async def test_a_job_that_runs_for_its_time_is_stopped_for_real(service: OpenService) -> None:
    job = await service.run("limited", FOREVER, extras={"maxRunSeconds": 1})
    assert job.state is State.STOPPED
    assert job.verdict is not None
    assert "time limit of 1 s" in str(job.verdict.reason)


async def test_a_borrowing_job_gives_way_and_runs_again(service: OpenService) -> None:
    # default is guaranteed 60 per cent of 8 CPUs, vision 40
    borrows = make_config(make_role(cpus=8, command=FOREVER), name="borrows")
    await service.admission.submit(ALICE, "alice", borrows)
    await service.until("borrows", lambda job: job.state is State.RUNNING)
    await service.admission.submit(
        ALICE, "alice", make_config(make_role(cpus=3), name="own", virtualCluster="vision")
    )
    assert (await service.until("own")).state is State.SUCCEEDED
    again = await service.until(
        "borrows",
        lambda job: job.state is State.RUNNING and job.attempt is not None and job.attempt.number == 1,
    )
    first, _ = await service.jobs.attempts(ALICE, "alice", "borrows")
    assert first.verdict is not None
    assert (first.verdict.state, first.verdict.exit_code) == (State.STOPPED, -7120)
    assert again.retries.platform == 1


async def test_a_debugged_job_keeps_its_failed_task_until_it_is_stopped(service: OpenService) -> None:
    config = make_config(make_role(command="exit 7"), name="held", jobEnvs={"isDebug": True})
    await service.admission.submit(ALICE, "alice", config)
    job = await service.until("held", lambda job: job.sub_state is SubState.DEBUG_HELD)
    assert job.state is State.RUNNING
    assert job.attempt is not None
    (task,) = job.attempt.tasks.values()
    assert (task.state, task.exit_code) == (State.RUNNING, 7)
    await service.jobs.stop(ALICE, "alice", "held")
    assert (await service.until("held")).state is State.STOPPED


async def test_who_asks_for_a_task_or_an_attempt_that_is_not_there_is_told_what_there_is(
    service: OpenService,
) -> None:
    await service.admission.submit(
        ALICE, "alice", make_config(make_role("w", 2), make_role("ps"), name="big")
    )
    with pytest.raises(RequestError, match=r"has no task w-7\. There are: w-0 … w-1, ps-0\."):
        await service.tasks.find(ALICE, "alice", "big", "w", 7)
    with pytest.raises(RequestError, match=r"has no attempt 3; they count from 0, the last is 0\."):
        await service.tasks.find(ALICE, "alice", "big", "w", 1, attempt=3)


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
