"""The service as a whole, over a real database and real processes: submission, end, restart, full disk."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Attempt, State, SubState
from pai_scheduler.engine.protocol import Gang
from pai_scheduler.job.task import TaskRef
from tests.scheduler.making import make_config, make_role
from tests.scheduler.open_service import ALICE, FOREVER, MakeService, OpenService, refused


def ran(attempts: list[Attempt]) -> list[Attempt]:
    """Leave out those that never ran, as another program of this machine had one of their ports."""
    return [attempt for attempt in attempts if attempt.launched is not None]


async def test_a_job_runs_and_its_log_is_there(service: OpenService) -> None:
    job = await service.run("hello", "echo hello $PAI_JOB_NAME of $PAI_USER_NAME at $PAI_DEFAULT_FS_URI")
    assert job.state is State.SUCCEEDED
    assert await service.log_of("hello") == b"hello hello of alice at file:///fs\n"
    types = [told.entry.type for told in await service.job_events.read(ALICE, "alice", "hello")]
    assert types[:2] == ["submitted", "placed"]
    assert types[-4:] == ["task-started", "running", "task-ended", "ended"]


async def test_how_long_jobs_took_is_known_after_a_restart(make_service: MakeService) -> None:
    before = await make_service()
    jobs = [await before.run(f"past{number}", "true") for number in range(3)]
    await before.close()
    after = await make_service()
    assert after._learning is not None
    await after._learning
    took = after._writer.core.durations.likely("alice", jobs[0].spec, None)
    assert took is not None
    assert took > 0


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
    assert str(service.queues.waiting_reason(ALICE, second)) == (
        "Waiting in virtual cluster default, place 1 in the queue: the job asks for 1 × GPU, none is free. "
        "It fits after the end of the job that runs. GPUs are held by alice (2)."
    )
    (node,) = service.node_uses()
    assert [job.name for job in node.gpu_jobs.values()] == ["first", "first"]
    await service.jobs.stop(ALICE, "alice", "first")
    assert (await service.until("second")).state is State.SUCCEEDED
    (node,) = service.node_uses()
    assert (node.cpus, node.gpu_jobs) == (0, {})


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


async def test_a_job_that_becomes_durable_while_the_service_closes_starts_with_the_next(
    make_service: MakeService, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service = await make_service()
    commit, close_writer = service.database.commit, service._writer.close
    under_way, closing = threading.Event(), threading.Event()

    def slow(
        outcome: Outcome, configs: Mapping[str, Mapping[str, Any]], texts: Mapping[str, Any]
    ) -> list[TaskRef]:
        if configs:  # it is the job
            under_way.set()
            assert closing.wait(60)
        return commit(outcome, configs, texts)

    async def closes() -> None:
        closing.set()
        await close_writer()

    monkeypatch.setattr(service.database, "commit", slow)
    monkeypatch.setattr(service._writer, "close", closes)
    job = make_config(make_role(command="echo ran"), name="late")
    submission = asyncio.create_task(service.admission.submit(ALICE, "alice", job))
    await asyncio.to_thread(under_way.wait)
    await service.close()
    await submission
    # nothing is begun that nobody would end: neither here, nor by the engine
    left = [task.get_coro() for task in asyncio.all_tasks()]
    assert [work for work in left if "Launcher" in getattr(work, "__qualname__", "")] == []
    assert list(tmp_path.glob("tasks/*")) == []
    service = await make_service()
    assert (await service.until("late")).state is State.SUCCEEDED
    assert await service.log_of("late") == b"ran\n"


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
    monkeypatch.setattr("pai_scheduler.service.writer._RETRY_SECONDS", 0.02)
    gate = tmp_path / "gate"
    await service.begin("before", f"while [ ! -e {gate} ]; do sleep 0.02; done; exit 4")
    service.database.full = True
    gate.touch()
    with refused(507, "InsufficientStorageError"):
        await service.admission.submit(ALICE, "alice", make_config(name="refused"))
    with refused(507, "InsufficientStorageError"):
        await service.jobs.stop(ALICE, "alice", "before")
    assert [job.name for job in await service.jobs.page(ALICE)] == ["before"]
    service.database.full = False
    job = await service.until("before")
    assert (job.state, job.verdict and job.verdict.exit_code) == (State.FAILED, 4)
    assert (await service.run("refused")).state is State.SUCCEEDED
    (node,) = service.node_uses()
    assert node.cpus == 0


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
