"""The runtime's program sends a signal to what one session started, and to nothing else."""

from __future__ import annotations

import itertools

import asyncssh
import pytest

from pai_scheduler.engine.docker.runtime import SIGNAL
from pai_scheduler.ssh.task_files import SESSION_VARIABLE
from tests.scheduler.ssh.runtime.container.boxes import PATIENCE, Box, connect, eventually

_numbers = itertools.count(800_001)
TOKEN, OTHER = "0123456789abcdef", "fedcba9876543210"
#: says what it hears, and waits with something in the background; its variable is not its command's to see
COMMAND = (
    "trap 'echo got TERM; exit 7' TERM; sleep {marker} & "
    f"echo up ${{{{{SESSION_VARIABLE}-none}}}}; wait; echo no"
)


@pytest.fixture
def marker() -> str:
    """Return a number of seconds that no other test sleeps."""
    return str(next(_numbers))


async def begin(
    connection: asyncssh.SSHClientConnection, marker: str, token: str = TOKEN, terminal: str | None = None
) -> asyncssh.SSHClientProcess[str]:
    """Start `COMMAND` in a session of that name, and wait until it is up."""
    process = await connection.create_process(
        COMMAND.format(marker=marker), env={SESSION_VARIABLE: token}, term_type=terminal
    )
    assert (await process.stdout.readline()).strip() == "up none"
    return process


@pytest.mark.parametrize("terminal", [None, "xterm"])
async def test_a_session_and_the_processes_of_its_group_are_sent_a_signal(
    box: Box, marker: str, terminal: str | None
) -> None:
    async with await connect(box) as connection:
        process = await begin(connection, marker, terminal=terminal)
        sent = await connection.run(f"{SIGNAL} {TOKEN} TERM", timeout=PATIENCE)
        assert (sent.exit_status, sent.stdout, sent.stderr) == (0, "", "")
        ended = await process.wait(timeout=PATIENCE)
    assert isinstance(ended.stdout, str)
    assert (ended.stdout.splitlines()[-1], ended.exit_status) == ("got TERM", 7)
    eventually(lambda: not box.running(f"sleep {marker}"))


async def test_other_sessions_and_the_tasks_command_are_left_alone(debian: Box, marker: str) -> None:
    own = debian.running("sleep 1000000")
    assert own
    async with await connect(debian) as connection:
        one = await begin(connection, marker)
        other = await begin(connection, marker, OTHER)
        assert (await connection.run(f"{SIGNAL} {TOKEN} KILL", timeout=PATIENCE)).exit_status == 0
        assert (await one.wait(timeout=PATIENCE)).exit_status == 128 + 9
        assert debian.running("sleep 1000000") == own
        await connection.run(f"{SIGNAL} {OTHER} TERM", timeout=PATIENCE)
        assert (await other.wait(timeout=PATIENCE)).exit_status == 7


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"{OTHER} TERM", 1),
        ("'' TERM", 2),
        (f"../sessions/{TOKEN} TERM", 2),
        (f"{TOKEN} ''", 2),
        (f"{TOKEN} 'TERM 1'", 2),
        (f"{TOKEN} -1", 2),
        (f"{TOKEN} NONE", 1),
    ],
)
async def test_a_wrong_name_of_a_session_or_signal_sends_none(
    debian: Box, marker: str, words: str, code: int
) -> None:
    async with await connect(debian) as connection:
        process = await begin(connection, marker)
        assert (await connection.run(f"{SIGNAL} {words}", timeout=PATIENCE)).exit_status == code
        assert debian.running(f"sleep {marker}")
        await connection.run(f"{SIGNAL} {TOKEN} TERM", timeout=PATIENCE)
        assert (await process.wait(timeout=PATIENCE)).exit_status == 7


async def test_a_session_that_has_ended_is_forgotten_and_its_number_is_nobody_elses(
    debian: Box, marker: str
) -> None:
    place = f"/run/pai/ssh/sessions/{TOKEN}"
    async with await connect(debian) as connection:
        # as if its number were another's now: of a process that began at another time
        process = await begin(connection, marker)
        await connection.run(f"read -r leader begun < {place}; echo $leader 1 > {place}")
        assert (await connection.run(f"{SIGNAL} {TOKEN} TERM", timeout=PATIENCE)).exit_status == 1
        assert debian.running(f"sleep {marker}")
        await connection.run(f"read -r leader begun < {place}; kill -TERM -- -$leader")
        assert (await process.wait(timeout=PATIENCE)).exit_status == 7
        listed = await connection.run("ls /run/pai/ssh/sessions", env={SESSION_VARIABLE: OTHER})
        assert listed.stdout == f"{OTHER}\n"


async def test_a_session_without_a_good_name_is_a_session_all_the_same(debian: Box) -> None:
    async with await connect(debian) as connection:
        for name in ("", "../environment", "a b", "$(id)"):
            ran = await connection.run("echo in", env={SESSION_VARIABLE: name}, timeout=PATIENCE)
            assert (ran.stdout, ran.stderr, ran.exit_status) == ("in\n", "", 0)
        ran = await connection.run("grep -c export /run/pai/ssh/environment", timeout=PATIENCE)
        assert ran.exit_status == 0
