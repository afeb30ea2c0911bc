"""Programs that are started in a task, and the ends of them."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path

import pytest

from pai_scheduler.ssh.runtime.process.server import (
    LocalTask,
    Reaper,
    signal_group,
    signal_name,
    signal_number,
    start,
)
from tests.scheduler.ssh.runtime.process.test_task import make

SH = ["/bin/sh", "-c"]


@pytest.fixture
def task(tmp_path: Path) -> LocalTask:
    return make(tmp_path)


def close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            stream.close()


def test_a_program_on_pipes_has_the_tasks_folder_and_the_given_environment_only(task: LocalTask) -> None:
    env = {"ODD": "\udcff", "PATH": os.defpath}
    process = start(task, [*SH, 'pwd; echo "$ODD"; env | grep -c .'], env)
    assert process.stdout
    folder, odd, count = process.stdout.read().splitlines()
    assert (folder, odd) == (os.fsencode(task.work), b"\xff")
    # ODD, PATH, and what a shell adds
    assert int(count) <= 6
    assert process.wait() == 0
    close(process)


def test_a_program_on_a_terminal_is_controlled_by_it(task: LocalTask) -> None:
    ours, theirs = os.openpty()
    process = start(task, [*SH, "echo here > /dev/tty"], {}, theirs)
    os.close(theirs)
    assert os.read(ours, 100) == b"here\r\n"
    assert process.wait() == 0
    os.close(ours)


def test_a_program_that_cannot_be_started_leaves_nothing_open(task: LocalTask) -> None:
    before = set(Path("/proc/self/fd").iterdir())
    with pytest.raises(FileNotFoundError):
        start(task, ["/no/such/program"], {})
    with pytest.raises(ValueError, match="null byte"):
        start(task, [*SH, "a\0b"], {})
    assert set(Path("/proc/self/fd").iterdir()) == before


def test_a_cgroup_that_is_gone_keeps_a_program_from_running(tmp_path: Path) -> None:
    task = make(tmp_path, groups=[{"path": "/sys/fs/cgroup/no-such-group", "files": []}])
    with pytest.raises(OSError, match="takes no more processes"):
        start(task, [*SH, "touch ran"], {})
    assert not (task.work / "ran").exists()


async def test_ends_are_told_and_nobody_is_left_a_zombie(task: LocalTask) -> None:
    reaper = Reaper()
    for code in (0, 7):
        process = start(task, [*SH, f"exit {code}"], {})
        await asyncio.wait_for(reaper.watch(process).wait(), 30)
        assert process.returncode == code
        close(process)
    assert asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)


async def test_a_program_that_ended_before_it_was_watched_is_told_too(task: LocalTask) -> None:
    process = start(task, [*SH, "exit 3"], {})
    await asyncio.to_thread(os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Reaper().watch(process).is_set()
    assert process.returncode == 3
    close(process)
    assert asyncio.get_running_loop().remove_signal_handler(signal.SIGCHLD)


def test_a_signal_reaches_the_whole_group_and_after_the_end_nobody(task: LocalTask) -> None:
    process = start(task, [*SH, "sh -c 'echo $$; exec sleep 1000'; echo no"], {})
    assert process.stdout
    assert process.stdout.read(100).strip().isdigit()
    signal_group(process, signal.SIGKILL)
    # which ends when nobody has it any more
    assert process.stdout.read() == b""
    assert process.wait() == -signal.SIGKILL
    signal_group(process, signal.SIGKILL)
    close(process)


@pytest.mark.parametrize(
    ("number", "name"), [(15, "TERM"), (24, "XCPU@openssh.com"), (40, "RTMIN+6@openssh.com")]
)
def test_signals_have_the_protocols_names_or_openssh_s(number: int, name: str) -> None:
    assert signal_name(number) == name


@pytest.mark.parametrize("name", ["NONE", "", "_DFL", "TERM; rm", "15", "CTRL_C_EVENT", "é"])
def test_signals_that_there_are_not_are_left_out(name: str) -> None:
    assert signal_number(name) is None
    assert signal_number("USR1") is signal.SIGUSR1
