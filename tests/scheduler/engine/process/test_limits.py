"""Limits by cgroups, and a disk that is full."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.protocol import EndCause, Ended, Notice, Started
from pai_scheduler.job.task import TaskRef
from pai_scheduler.testing.engine import FOREVER, Reopen
from pai_scheduler.testing.lab import Lab, eventually, make_task

ROOT = Path(__file__).parents[3]
PYTHON = sys.executable


# limits


@pytest.mark.usefixtures("limited")
async def test_more_memory_than_asked_for_is_an_oom_kill_with_exit_code_137(lab: Lab) -> None:
    _, ended = await lab.run(f"exec {PYTHON} -c 'x = bytearray(400_000_000)'", memory_mb=100)
    assert (ended.cause, ended.exit_code) == (EndCause.OOM, 137)
    assert str(ended.reason) == (
        "The task used more than its 100 MB of memory, and was ended. Ask for more, or use less."
    )


@pytest.mark.usefixtures("limited")
async def test_an_oom_kill_that_the_command_survives_is_not_its_end(lab: Lab) -> None:
    _, ended = await lab.run(f"{PYTHON} -c 'x = bytearray(400_000_000)' || true", memory_mb=100)
    assert ended.exit_code in (0, 137)  # cgroups of version 2 end the task as a whole
    assert ended.cause is (EndCause.OOM if ended.exit_code else EndCause.EXITED)


@pytest.mark.usefixtures("limited")
async def test_a_process_killed_for_memory_is_noticed_while_the_task_goes_on_and_at_its_end(lab: Lab) -> None:
    hog = f"{PYTHON} -c 'x = bytearray(400_000_000)'"
    goes_on = await lab.start(f"{hog}; exec sleep 100000", memory_mb=100)
    at_its_end, ended = await lab.run(f"{hog} || true", memory_mb=100)
    if ended.cause is EndCause.OOM:
        pytest.skip("cgroups of version 2 end the task as a whole")
    await eventually(lambda: bool(lab.noticed(goes_on)), "that a process was killed is noticed")
    for task in (goes_on, at_its_end):
        (noticed,) = lab.noticed(task)
        assert noticed.notice is Notice.PROCESS_KILLED
        assert "used more than its 100 MB" in str(noticed.message)
    assert lab.events.index(lab.noticed(at_its_end)[0]) < lab.events.index(ended)


@pytest.mark.usefixtures("limited")
async def test_processes_beyond_the_limit_cannot_be_made(tmp_path: Path, image: str) -> None:
    engine = ProcessEngine(tmp_path / "few", pids_limit=20)
    await engine.start()
    lab = await Lab.over(engine, image)
    script = (
        "import os, time\n"
        "made = 0\n"
        "try:\n"
        "    while made < 100:\n"
        "        if os.fork() == 0:\n"
        "            time.sleep(1000)\n"
        "        made += 1\n"
        "except OSError:\n"
        "    print(made)\n"
    )
    task, _ = await lab.run(f'exec {PYTHON} -c "$SCRIPT"', env={"SCRIPT": script})
    assert lab.output(task) == "19\n"
    await lab.clean()
    await engine.close()


@pytest.mark.usefixtures("limited")
async def test_a_processor_limit_slows_a_task_down(lab: Lab) -> None:
    script = "import os, time; os.fork(); os.fork()\nwhile time.process_time() < 0.25: pass\ntime.sleep(0.1)"
    task = await lab.start(f'{PYTHON} -c "$SCRIPT"; echo ready; sleep 1000', cpus=1, env={"SCRIPT": script})
    await lab.printed(task, "ready")
    usage = await lab.engine.usage(task)
    assert usage is not None
    assert 0 < usage.cpu_percent < 130


async def test_without_cgroups_the_engine_says_so_and_runs_tasks_unlimited(
    monkeypatch: pytest.MonkeyPatch, data_dir: Path, image: str, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Cgroups, "find", lambda _owner: Cgroups(None, (), {}, "not for you"))
    engine = ProcessEngine(data_dir)
    await engine.start()
    lab = await Lab.over(engine, image)
    assert "cpu, memory, pids" in str(engine.limits)
    assert "not for you" in caplog.text
    task = await lab.start("x=$(head -c 20000000 /dev/zero | tr '\\0' x); echo ready; sleep 1000; echo $x")
    await lab.printed(task, "ready")
    usage = await engine.usage(task)
    assert usage is not None
    assert usage.memory_mb > 15
    await lab.clean()
    await engine.close()


@pytest.mark.usefixtures("limited")
async def test_the_cgroups_of_ended_tasks_are_removed(lab: Lab) -> None:
    task, _ = await lab.run("true")
    await eventually(lambda: not _groups_of(task), "the task's cgroups are removed")


def _groups_of(task: TaskRef) -> list[Path]:
    # (os.walk goes on where others' groups go away under it; Path.glob does not)
    return [Path(folder) for folder, _, _ in os.walk("/sys/fs/cgroup") if Path(folder).name == task.name]


# scratch disk


@pytest.mark.parametrize("hold", [False, True])
async def test_a_task_that_writes_more_than_its_storage_is_ended_for_that(lab: Lab, hold: bool) -> None:
    command = "trap '' TERM; fallocate -l 1100M large; echo written; sleep 100000"
    task, ended = await lab.run(command, storage_gb=1, hold_on_failure=hold)
    assert (ended.cause, ended.exit_code) == (EndCause.DISK, 137)
    assert str(ended.reason) == (
        "The task wrote more than its 1 GB to its working folder, and was ended. "
        "Raise storageGB, or write less."
    )
    assert [type(event) for event in lab.told(task)] == [Started, Ended]


async def test_a_held_task_goes_when_it_takes_more_than_its_storage(lab: Lab) -> None:
    task = await lab.start(
        "(sleep 0.3; fallocate -l 1100M large) & exit 4", storage_gb=1, hold_on_failure=True
    )
    await lab.held(task)
    ended = await lab.ended(task)
    assert (ended.cause, ended.exit_code) == (EndCause.DISK, 4)


async def test_an_adopted_task_keeps_its_limit_of_storage(lab: Lab, reopen: Reopen, image: str) -> None:
    command = "while [ ! -e go ]; do sleep 0.05; done; fallocate -l 1100M large; sleep 100000"
    task = await lab.start(command, storage_gb=1)
    await lab.started(task)
    await lab.stop_listening()
    await lab.engine.close()
    later = await Lab.over(await reopen(), image)
    await later.adopt([task])
    Path(later.engine.work_dir(task), "go").touch()
    assert (await later.ended(task)).cause is EndCause.DISK
    later.gangs, lab.gangs = lab.gangs, []
    await later.clean()


async def test_what_a_task_wrote_is_part_of_its_usage(lab: Lab) -> None:
    task = await lab.start("fallocate -l 50M file; echo ready; sleep 100000", storage_gb=1)
    await lab.printed(task, "ready")
    for _ in range(200):
        # (a task may write before the engine notes that it has started)
        usage = await lab.engine.usage(task)
        if usage and usage.disk_mb and usage.disk_mb >= 50:
            break
        await asyncio.sleep(0.05)
    assert usage is not None
    assert usage.disk_mb is not None
    assert 50 <= usage.disk_mb < 52
    assert usage.gpu_percent is None
    assert usage.net_rx_bytes is None


# a full disk


@pytest.fixture
async def tight_lab(tiny_disk: Path, image: str) -> AsyncIterator[Lab]:
    """Work in a data folder on a disk of 1 MB."""
    engine = ProcessEngine(tiny_disk / "data", rescan_seconds=0.2)
    await engine.start()
    lab = await Lab.over(engine, image)
    yield lab
    await lab.clean()
    await engine.close()


async def test_a_disk_filled_with_output_loses_output_and_says_so_but_not_the_exit_code(
    tight_lab: Lab,
) -> None:
    _, ended = await tight_lab.run("echo begin; head -c 5000000 /dev/zero; exit 7")
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 7)
    assert "The disk for logs is full" in str(ended.reason)


async def test_a_disk_filled_by_the_task_itself_does_not_lose_its_end(tight_lab: Lab) -> None:
    _, ended = await tight_lab.run("cat /dev/zero > fill; exit 8")
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 8)


async def test_on_a_full_disk_tasks_are_killed_and_launches_fail_with_a_sentence(
    tight_lab: Lab, tiny_disk: Path
) -> None:
    running = await tight_lab.start(FOREVER)
    await tight_lab.printed(running, "ready")
    with pytest.raises(OSError, match="No space"):
        (tiny_disk / "ballast").write_bytes(b"x" * 2_000_000)
    _, failed = await tight_lab.run("echo ran")
    assert (failed.cause, failed.exit_code) == (EndCause.LAUNCH_FAILED, None)
    assert "no room on the scheduler's disk" in str(failed.reason)
    never = make_task()
    await tight_lab.engine.kill(never, 1)
    assert (await tight_lab.ended(never)).cause is EndCause.KILLED
    await tight_lab.engine.kill(running, 0)
    assert (await tight_lab.ended(running)).cause is EndCause.KILLED
