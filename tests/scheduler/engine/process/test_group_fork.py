"""Forking into a cgroup, a real one where this machine has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import indent

import pytest

from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.engine.process.task_cgroup import TaskGroup, fork_into
from pai_scheduler.engine.process.task_folder import GroupSpec


@pytest.fixture
def specs(tmp_path: Path) -> Iterator[Sequence[GroupSpec]]:
    cgroups = Cgroups.find(tmp_path)
    specs = cgroups.plan("pai-j-0-main-0", cpus=1, memory_mb=100, pids=20)
    if not specs:
        if os.environ.get("CI") == "true":
            pytest.fail("there are no cgroups")
        pytest.skip("cgroups: this machine has none")
    group = TaskGroup(specs)
    group.make()
    yield specs
    group.end(5)
    group.remove()
    cgroups.remove()


#: a process of one thread, which pytest's is not: a fork takes the locks of other threads along as they are
_PROGRAM = """
import json, os, sys, time
from pai_scheduler.engine.process import task_cgroup

group, parent, changed = task_cgroup.TaskGroup(json.loads(sys.argv[1])), os.getpid(), [1]
{before}
if (pid := group.fork()) == 0:
    try:
{child}
        os._exit(7)
    finally:
        os._exit(1)
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
print(code, changed, pid != parent)
"""

_JOIN = """\
group.join()
for path in group._paths:
    assert str(os.getpid()) in (path / "cgroup.procs").read_text().split()
"""


def forked(specs: Sequence[GroupSpec], child: str, before: str = "") -> str:
    """Fork in a process of its own, have the child do something; say how it went, as the parent sees it."""
    program = _PROGRAM.format(before=before, child=indent(child, " " * 8))
    command = [sys.executable, "-c", program, json.dumps(specs)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout


def test_a_forked_command_is_in_all_groups_when_it_has_joined(specs: Sequence[GroupSpec]) -> None:
    assert forked(specs, _JOIN) == "7 [1] True\n"


def test_the_child_has_memory_and_a_number_of_its_own(specs: Sequence[GroupSpec]) -> None:
    child = """\
changed.append(2)
assert (os.getppid(), os.getpid() != parent) == (parent, True)
time.sleep(0)  # (calls the kernel with the interpreter's lock given up and taken again)
"""
    assert forked(specs, child) == "7 [1] True\n"


def test_where_the_kernel_cannot_fork_into_a_group_the_child_goes_there_by_itself(
    specs: Sequence[GroupSpec],
) -> None:
    before = """\
def refuse(path):
    raise OSError(38, "Function not implemented", path)
task_cgroup.fork_into = refuse
"""
    assert forked(specs, _JOIN, before) == "7 [1] True\n"


def test_a_folder_that_is_no_cgroup_is_refused_and_nothing_is_forked(tmp_path: Path) -> None:
    before = os.getpid()
    with pytest.raises(OSError, match=str(tmp_path)):
        fork_into(str(tmp_path))
    assert os.getpid() == before
