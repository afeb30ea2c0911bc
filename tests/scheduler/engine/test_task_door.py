"""The door of a task: one server holds it, and who looks sees whether it is alive."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from pai_scheduler.engine import procfs, task_door
from pai_scheduler.engine.task_door import Door, DoorKeeper


@pytest.fixture
def held(tmp_path: Path) -> DoorKeeper:
    keeper = DoorKeeper.hold(tmp_path)
    assert keeper is not None
    return keeper


def test_where_there_never_was_a_server_there_is_none(tmp_path: Path) -> None:
    assert task_door.look(tmp_path) == Door(False, {})
    task_door.forget(tmp_path)


def test_what_a_server_says_is_seen_while_it_lives_and_after(tmp_path: Path, held: DoorKeeper) -> None:
    assert task_door.look(tmp_path) == Door(True, {})
    held.tell({"port": 5})
    assert task_door.look(tmp_path) == Door(True, {"port": 5})
    task_door.forget(tmp_path)
    assert task_door.look(tmp_path) == Door(True, {"port": 5})
    os.close(held._file)
    assert task_door.look(tmp_path) == Door(False, {"port": 5})
    task_door.forget(tmp_path)
    assert task_door.look(tmp_path) == Door(False, {})


def test_a_second_server_does_not_get_it(tmp_path: Path, held: DoorKeeper) -> None:
    held.tell({"port": 5})
    assert DoorKeeper.hold(tmp_path) is None
    assert task_door.look(tmp_path) == Door(True, {"port": 5})


def test_who_looks_is_noticed_where_a_server_listens(tmp_path: Path, held: DoorKeeper) -> None:
    held.tell({"port": 5})
    os.utime(tmp_path / task_door.FILE, (1000, 1000))
    assert held.last_visit() == 1000
    task_door.look(tmp_path)
    assert held.last_visit() > 1000


def test_half_an_answer_is_none(tmp_path: Path) -> None:
    (tmp_path / task_door.FILE).write_text('{"por')
    assert task_door.look(tmp_path) == Door(False, {})


def test_a_server_is_dismissed_whether_it_listens_to_that_or_not(tmp_path: Path) -> None:
    """It has no task to serve, so it goes by itself; one that is stopped is ended."""
    for stopped in (False, True):
        pid = task_door.start(tmp_path)
        if stopped:
            os.kill(pid, signal.SIGSTOP)
        task_door.dismiss(pid)
        assert procfs.process(pid) is None
        with pytest.raises(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)


def test_a_server_says_what_keeps_it_from_serving(tmp_path: Path) -> None:
    pid = task_door.start(tmp_path)
    os.waitpid(pid, 0)
    assert "problem" in task_door.look(tmp_path).answer
    task_door.dismiss(pid)
