"""The engine's steps on task folders, one by one; `process/` tests them all together."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.logs.writer import TaskLogWriter
from pai_scheduler.engine.process import folder_operations
from pai_scheduler.engine.process.task_folder import LaunchSpec, TaskFolder, TaskPhase

SPEC: LaunchSpec = {"argv": ["/bin/true"], "env": {}, "groups": [], "memory_mb": 100}


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path / "tasks" / "pai-j-0-main-0")


@pytest.fixture
def ended(tmp_path: Path) -> Path:
    (tmp_path / "ended").mkdir()
    return tmp_path / "ended"


def test_there_is_nothing_to_see_where_nothing_was_done(folder: TaskFolder) -> None:
    assert folder_operations.look(folder) == (TaskPhase.NOTHING, {}, False)
    assert not folder.path.exists()


def test_a_lock_that_is_taken_means_that_the_task_runs(folder: TaskFolder) -> None:
    folder_operations.prepare(folder, SPEC, [])
    lock = folder.lock()
    assert lock is not None
    assert folder_operations.look(folder).running
    assert folder_operations.prepare(folder, SPEC, []).running
    assert not folder_operations.without_supervisor([folder])
    os.close(lock)
    assert not folder_operations.look(folder).running
    assert folder_operations.without_supervisor([folder]) == [0]


def test_a_launched_task_whose_lock_is_free_is_lost(folder: TaskFolder) -> None:
    folder_operations.prepare(folder, SPEC, [])
    folder.take()
    folder.note({"pid": 7, "started": 1}, durably=False)
    seen = folder_operations.look(folder)
    assert seen.phase is TaskPhase.ENDED
    assert (seen.record["pid"], seen.record["cause"]) == (7, "lost")
    assert folder_operations.look(folder) == seen


def test_an_end_that_a_killed_supervisor_wrote_last_counts(folder: TaskFolder) -> None:
    folder_operations.prepare(folder, SPEC, [])
    folder.take()
    folder.note({"ended": 5, "cause": "exited", "exit_code": 4}, durably=False)
    assert folder_operations.look(folder) == (
        TaskPhase.ENDED,
        {"ended": 5, "cause": "exited", "exit_code": 4},
        False,
    )
    assert (folder.path / "exit.json").exists()


def test_what_is_killed_before_its_launch_is_not_prepared_any_more(folder: TaskFolder) -> None:
    killed = folder_operations.kill(folder, 10)
    assert (killed.phase, killed.record["cause"]) == (TaskPhase.ENDED, "killed")
    assert folder_operations.prepare(folder, SPEC, []) == killed
    assert not folder.take()


def test_what_cannot_be_started_is_given_up_for_good(folder: TaskFolder) -> None:
    folder_operations.prepare(folder, SPEC, [])
    refused = folder_operations.refuse(folder, "no process to be had")
    assert refused.record["failure"]["detail"] == "no process to be had"
    assert folder_operations.prepare(folder, SPEC, []) == refused


def test_a_task_that_runs_is_not_released(folder: TaskFolder, ended: Path) -> None:
    folder_operations.prepare(folder, SPEC, [])
    folder.take()
    lock = folder.lock()
    assert lock is not None
    assert not folder_operations.release(folder, ended)
    assert folder.work.exists()
    os.close(lock)
    assert folder_operations.release(folder, ended)
    assert not folder.work.exists()


def test_what_an_owner_took_rights_from_is_removed_all_the_same(
    folder: TaskFolder, ended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder_operations.prepare(folder, SPEC, [])
    deep = folder.work / "deep"
    deep.mkdir()
    (deep / "file").write_text("")
    deep.chmod(0)
    folder_operations.kill(folder, 0)
    rmtree = shutil.rmtree

    def as_anybody(path: Path) -> None:  # root's rights need none
        if deep.exists() and deep.stat().st_mode & 0o700 == 0:
            raise PermissionError(path)
        rmtree(path)

    monkeypatch.setattr(shutil, "rmtree", as_anybody)
    assert folder_operations.release(folder, ended)
    assert not folder.work.exists()


@pytest.mark.parametrize("instead", ["link", "link to nothing", "file"])
def test_what_a_task_put_in_place_of_its_folder_is_removed_and_nothing_behind_it(
    folder: TaskFolder, ended: Path, tmp_path: Path, instead: str
) -> None:
    kept = tmp_path / "somebody's"
    kept.mkdir()
    (kept / "file").write_text("kept")
    ended_task(folder)
    for place in (folder.work, folder.private):
        shutil.rmtree(place, ignore_errors=True)
        if instead == "file":
            place.write_text("")
        else:
            place.symlink_to(kept if instead == "link" else tmp_path / "nothing")
    assert folder_operations.release(folder, ended)
    assert not folder.path.exists()
    assert [one.name for one in (ended / folder.path.name).iterdir()].count(folder.work.name) == 0
    assert (kept / "file").read_text() == "kept"


def ended_task(folder: TaskFolder) -> None:
    """Have a task that wrote something and ended."""
    folder_operations.prepare(folder, SPEC, [])
    (folder.work / "scratch").write_text("x")
    writer = TaskLogWriter(folder.log)
    writer.append(0, b"kept", 1)
    writer.close()
    folder.take()
    folder.finish({"ended": 1, "cause": "exited", "exit_code": 3})


def test_a_released_task_is_at_one_place_whenever_its_release_is_cut_off(
    folder: TaskFolder, ended: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = TaskLog(folder.log, ended / folder.path.name / "log")
    ended_task(folder)
    cut_off = 0
    for steps in range(100):  # killed before its first step, its second …
        with monkeypatch.context() as patch:
            _kill_after(patch, steps)
            with contextlib.suppress(KilledError):
                assert folder_operations.release(folder, ended)
                break
        cut_off += 1
        assert folder.path.exists() != (ended / folder.path.name).exists()
        assert folder_operations.look(folder).record["exit_code"] == 3
        assert log.read("all") == b"kept"
    assert cut_off > 5
    moved = TaskFolder(ended / folder.path.name)
    assert folder_operations.look(moved).record["exit_code"] == 3
    assert log.read("all") == b"kept"
    assert not moved.work.exists()
    assert folder_operations.release(folder, ended)


class KilledError(BaseException):
    pass


def _kill_after(patch: pytest.MonkeyPatch, steps: int) -> None:
    """Let so many changes of the disk pass, and cut off before the next."""
    left = iter(range(steps))

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def step(*args: object, **options: object) -> object:
            if next(left, None) is None:
                raise KilledError
            return real(*args, **options)

        return step

    for module, name in [(os, "unlink"), (os, "rmdir"), (os, "rename"), (os, "utime")]:
        patch.setattr(module, name, counted(getattr(module, name)))
