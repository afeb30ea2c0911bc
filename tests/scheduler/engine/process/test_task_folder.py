"""A task's folder: it goes one way only, and what it says outlives crashes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pai_scheduler.engine.process.task_folder import RECORD_SIZE, LaunchSpec, TaskFolder, TaskPhase, ring

SPEC: LaunchSpec = {"argv": ["/bin/true"], "env": {"A": "你好"}, "groups": [], "memory_mb": 100}


@pytest.fixture
def folder(tmp_path: Path) -> TaskFolder:
    path = tmp_path / "tasks" / "pai-j-0-main-0"
    path.mkdir(parents=True)
    return TaskFolder(path)


def test_a_task_goes_from_nothing_to_its_end(folder: TaskFolder) -> None:
    assert folder.read() == (TaskPhase.NOTHING, {})
    folder.prepare(SPEC)
    assert folder.read() == (TaskPhase.PREPARED, {})
    assert folder.launch_spec() == SPEC
    assert folder.take()
    assert folder.read() == (TaskPhase.LAUNCHED, {})
    folder.note({"pid": 7, "started": 1}, durably=False)
    assert folder.read() == (TaskPhase.LAUNCHED, {"pid": 7, "started": 1})
    folder.finish({"pid": 7, "started": 1, "ended": 2, "cause": "exited", "exit_code": 3})
    phase, record = folder.read()
    assert (phase, record["exit_code"]) == (TaskPhase.ENDED, 3)


def test_a_task_is_taken_once(folder: TaskFolder) -> None:
    assert not folder.take()
    folder.prepare(SPEC)
    assert folder.take()
    assert not folder.take()


def test_a_task_that_was_never_prepared_can_be_over_and_is_not_taken_then(folder: TaskFolder) -> None:
    folder.finish({"ended": 1, "cause": "killed", "exit_code": None})
    assert folder.read()[0] is TaskPhase.ENDED
    assert not folder.take()


def test_preparing_again_after_a_crash_starts_afresh(folder: TaskFolder) -> None:
    folder.prepare(SPEC)
    folder.prepare({**SPEC, "argv": ["/bin/false"]})
    assert folder.launch_spec()["argv"] == ["/bin/false"]
    assert folder.take()


def test_the_space_for_the_end_is_taken_before_the_start(folder: TaskFolder) -> None:
    folder.prepare(SPEC)
    inode = (folder.path / "prepared").stat().st_ino
    folder.take()
    folder.finish({"ended": 1, "cause": "exited", "exit_code": 0})
    end = (folder.path / "exit.json").stat()
    assert (end.st_ino, end.st_size) == (inode, RECORD_SIZE)
    assert json.loads((folder.path / "exit.json").read_text())["exit_code"] == 0


@pytest.mark.parametrize("content", [b"", b"\0" * RECORD_SIZE, b'{"pid": 1, "sta'])
def test_a_spoilt_record_is_no_record(folder: TaskFolder, content: bytes) -> None:
    (folder.path / "launched").write_bytes(content)
    assert folder.read() == (TaskPhase.LAUNCHED, {})


def test_a_spoilt_end_is_a_lost_task(folder: TaskFolder) -> None:
    (folder.path / "exit.json").write_bytes(b"\0" * RECORD_SIZE)
    phase, record = folder.read()
    assert (phase, record["cause"], record["exit_code"]) == (TaskPhase.ENDED, "lost", None)


def test_the_lock_is_one_holders_until_it_is_closed(folder: TaskFolder) -> None:
    lock = folder.lock()
    assert lock is not None
    assert TaskFolder(folder.path).lock() is None
    os.close(lock)
    again = folder.lock()
    assert again is not None
    os.close(again)


def test_a_signal_to_the_service_never_waits_for_it(tmp_path: Path) -> None:
    assert not ring(tmp_path / "nothing", "name")
    os.mkfifo(tmp_path / "bell")
    assert not ring(tmp_path / "bell", "name")
    bell = os.open(tmp_path / "bell", os.O_RDWR | os.O_NONBLOCK)
    assert ring(tmp_path / "bell", "name")
    assert os.read(bell, 100) == b"name\n"
    while ring(tmp_path / "bell", "x" * 4000):
        pass  # until it is full
    os.close(bell)
