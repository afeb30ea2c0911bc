"""A failed task that is held, when what watches over it dies; and what a hold does not outlast."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from pai_scheduler.engine.process import procfs
from pai_scheduler.engine.process.task_folder import TaskFolder
from pai_scheduler.engine.protocol import EndCause, Ended, HeldAfterFailure, Started
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.engine import Reopen
from pai_scheduler.testing.lab import Lab, eventually, processes_with

PYTHON = sys.executable


async def test_a_held_task_keeps_its_folder(lab: Lab, data_dir: Path) -> None:
    task = await lab.start("echo evidence > file; exit 3", hold_on_failure=True)
    await lab.held(task)
    assert (data_dir / "tasks" / task.name / "work" / "file").read_text() == "evidence\n"
    assert await lab.engine.usage(task) is not None


@pytest.mark.usefixtures("cgroups_or_none")
async def test_a_held_task_whose_supervisor_is_killed_ends_as_its_command_did(
    lab: Lab, marker: str, data_dir: Path
) -> None:
    task = await lab.start(f"setsid sleep 1{marker} & exit 9", hold_on_failure=True)
    await lab.held(task)
    os.kill(_supervisor(data_dir, task), signal.SIGKILL)
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 9)
    assert [type(event) for event in lab.told(task)] == [Started, HeldAfterFailure, Ended]
    assert not processes_with(marker)


async def test_a_hold_that_began_and_ended_while_the_service_was_down_is_told_in_order(
    lab: Lab, reopen: Reopen, image: str, data_dir: Path
) -> None:
    task = await lab.start("sleep 0.3; exit 9", hold_on_failure=True)
    await lab.started(task)
    await lab.stop_listening()
    await lab.engine.close()
    record = data_dir / "tasks" / task.name / "launched"
    await eventually(lambda: b'"held"' in record.read_bytes(), "the command fails")
    supervisor = _supervisor(data_dir, task)
    os.kill(supervisor, signal.SIGKILL)
    await eventually(lambda: procfs.process(supervisor) is None, "the supervisor is dead")
    later = await Lab.over(await reopen(), image)
    await later.adopt([task])
    ended = await later.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 9)
    assert [type(event) for event in later.told(task)] == [Started, HeldAfterFailure, Ended]
    lab.gangs.clear()
    await later.clean()


@pytest.mark.usefixtures("limited")
async def test_a_task_that_ran_out_of_memory_is_held_as_such(lab: Lab) -> None:
    command = f"exec {PYTHON} -c 'x = bytearray(400_000_000)'"
    task = await lab.start(command, memory_mb=100, hold_on_failure=True)
    held = await lab.held(task)
    assert (held.cause, held.exit_code) == (EndCause.OOM, 137)


def _supervisor(data_dir: Path, task: TaskRef) -> int:
    """Find the process that watches over a task, also when the command is dead."""
    _, record = TaskFolder(data_dir / "tasks" / task.name).read()
    return record["supervisor"]
