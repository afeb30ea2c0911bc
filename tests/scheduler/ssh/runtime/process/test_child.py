"""Programs that are started in a task, and the ends of them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from pai_scheduler.ssh.runtime.process.child import Reaper, signal_group, start_on_pipes, start_on_terminal
from pai_scheduler.ssh.runtime.process.task import LocalTask
from pai_scheduler.ssh.runtime.process.terminal import open_terminal
from tests.scheduler.engine.lab import eventually
from tests.scheduler.ssh.runtime.process.test_task import make

SH = ["/bin/sh", "-c"]


@pytest.fixture
def task(tmp_path: Path) -> LocalTask:
    return make(tmp_path)


def test_a_program_on_pipes_has_the_tasks_folder_and_the_given_environment_only(task: LocalTask) -> None:
    env = {"ODD": "\udcff", "PATH": os.defpath}
    started = start_on_pipes(task, [*SH, 'pwd; echo "$ODD"; env | grep -c .'], env)
    out, err = started.outputs
    with open(out, "rb") as output:
        folder, odd, count = output.read().splitlines()
    assert (folder, odd) == (os.fsencode(task.work), b"\xff")
    # ODD, PATH, and what a shell adds
    assert int(count) <= 6
    assert started.process.wait() == 0
    for descriptor in (started.stdin, err):
        os.close(descriptor)


def test_a_program_that_cannot_be_started_leaves_nothing_open(task: LocalTask) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(FileNotFoundError):
        start_on_pipes(task, ["/no/such/program"], {})
    with pytest.raises(FileNotFoundError):
        start_on_terminal(task, ["/no/such/program"], {}, *open_terminal((80, 24, 0, 0), {}))
    with pytest.raises(ValueError, match="null byte"):
        start_on_pipes(task, [*SH, "a\0b"], {})
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_cgroup_that_is_gone_keeps_a_program_from_running(tmp_path: Path) -> None:
    task = make(tmp_path, groups=[{"path": "/sys/fs/cgroup/no-such-group", "files": []}])
    with pytest.raises(OSError, match="takes no more processes"):
        start_on_pipes(task, [*SH, "touch ran"], {})
    assert not (task.work / "ran").exists()


async def test_ends_are_told_once_and_nobody_is_left_a_zombie(task: LocalTask) -> None:
    reaper, ended = Reaper(), list[int]()
    for code in (0, 7):
        started = start_on_pipes(task, [*SH, f"exit {code}"], {})
        reaper.watch(started.process, lambda process=started.process: ended.append(process.returncode))  # type: ignore[misc]
        for descriptor in (started.stdin, *started.outputs):
            os.close(descriptor)
    await eventually(lambda: sorted(ended) == [0, 7], "both ends are told")
    assert asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)


def test_a_signal_reaches_the_whole_group_and_after_the_end_nobody(task: LocalTask) -> None:
    started = start_on_pipes(task, [*SH, "sh -c 'echo $$; exec sleep 1000'; echo no"], {})
    out, err = started.outputs
    with open(out, "rb") as output:
        output.readline()
        signal_group(started.process, signal.SIGKILL)
        # which ends when nobody has it any more
        assert output.read() == b""
    assert started.process.wait() == -signal.SIGKILL
    signal_group(started.process, signal.SIGKILL)
    for descriptor in (started.stdin, err):
        os.close(descriptor)
