"""Task folders that are made ahead."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.process import folder_operations, task_folder
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.process.task_folder import LaunchSpec, SpareFolders, TaskFolder, TaskPhase
from pai_scheduler.testing.lab import Lab, eventually

SPEC: LaunchSpec = {"argv": ["/bin/true"], "env": {}, "groups": [], "memory_mb": 100}


@pytest.fixture
def spare(tmp_path: Path) -> SpareFolders:
    spare = SpareFolders(tmp_path / "spare", 2)
    spare.open()
    return spare


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    (tmp_path / "tasks").mkdir()
    return TaskFolder(tmp_path / "tasks" / "pai-j-0-main-0")


def inodes(folder: Path) -> set[int]:
    return {Path(above, name).stat().st_ino for above, _, names in os.walk(folder) for name in names}


def test_a_task_in_one_of_them_is_prepared_without_another_file(
    spare: SpareFolders, folder: TaskFolder
) -> None:
    spare.fill()
    spare.give(folder.path)
    made = inodes(folder.path)
    assert folder.read() == (TaskPhase.NOTHING, {})
    assert folder_operations.prepare(folder, SPEC, []).phase is TaskPhase.PREPARED
    assert inodes(folder.path) == made
    assert folder.launch_spec() == SPEC
    assert folder.take()
    assert TaskLog(folder.log).read("all") == b""


def test_what_a_task_has_is_the_same_with_and_without_them(
    spare: SpareFolders, folder: TaskFolder, tmp_path: Path
) -> None:
    spare.fill()
    spare.give(folder.path)
    other = TaskFolder(tmp_path / "tasks" / "pai-j-0-main-1")
    for one in (folder, other):
        folder_operations.prepare(one, SPEC, [])
    logs = ("log/stdout", "log/stderr", "log/index")
    seen = [
        {
            (str(path.relative_to(one.path)), path.stat().st_mode, path.stat().st_size)
            for path in one.path.rglob("*")
            if str(path.relative_to(one.path)) not in logs  # the supervisor's, where there are none
        }
        for one in (folder, other)
    ]
    for seen_of_one in seen:
        assert {name for name, _, _ in seen_of_one} == {
            *("work", "log", "control", "lock", "launch.json", "prepared")
        }
    assert {(name, mode) for name, mode, size in seen[0]} == {(name, mode) for name, mode, _ in seen[1]}


def test_a_folder_that_is_there_stays_as_it_is(spare: SpareFolders, folder: TaskFolder) -> None:
    folder.path.mkdir()
    spare.fill()
    spare.give(folder.path)
    assert list(folder.path.iterdir()) == []


def test_without_one_left_nothing_is_given(spare: SpareFolders, folder: TaskFolder) -> None:
    spare.give(folder.path)
    assert not folder.path.exists()


def test_there_are_never_more_than_were_asked_for(spare: SpareFolders, tmp_path: Path) -> None:
    spare.fill()
    spare.fill()
    assert len(list((tmp_path / "spare").iterdir())) == 2


def test_what_a_killed_service_left_goes_at_the_next_start(spare: SpareFolders, tmp_path: Path) -> None:
    spare.fill()
    (tmp_path / "spare" / "half").mkdir()
    SpareFolders(tmp_path / "spare", 2).open()
    assert list((tmp_path / "spare").iterdir()) == []


def test_one_that_another_service_has_removed_is_no_error(
    spare: SpareFolders, folder: TaskFolder, tmp_path: Path
) -> None:
    spare.fill()
    SpareFolders(tmp_path / "spare", 2).open()
    spare.give(folder.path)
    assert folder_operations.prepare(folder, SPEC, []).phase is TaskPhase.PREPARED


def test_a_full_disk_leaves_no_half_of_one(
    spare: SpareFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_folder: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(task_folder, "TaskLogWriter", fail)
    spare.fill()
    assert list((tmp_path / "spare").iterdir()) == []


async def test_each_start_takes_one_and_others_are_made(tmp_path: Path) -> None:
    engine = ProcessEngine(tmp_path)
    await engine.start()
    lab = await Lab.over(engine, "local/any")
    spare = tmp_path / "spare"
    await eventually(lambda: len(list(spare.iterdir())) == 8, "there are as many as there should be")
    before = inodes(spare)
    task = await lab.start("echo ran; sleep 1000")
    await lab.printed(task, "ran\n")
    assert inodes(tmp_path / "tasks" / task.name) <= before
    await eventually(lambda: len(list(spare.iterdir())) == 8, "another one is made")
    await lab.clean()
    await engine.close()
