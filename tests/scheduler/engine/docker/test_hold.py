"""What is special about holding a failed task in a container, beside what every engine does."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiodocker
import pytest

from pai_scheduler.engine.docker.debug_hold import PIPE, HoldReport, Holds
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.protocol import EndCause, Ended, Started
from pai_scheduler.testing.lab import PATIENCE, Lab, make_task
from tests.scheduler.engine.docker.test_engine import make_image

OpenDocker = Callable[..., Awaitable[DockerEngine]]


async def inside(docker: aiodocker.Docker, name: str, *command: str) -> str:
    """Run something in a container, as `docker exec` does."""
    execution = await docker.containers.container(name).exec(command, stdout=True, stderr=True)
    told = b""
    async with execution.start(detach=False) as stream:
        while (message := await stream.read_out()) is not None:
            told += message.data
    return told.decode()


async def test_the_container_of_a_held_task_can_be_looked_into(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    task = await docker_lab.start("echo what was done > file; exit 1", hold_on_failure=True)
    await docker_lab.held(task)
    assert await inside(docker, task.name, "cat", "file") == "what was done\n"


async def test_a_command_that_ran_out_of_memory_is_held_with_that_cause(docker_lab: Lab) -> None:
    task = await docker_lab.start(
        "python3 -c 'x = bytearray(400 << 20)'", memory_mb=100, hold_on_failure=True
    )
    held = await docker_lab.held(task)
    assert (held.cause, held.exit_code) == (EndCause.OOM, 137)


async def test_an_image_that_does_not_run_as_root_can_be_held(
    docker_lab: Lab, docker: aiodocker.Docker, debian_image: str
) -> None:
    await make_image(docker, "local/not-root", f'FROM {debian_image}\nUSER 1234\nENTRYPOINT ["false"]\n')
    task = await docker_lab.start("id -u; exit 5", image="local/not-root", hold_on_failure=True)
    assert (await docker_lab.held(task)).exit_code == 5
    await docker_lab.printed(task, "1234\n")


async def test_a_held_container_that_somebody_ends_is_over_as_its_command_was(
    docker_lab: Lab, docker: aiodocker.Docker
) -> None:
    task = await docker_lab.start("exit 5", hold_on_failure=True)
    held = await docker_lab.held(task)
    await docker.containers.container(task.name).kill(signal="SIGKILL")
    ended = await docker_lab.ended(task)
    assert (ended.cause, ended.exit_code) == (held.cause, held.exit_code) == (EndCause.EXITED, 5)


async def test_nothing_is_left_of_a_held_task_after_its_release(docker_lab: Lab, tmp_path: Path) -> None:
    task = await docker_lab.start("exit 5", hold_on_failure=True)
    await docker_lab.held(task)
    assert list((tmp_path / "data" / "holds").iterdir())
    await docker_lab.engine.kill(task, 0)
    await docker_lab.ended(task)
    await docker_lab.engine.release(docker_lab.gangs[0])
    assert not list((tmp_path / "data" / "holds").iterdir())


async def test_what_a_task_writes_into_the_pipe_itself_is_no_report_and_fills_nothing(
    docker_lab: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.debug_hold._NONSENSE_SECONDS", 0.05)
    command = f"yes | head -c 20000 > {PIPE}; echo done; exec sleep 100000"
    task = await docker_lab.start(command, hold_on_failure=True)
    await docker_lab.printed(task, "done")
    assert [type(event) for event in docker_lab.told(task)] == [Started]
    await docker_lab.engine.kill(task, 0)
    await docker_lab.ended(task)
    assert [type(event) for event in docker_lab.told(task)] == [Started, Ended]
    assert all(path.stat().st_size == 0 for path in (tmp_path / "data" / "holds").iterdir())


async def test_a_failure_while_the_service_was_away_has_its_own_time(
    open_docker: OpenDocker, debian_image: str
) -> None:
    lab = await Lab.over(await open_docker(), debian_image)
    task = await lab.start("echo ready; sleep 0.3; exit 5", hold_on_failure=True)
    await lab.printed(task, "ready")
    await lab.stop_listening()
    await lab.engine.close()
    failed = time.time()
    await asyncio.sleep(2)
    later = await Lab.over(await open_docker(), debian_image)
    await later.adopt([task])
    held = await later.held(task)
    assert held.time / 1000 < failed + 1.5
    later.gangs = lab.gangs
    await later.clean()


# the pipe alone


def write(holds: Holds, line: bytes) -> None:
    pipe = os.open(holds.pipe(make_task(job_id="j")), os.O_RDWR | os.O_NONBLOCK)
    os.write(pipe, line)
    os.close(pipe)


async def heard(holds: Holds) -> HoldReport:
    async with asyncio.timeout(PATIENCE):
        return await holds.heard(make_task(job_id="j"))


async def test_nonsense_is_passed_over_and_the_report_behind_it_heard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.engine.docker.debug_hold._NONSENSE_SECONDS", 0.01)
    holds = Holds(tmp_path / "holds")
    holds.make(make_task(job_id="j"))
    listening = asyncio.create_task(heard(holds))
    for nonsense in (b"0 0 1\n", b"7\n", b"-1 0 1\n", b"\xff\n", b"1" * 64, b"7 0 1"):
        await asyncio.sleep(0.05)
        write(holds, nonsense)
    await asyncio.sleep(0.05)
    assert not listening.done()
    write(holds, b"7 1 99999999999\n")
    report = await listening
    assert (report.cause, report.exit_code) == (EndCause.OOM, 7)
    # a clock that is ahead of this machine's is not believed
    assert abs(report.time / 1000 - time.time()) < 60


async def test_a_report_that_somebody_else_reads_first_is_waited_for_again(tmp_path: Path) -> None:
    holds = Holds(tmp_path / "holds")
    holds.make(make_task(job_id="j"))
    listening = [asyncio.create_task(heard(holds)) for _ in range(2)]
    for _ in listening:
        await asyncio.sleep(0.05)
        write(holds, b"7 0 12.34\n")
    assert [report.exit_code for report in await asyncio.gather(*listening)] == [7, 7]


async def test_a_report_is_kept_over_a_restart_without_the_wrapper(tmp_path: Path) -> None:
    holds = Holds(tmp_path / "holds")
    holds.make(make_task(job_id="j"))
    listening = asyncio.create_task(heard(holds))
    await asyncio.sleep(0.05)
    write(holds, b"7 0 12.34\n")
    first = await listening
    assert await heard(Holds(tmp_path / "holds")) == first
    holds.forget(make_task(job_id="j"))
    assert not list((tmp_path / "holds").iterdir())
