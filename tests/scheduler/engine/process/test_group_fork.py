"""Forking into a cgroup, a real one where this machine has them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.engine.process import task_cgroup
from pai_scheduler.engine.process.task_cgroup import TaskGroup, fork_into


@pytest.fixture
def group(tmp_path: Path) -> Iterator[TaskGroup]:
    cgroups = Cgroups.find(tmp_path)
    specs = cgroups.plan("pai-j-0-main-0", cpus=1, memory_mb=100, pids=20)
    if not specs:
        if os.environ.get("CI") == "true":
            pytest.fail("there are no cgroups")
        pytest.skip("cgroups: this machine has none")
    group = TaskGroup(specs)
    group.make()
    yield group
    group.end(5)
    group.remove()
    cgroups.remove()


def child_of(fork: Callable[[], int], then: Callable[[], None]) -> tuple[int, int]:
    """Fork, have the child do something, and give its number and its exit code."""
    if (pid := fork()) == 0:
        try:
            then()
            os._exit(7)
        finally:
            os._exit(1)
    return pid, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_a_forked_command_is_in_all_groups_when_it_has_joined(group: TaskGroup) -> None:
    def join() -> None:
        group.join()
        for path in group._paths:
            assert str(os.getpid()) in (path / "cgroup.procs").read_text().split()

    _, code = child_of(group.fork, join)
    assert code == 7


def test_the_child_has_memory_and_a_number_of_its_own(group: TaskGroup) -> None:
    parent, here = os.getpid(), [1]

    def change() -> None:
        here.append(2)
        assert (os.getppid(), os.getpid() != parent) == (parent, True)
        time.sleep(0)  # (calls the kernel with the interpreter's lock given up and taken again)

    pid, code = child_of(group.fork, change)
    assert (code, here, pid != parent) == (7, [1], True)


def test_where_the_kernel_cannot_fork_into_a_group_the_child_goes_there_by_itself(
    group: TaskGroup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> int:
        raise OSError(38, "Function not implemented", path)

    monkeypatch.setattr(task_cgroup, "fork_into", refuse)

    def join() -> None:
        group.join()
        for path in group._paths:
            assert str(os.getpid()) in (path / "cgroup.procs").read_text().split()

    _, code = child_of(group.fork, join)
    assert code == 7


def test_a_folder_that_is_no_cgroup_is_refused_and_nothing_is_forked(tmp_path: Path) -> None:
    before = os.getpid()
    with pytest.raises(OSError, match=str(tmp_path)):
        fork_into(str(tmp_path))
    assert os.getpid() == before
