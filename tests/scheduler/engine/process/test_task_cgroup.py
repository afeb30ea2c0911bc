"""The cgroups of one task, real ones where this machine has them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.engine.process.task_cgroup import TaskGroup


@pytest.fixture
def group(tmp_path: Path) -> Iterator[TaskGroup]:
    cgroups = Cgroups.find(tmp_path)
    if cgroups.unlimited:
        if os.environ.get("CI") == "true":
            pytest.fail(str(cgroups.unlimited))
        pytest.skip(f"cgroups: {cgroups.unlimited}")
    group = TaskGroup(cgroups.plan("pai-j-0-main-0", cpus=1, memory_mb=100, pids=20))
    group.make()
    yield group
    group.end(5)
    group.remove()
    cgroups.remove()


def run_in(group: TaskGroup, script: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        ["bash", "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=group.join,
    )


def test_everybody_in_the_groups_is_ended_at_once_wherever_they_went(group: TaskGroup) -> None:
    process = run_in(group, "setsid sleep 1000 & sleep 1000 & echo ready; wait")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert process.pid in group.processes()
    assert group.end(patience=30)
    assert group.processes() == set()
    assert process.wait() == -9
    process.stdout.close()


def test_the_usage_of_a_cgroup_is_measured(group: TaskGroup) -> None:
    process = run_in(group, "x=$(head -c 10000000 /dev/zero | tr '\\0' x); echo ready; read; echo $x")
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    memory, cpu = group.memory_bytes(), group.cpu_seconds()
    assert memory is not None
    assert memory > 8_000_000
    assert cpu is None or cpu > 0
    assert group.oom_kills() == 0
    process.stdout.close()


def test_groups_are_removed_with_those_that_the_task_made_inside(group: TaskGroup, tmp_path: Path) -> None:
    del tmp_path
    for path in group._paths:
        (path / "inner").mkdir()
    group.remove()
    assert not any(path.exists() for path in group._paths)


def test_missing_cgroups_are_no_error() -> None:
    group = TaskGroup([])
    group.make()
    assert group.end(0)
    assert (group.processes(), group.oom_kills()) == (set(), 0)
    assert (group.memory_bytes(), group.cpu_seconds()) == (None, None)
    group.remove()
