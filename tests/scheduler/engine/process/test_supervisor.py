"""The supervisor by itself: prepared by hand, started by the fork server, without an engine."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.process import spawner as spawner_module
from pai_scheduler.engine.process.folder_operations import look
from pai_scheduler.engine.process.spawner import Spawner
from pai_scheduler.engine.process.task_folder import LaunchSpec, TaskFolder, TaskPhase, TaskRecord
from pai_scheduler.engine.protocol import EngineError
from pai_scheduler.testing.lab import eventually

SPEC: LaunchSpec = {"argv": ["/bin/sh", "-c", "echo ran"], "env": {}, "groups": [], "memory_mb": 100}


@pytest.fixture
async def spawner(tmp_path: Path) -> AsyncIterator[Spawner]:
    spawner = Spawner(tmp_path, tmp_path / "doorbell", lambda: None)
    yield spawner
    await spawner.close()


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    (tmp_path / "task").mkdir()
    return TaskFolder(tmp_path / "task")


async def run(spawner: Spawner, folder: TaskFolder) -> TaskRecord:
    """Have the task supervised, and return how it ended."""
    await spawner.request(folder.path.name)
    await eventually(lambda: look(folder).phase is TaskPhase.ENDED, "the task ends")
    return look(folder).record


async def test_a_supervisor_runs_its_task_though_nobody_reads_its_signal(
    spawner: Spawner, folder: TaskFolder
) -> None:
    folder.prepare(SPEC)
    record = await run(spawner, folder)
    assert (record["cause"], record["exit_code"]) == ("exited", 0)
    assert TaskLog(folder.log).read("stdout") == b"ran\n"


async def test_many_supervisors_of_one_task_run_it_once(spawner: Spawner, folder: TaskFolder) -> None:
    folder.prepare(SPEC)
    for _ in range(20):
        await spawner.request("task")
    await run(spawner, folder)
    assert TaskLog(folder.log).read("stdout") == b"ran\n"


async def test_a_supervisor_waits_for_a_lock_that_somebody_holds_for_a_moment(
    spawner: Spawner, folder: TaskFolder
) -> None:
    folder.prepare(SPEC)
    lock = folder.lock()
    assert lock is not None
    await spawner.request("task")
    await asyncio.sleep(0.1)
    assert folder.read()[0] is TaskPhase.PREPARED
    os.close(lock)
    assert (await run(spawner, folder))["exit_code"] == 0


async def test_what_is_not_prepared_is_not_run(spawner: Spawner, folder: TaskFolder, tmp_path: Path) -> None:
    await spawner.request("nothing-of-this-name")
    folder.finish({"ended": 1, "cause": "killed", "exit_code": None})
    assert (await run(spawner, folder))["cause"] == "killed"
    assert not (tmp_path / "nothing-of-this-name").exists()


async def test_a_shell_that_is_not_there_is_a_failed_launch(spawner: Spawner, folder: TaskFolder) -> None:
    folder.prepare({**SPEC, "argv": ["/no/such/shell"]})
    record = await run(spawner, folder)
    assert record["cause"] == "launch-failed"
    assert record["failure"]["kind"] == "exec"
    assert "pid" not in record


async def test_limits_that_cannot_be_set_are_a_failed_launch(
    spawner: Spawner, folder: TaskFolder, tmp_path: Path
) -> None:
    group = {"path": str(tmp_path / "no-cgroup"), "files": [("memory/max", "1")]}
    folder.prepare({**SPEC, "groups": [group]})  # type: ignore[list-item]
    record = await run(spawner, folder)
    assert record["failure"]["kind"] == "limits"
    assert "memory/max" in record["failure"]["detail"]


async def test_a_log_that_cannot_be_opened_is_a_failed_launch_and_nothing_runs(
    spawner: Spawner, folder: TaskFolder, tmp_path: Path
) -> None:
    folder.prepare({**SPEC, "argv": ["/bin/sh", "-c", f"touch {tmp_path}/ran"]})
    (folder.log / "stdout").mkdir()
    record = await run(spawner, folder)
    assert (record["cause"], record["failure"]["kind"]) == ("launch-failed", "log")
    assert not (tmp_path / "ran").exists()


async def test_a_launch_that_cannot_be_read_is_a_failed_launch(spawner: Spawner, folder: TaskFolder) -> None:
    folder.prepare(SPEC)
    (folder.path / "launch.json").write_text("{")
    record = await run(spawner, folder)
    assert record["cause"] == "launch-failed"
    assert "JSONDecodeError" in record["failure"]["detail"]


async def test_a_supervisor_that_cannot_begin_is_a_failed_launch(
    spawner: Spawner, folder: TaskFolder
) -> None:
    folder.prepare(SPEC)
    folder.control.unlink()
    folder.control.mkdir()
    record = await run(spawner, folder)
    assert record["cause"] == "launch-failed"
    assert "IsADirectoryError" in record["failure"]["detail"]


@pytest.mark.parametrize("disk", ["slow", "broken"])
def test_a_command_does_not_run_before_its_launch_is_durable(folder: TaskFolder, disk: str) -> None:
    folder.prepare({**SPEC, "mounts": [("/tmp", "mounted")]})  # noqa: S108 (any folder)
    program = f"""
import os, sys, time
from pathlib import Path
from pai_scheduler.engine.process.supervisor import supervise
from pai_scheduler.engine.process.task_folder import TaskFolder

keep_taken, folder = TaskFolder.keep_taken, Path({str(folder.path)!r})

def slowly(files):
    time.sleep(0.3)
    print(os.listdir(folder / "work"), (folder / "log" / "stdout").read_bytes())
    if {disk!r} == "broken":
        raise OSError(5, "the disk is broken")
    keep_taken(files)

TaskFolder.keep_taken = slowly
supervise(folder, folder / "doorbell")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(done.stdout.splitlines()) == {"[] b''"}
    phase, record = folder.read()
    assert phase is TaskPhase.ENDED
    if disk == "broken":
        assert record["cause"] == "launch-failed"
        assert not TaskLog(folder.log).read("stdout")
    else:
        assert record["cause"] == "exited"
        assert TaskLog(folder.log).read("stdout") == b"ran\n"


async def test_what_starts_supervisors_and_always_dies_is_given_up_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, spawner: Spawner
) -> None:
    monkeypatch.setattr(spawner_module, "_BOOT", "raise SystemExit(3)")
    for _ in range(5):
        process = await spawner.start()
        await process.wait()
        await eventually(lambda: spawner._process is None, "its end is seen")
    with pytest.raises(EngineError, match="ends at once"):
        await spawner.start()


async def test_a_supervisor_knows_no_secret_of_the_service(
    spawner: Spawner, folder: TaskFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "of-the-service")
    command = "tr '\\0' '\\n' < /proc/$PPID/environ; echo ran"
    folder.prepare({**SPEC, "argv": ["/bin/sh", "-c", command]})
    await run(spawner, folder)
    seen = TaskLog(folder.log).read("stdout")
    assert seen.endswith(b"ran\n")
    assert b"of-the-service" not in seen
