"""What stays in a task when somebody leaves, and what does not when their connection is lost."""

from __future__ import annotations

import itertools
import signal
import subprocess
from collections.abc import Callable

import pytest

from tests.scheduler.ssh.runtime.container.boxes import PATIENCE, SESSION, Box, connect, eventually
from tests.testbed.machine import as_root

_numbers = itertools.count(700_001)


@pytest.fixture
def marker() -> str:
    """Return a number of seconds that no other test sleeps."""
    return str(next(_numbers))


def session_of(box: Box, marker: str) -> int:
    """Find the process of the SSH server in which the session with this in a command line is."""
    lines = {pid: (parent, line) for pid, parent, line in box.processes()}
    pid = box.running(marker)[0]
    while not lines[pid][1].startswith(SESSION):
        pid = lines[pid][0]
    return pid


def client_dies(box: Box, client: subprocess.Popen[str], marker: str) -> None:
    """End the client without a word; the network says that it is gone."""
    del box, marker
    client.kill()


def session_dies(box: Box, client: subprocess.Popen[str], marker: str) -> None:
    """End the server's process of the session, as it ends by itself when the network stays silent."""
    del client
    subprocess.run(as_root("kill", "-KILL", str(session_of(box, marker))), check=True)


@pytest.mark.parametrize("cut", [client_dies, session_dies])
@pytest.mark.parametrize("terminal", ["-T", "-tt"])
def test_a_lost_connection_leaves_nothing_behind(
    box: Box, marker: str, terminal: str, cut: Callable[[Box, subprocess.Popen[str], str], None]
) -> None:
    # a program, one that it started in the background, and one that has the shell's attention
    command = f"sleep {marker} & (sleep {marker}; true) & sleep {marker}; true"
    client = box.start_ssh(command, options=(terminal,))
    try:
        eventually(lambda: len([line for _, _, line in box.processes() if line == f"sleep {marker}"]) == 3)
        cut(box, client, marker)
        eventually(lambda: not box.running(marker))
    finally:
        client.kill()
        client.communicate(timeout=PATIENCE)


@pytest.mark.parametrize("how", ["nohup", "setsid"])
def test_what_was_sent_its_own_way_survives_a_lost_connection(box: Box, marker: str, how: str) -> None:
    own_way = f"{how} sleep {marker}.1 >/dev/null 2>&1 </dev/null & echo $!"
    client = box.start_ssh(f"{own_way}; sleep {marker}; true", options=("-T",))
    try:
        assert client.stdout is not None
        number = int(client.stdout.readline())
        # (while it is the shell still, it is not on its own way yet)
        for program in (f"sleep {marker}", f"sleep {marker}.1"):
            eventually(lambda program=program: any(line.endswith(program) for _, _, line in box.processes()))
        client_dies(box, client, marker)
        eventually(lambda: len(box.running(f"sleep {marker}")) == 1)
        assert box.ssh(f"kill {number}").returncode == 0
    finally:
        client.kill()
        client.communicate(timeout=PATIENCE)


def test_what_was_put_in_the_background_outlives_a_session_that_ends_in_order(box: Box, marker: str) -> None:
    done = box.ssh(f"sleep {marker} >/dev/null 2>&1 </dev/null & echo $!")
    eventually(lambda: not [line for _, _, line in box.processes() if line.startswith(SESSION)])
    assert len(box.running(f"sleep {marker}")) == 1
    assert box.ssh(f"kill {done.stdout}").returncode == 0


def test_sessions_leave_no_zombies(box: Box) -> None:
    box.ssh("for i in 1 2 3; do (true & true) & done; true")
    eventually(lambda: "Z" not in box.ssh("cat /proc/[0-9]*/stat | sed 's/.*) //' | cut -c 1").stdout)


@pytest.mark.parametrize("kind", ["nameless", "least"])
async def test_a_signal_that_the_client_sends_reaches_the_command(boxes: dict[str, Box], kind: str) -> None:
    async with await connect(boxes[kind]) as connection:
        process = await connection.create_process(
            "trap 'echo had it; exit 9' USR1; echo up; while :; do sleep 0.05; done"
        )
        assert await process.stdout.readline() == "up\n"
        process.send_signal("USR1")
        done = await process.wait(timeout=PATIENCE)
    assert (done.stdout, done.exit_status) == ("had it\n", 9)


async def test_a_terminals_keys_and_size_reach_what_runs_in_it(box: Box) -> None:
    async with await connect(box) as connection:
        process = await connection.create_process(
            "trap 'stty size' WINCH; trap 'echo interrupted; exit 3' INT; echo up; "
            "while :; do sleep 0.05; done",
            term_type="xterm",
            term_size=(80, 24),
        )
        assert await process.stdout.readline() == "up\r\n"
        process.change_terminal_size(132, 43)
        assert await process.stdout.readline() == "43 132\r\n"
        process.stdin.write("\x03")
        assert "interrupted" in await process.stdout.readline()
        assert (await process.wait(timeout=PATIENCE)).exit_status == 3


async def test_ctrl_c_interrupts_a_program_in_an_interactive_shell(box: Box) -> None:
    async with await connect(box) as connection:
        process = await connection.create_process(term_type="dumb")
        process.stdin.write("echo be''fore; sleep 4321\n")
        await process.stdout.readuntil("before\r\n")
        eventually(lambda: bool(box.running("sleep 4321")))
        process.stdin.write("\x03")
        process.stdin.write("echo af''ter; exit 4\n")
        await process.stdout.readuntil("after\r\n")
        assert (await process.wait(timeout=PATIENCE)).exit_status == 4


def test_a_signal_meant_for_a_session_is_not_ignored_from_its_start(box: Box) -> None:
    """A shell starts what runs in the background with SIGINT and SIGQUIT ignored, and we are that."""
    ignored = int(box.ssh("grep SigIgn /proc/self/status; true").stdout.split()[1], 16)
    numbers = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
    assert [number for number in numbers if ignored >> number - 1 & 1] == []
