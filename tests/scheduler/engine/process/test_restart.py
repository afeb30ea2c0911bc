"""The service or a supervisor is killed: nothing runs twice, and nobody waits for what is gone."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from pathlib import Path

import pytest

from pai_scheduler.engine.process import procfs
from pai_scheduler.engine.process.task_folder import TaskFolder, TaskPhase, TaskRecord
from pai_scheduler.engine.protocol import EndCause, Ended, Started
from pai_scheduler.testing.engine import FOREVER, Reopen
from pai_scheduler.testing.lab import (
    Lab,
    eventually,
    make_task,
    new_job_id,
    processes_running,
    processes_with,
)

ROOT = Path(__file__).parents[4]
PYTHON = sys.executable


def supervisor_of(started: Started) -> int:
    found = procfs.process(int(started.container_id))
    assert found is not None
    return found.parent


# supervisors and their deaths


@pytest.mark.usefixtures("cgroups_or_none")
async def test_a_task_whose_supervisor_is_killed_is_lost_and_its_whole_tree_is_ended(
    lab: Lab, marker: str
) -> None:
    task = await lab.start(
        f"setsid setsid sleep 1{marker} & (sleep 2{marker}; true) & echo ready; sleep 3{marker}; true"
    )
    await lab.printed(task, "ready")
    await eventually(lambda: len(processes_running(f"sleep 1{marker}")) == 1, "the child runs")
    os.kill(supervisor_of(await lab.started(task)), signal.SIGKILL)
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.LOST, None)
    assert "watched over" in str(ended.reason)
    assert not processes_with(marker)


async def test_a_supervisor_that_dies_while_the_service_is_down_is_a_lost_task_too(
    lab: Lab, reopen: Reopen, image: str
) -> None:
    task = await lab.start(FOREVER)
    started = await lab.started(task)
    await lab.stop_listening()
    await lab.engine.close()
    supervisor = supervisor_of(started)
    os.kill(supervisor, signal.SIGKILL)
    later = await Lab.over(await reopen(), image)
    await eventually(lambda: procfs.process(supervisor) is None, "the supervisor is dead")
    await later.adopt([task])
    assert (await later.ended(task)).cause is EndCause.LOST
    assert await later.started(task) == started
    lab.gangs.clear()
    await later.clean()


async def test_what_a_shutdown_tells_everybody_leaves_supervisors_to_write_down_the_end(lab: Lab) -> None:
    task = await lab.start(FOREVER)
    await lab.printed(task, "ready")
    started = await lab.started(task)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(supervisor_of(started), number)
    os.kill(int(started.container_id), signal.SIGTERM)
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 143)


async def test_supervisors_and_commands_have_sessions_of_their_own(lab: Lab) -> None:
    task = await lab.start(FOREVER)
    started = await lab.started(task)
    sessions = {os.getsid(pid) for pid in (0, supervisor_of(started), int(started.container_id))}
    assert len(sessions) == 3


async def test_tasks_can_be_launched_after_the_process_that_forks_supervisors_was_killed(lab: Lab) -> None:
    fork_servers = set(processes_with("process.fork_server")).intersection(procfs.children(os.getpid()))
    assert fork_servers
    job = new_job_id()
    launches = await lab.prepare(
        *(lab.make("true", task=make_task(index=index, job_id=job)) for index in range(20))
    )
    await asyncio.gather(*(lab.engine.launch(launch) for launch in launches[:10]))
    for fork_server in fork_servers:
        os.kill(fork_server, signal.SIGKILL)
    await asyncio.gather(*(lab.engine.launch(launch) for launch in launches[10:]))
    for launch in launches:
        assert (await lab.ended(launch.task)).exit_code == 0
        assert len(lab.told(launch.task)) == 2


async def test_a_task_that_was_asked_for_in_vain_is_asked_for_again(lab: Lab) -> None:
    fork_servers = set(processes_with("process.fork_server")).intersection(procfs.children(os.getpid()))
    for fork_server in fork_servers:
        os.kill(fork_server, signal.SIGSTOP)
    task = await lab.start("true")
    assert lab.told(task) == []
    for fork_server in fork_servers:
        os.kill(fork_server, signal.SIGKILL)
    assert (await lab.ended(task)).exit_code == 0


async def test_ended_tasks_leave_no_zombies(lab: Lab, marker: str) -> None:
    task, _ = await lab.run(f"sleep 1{marker} & true")
    await lab.run("true")
    mine = [os.getpid(), *procfs.children(os.getpid())]
    # (a task's supervisor is gone shortly after it has rung)
    await eventually(
        lambda: not any("Z" in _state(child) for parent in mine for child in procfs.children(parent)),
        f"nothing of {task.name} waits to be reaped",
    )


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


async def test_an_event_arrives_even_if_its_signal_was_lost(lab: Lab, data_dir: Path) -> None:
    task = await lab.start(FOREVER)
    await lab.started(task)
    (data_dir / "doorbell").unlink()
    await lab.engine.kill(task, 0)
    assert (await lab.ended(task)).cause is EndCause.KILLED


# the service is killed


@pytest.mark.daemon
@pytest.mark.parametrize("seed", range(8))
async def test_whenever_the_service_is_killed_each_command_runs_exactly_once(
    seed: int, data_dir: Path, tmp_path: Path, reopen: Reopen, image: str
) -> None:
    chance = random.Random(seed)  # noqa: S311
    count, job, ran = 12, new_job_id(), tmp_path / "ran"
    ran.mkdir()
    command = f'echo "$PWD" >> {ran}/$(basename $(dirname "$PWD")); sleep 0.0{chance.randrange(10)}; exit 9'
    tasks = [make_task(index=index, job_id=job) for index in range(count)]
    for _ in range(3):  # services come and go
        service = await _service(data_dir, job, count, command)
        await asyncio.sleep(chance.uniform(0, 0.06))
        service.kill()
        await service.communicate()
    lab = await Lab.over(await reopen(), image)
    await lab.adopt(tasks)
    launches = await lab.prepare(*(lab.make(command, task=task) for task in tasks))
    await asyncio.gather(*(lab.engine.launch(launch) for launch in launches))
    for task in tasks:
        ended = await lab.ended(task)
        assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 9)
        assert [type(event) for event in lab.told(task)] == [Started, Ended]
    assert {file.name: len(file.read_text().splitlines()) for file in ran.iterdir()} == {
        task.name: 1 for task in tasks
    }
    await lab.clean()


async def test_who_reads_the_services_output_does_not_wait_for_its_tasks(
    data_dir: Path, reopen: Reopen, image: str
) -> None:
    job = new_job_id()
    service = await _service(data_dir, job, 1, FOREVER)
    assert service.stdout is not None
    assert await service.stdout.readline() == b"launched\n"
    service.kill()
    assert await asyncio.wait_for(service.stdout.read(), 60) == b""
    lab = await Lab.over(await reopen(), image)
    task = make_task(job_id=job)
    await lab.adopt([task])
    await lab.printed(task, "ready")
    await lab.engine.kill(task, 0)
    await lab.ended(task)
    await lab.stop_listening()


async def _service(data_dir: Path, job: str, count: int, command: str) -> asyncio.subprocess.Process:
    service = await asyncio.create_subprocess_exec(
        *(PYTHON, "-m", "tests.scheduler.engine.process.service_host"),
        *(str(data_dir), job, str(count), command),
        cwd=ROOT,
        stdout=asyncio.subprocess.PIPE,
    )
    assert service.stdout is not None
    assert await service.stdout.readline() == b"ready\n"
    return service


# what is over costs nothing


async def test_a_start_looks_at_no_task_that_was_released(
    lab: Lab, reopen: Reopen, image: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = new_job_id()
    launches = await lab.prepare(
        *(lab.make("echo words", task=make_task(index=index, job_id=job)) for index in range(5))
    )
    for launch in launches:
        await lab.engine.launch(launch)
        await lab.ended(launch.task)
    await lab.engine.release(lab.gangs.pop())
    (unreleased,) = await lab.prepare(lab.make("echo words"))
    await lab.engine.launch(unreleased)
    await lab.ended(unreleased.task)
    lab.gangs.clear()
    looked: list[str] = []
    read = TaskFolder.read

    def counted(folder: TaskFolder) -> tuple[TaskPhase, TaskRecord]:
        looked.append(folder.path.name)
        return read(folder)

    monkeypatch.setattr(TaskFolder, "read", counted)
    later = await Lab.over(await reopen(), image)
    await later.adopt([])
    assert set(looked) == {unreleased.task.name}
    assert list((data_dir / "tasks").iterdir()) == []
    for task in (*(launch.task for launch in launches), unreleased.task):
        assert later.output(task) == "words\n"
        await later.engine.forget(task)
        assert later.output(task) == ""
    assert list((data_dir / "ended").iterdir()) == []
    await later.clean()


async def test_tasks_that_an_older_version_left_in_one_folder_are_moved(
    lab: Lab, reopen: Reopen, image: str, data_dir: Path
) -> None:
    task, first = await lab.run("echo words; exit 3")
    await lab.engine.release(lab.gangs.pop())
    (data_dir / "ended" / task.name).rename(data_dir / "tasks" / task.name)
    later = await Lab.over(await reopen(), image)
    await later.adopt([task])
    assert await later.ended(task) == first
    await later.adopt([])
    later = await Lab.over(await reopen(), image)
    await later.adopt([])
    assert list((data_dir / "tasks").iterdir()) == []
    assert later.output(task) == "words\n"
    await later.clean()
