"""`pai ssh` and `pai exec` in real tasks, through the real gateway."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.scheduler.client.cli.pai import PAI, environ_for
from tests.scheduler.conftest import run_job
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import run_pai

BYTES = bytes(range(256)) * 12_000


@pytest.fixture
def pai(entered: RunningScheduler) -> Pai:
    """Run `pai` as alice, with bytes in and out."""
    return Pai(entered)


class Pai:
    """`pai` at a pipe, and at a terminal."""

    def __init__(self, scheduler: RunningScheduler) -> None:
        self.scheduler = scheduler

    def __call__(self, *words: str, stdin: bytes = b"", **environ: str) -> subprocess.CompletedProcess[bytes]:
        return run_pai(words, environ_for(self.scheduler, **environ), stdin)

    @contextmanager
    def at_terminal(self, *words: str) -> Iterator[Terminal]:
        """Run it on a terminal of 100 columns and 30 rows."""
        keyboard, screen = pty.openpty()
        fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        before = termios.tcgetattr(screen)
        environ = environ_for(self.scheduler, TERM="vt220", LANG="C.UTF-8")
        # they count more than the terminal's own size, and workers of pytest-xdist have them
        for name in ("COLUMNS", "LINES"):
            environ.pop(name, None)
        process = subprocess.Popen(
            [PAI, *words],
            stdin=screen,
            stdout=screen,
            stderr=screen,
            env=environ,
            start_new_session=True,
        )
        try:
            yield Terminal(process, keyboard, screen)
            assert termios.tcgetattr(screen) == before, "the terminal is not as it was"
        finally:
            process.kill()
            process.wait()
            os.close(keyboard)
            os.close(screen)


class Terminal:
    """What somebody at a terminal sees and types."""

    def __init__(self, process: subprocess.Popen[bytes], keyboard: int, screen: int) -> None:
        self.process, self._keyboard, self._screen, self._seen = process, keyboard, screen, ""

    def sees(self, pattern: str) -> re.Match[str]:
        """Read until this stands there; what was read before is forgotten."""
        while not (match := re.search(pattern, self._seen)):
            ready, _, _ = select.select([self._keyboard], [], [], 60)
            assert ready, f"{pattern} does not come after {self._seen!r}"
            self._seen += os.read(self._keyboard, 65536).decode()
        self._seen = self._seen[match.end() :]
        return match

    def types(self, text: str) -> None:
        os.write(self._keyboard, text.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Make the window another size, as a terminal does: its programs are told."""
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process.send_signal(signal.SIGWINCH)


def test_a_program_gets_its_arguments_as_they_are_and_gives_its_exit_code(pai: Pai) -> None:
    words = ["a  b", "$HOME", "it's", '"', "*", "", "--", "-x", "ä\n"]
    ran = pai("exec", "one", "--", "printf", "%s|", *words)
    assert (ran.returncode, ran.stdout.decode()) == (0, "".join(f"{word}|" for word in words))
    assert pai("exec", "one", "--", "sh", "-c", "exit 7").returncode == 7
    assert pai("exec", "one", "main-0", "--", "sh", "-c", "kill -9 $$").returncode == 137


def test_every_byte_passes_and_errors_stay_apart(pai: Pai) -> None:
    ran = pai("exec", "one", "--", "tee", "/dev/stderr", stdin=BYTES)
    assert (ran.returncode, ran.stdout == BYTES, ran.stderr == BYTES) == (0, True, True)


def test_a_line_of_shell_is_read_by_the_shell_in_the_tasks_environment(pai: Pai) -> None:
    ran = pai("ssh", "one", "--", "echo $((40 + 2)) $PAI_JOB_NAME;", "pwd")
    number, folder = ran.stdout.decode().splitlines()
    assert number == "42 one"
    assert folder.endswith("-main-0/work")


def test_a_shell_without_a_terminal_reads_a_script(pai: Pai) -> None:
    ran = pai("ssh", "one", stdin=b"echo task $PAI_TASK_INDEX\nexit 3\n")
    assert (ran.returncode, ran.stdout) == (3, b"task 0\n")


def test_every_task_of_a_job_is_told_apart_and_the_worst_exit_code_counts(pai: Pai) -> None:
    ran = pai("exec", "--all", "two", "--", "sh", "-c", "echo hi; printf oh >&2; exit $PAI_TASK_INDEX")
    assert ran.returncode == 1
    assert sorted(ran.stdout.splitlines()) == [b"main-0  hi", b"main-1  hi"]
    assert sorted(ran.stderr.splitlines()) == [
        b"Not 0 was the exit code in main-1 (1).",
        b"main-0  oh",
        b"main-1  oh",
    ]
    assert pai("exec", "--all", "one", "--", "true").returncode == 0


def test_a_closed_output_ends_it(pai: Pai) -> None:
    with subprocess.Popen(
        [PAI, "exec", "one", "--", "yes"],
        env=environ_for(pai.scheduler),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"y\n"
        process.stdout.close()
        process.wait(30)
        assert process.stderr.read() == b""


def test_an_interrupt_ends_the_command_there(pai: Pai) -> None:
    process = subprocess.Popen(
        [PAI, "exec", "one", "--", "sh", "-c", "echo $$; exec sleep 12345"],
        env=environ_for(pai.scheduler), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    number = int(process.stdout.readline())
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    for _ in range(300):
        # the process engine: a task's processes are this machine's
        if not os.path.exists(f"/proc/{number}"):  # noqa: PTH110
            return
        time.sleep(0.1)
    pytest.fail("the command runs on")


def test_an_interrupt_comes_as_one_to_what_listens_to_it(pai: Pai, tmp_path: Path) -> None:
    script = f"""
        trap '' HUP
        trap 'echo yes > {tmp_path}/interrupted; exit' INT
        echo up
        while :; do sleep 0.1; done
    """
    process = subprocess.Popen(
        [PAI, "exec", "one", "--", "sh", "-c", script],
        env=environ_for(pai.scheduler),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    for _ in range(300):
        if (tmp_path / "interrupted").exists():
            return
        time.sleep(0.1)
    pytest.fail("nothing came")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["two"], "Job two has several tasks: name one of main-0, main-1."),
        (["two", "main-7"], "No task main-7 of job two runs. Those that run: main-0, main-1."),
        (["one", "main"], "main is no task; write role and index, for example worker-0."),
    ],
)
def test_a_task_that_cannot_be_meant_is_said(pai: Pai, words: list[str], sentence: str) -> None:
    ran = pai("exec", *words, "--", "true")
    assert (ran.returncode, ran.stderr.decode().strip()) == (255, sentence)


def test_a_job_that_has_ended_waits_or_is_not_there_is_said(pai: Pai) -> None:
    run_job(pai.scheduler, "short")
    pai("stop", "short")
    ended = pai("ssh", "short", stdin=b"true\n")
    assert ended.returncode == 255
    assert b"Job short" in ended.stderr
    for name, command in (("first", "sleep 100000"), ("large", "true")):
        role = {"name": "main", "command": command, "cpuNumber": 60}
        job = json.dumps(hello_job(name, taskRoles=[role])).encode()
        assert pai("submit", "-", stdin=job).returncode == 0
    waits = pai("ssh", "large", stdin=b"")
    assert waits.returncode == 255
    assert b"Job large does not run yet: " in waits.stderr
    for name in ("large", "first"):
        pai("stop", name)
    assert pai("exec", "nothing", "--", "true").returncode == 255


def test_a_scheduler_without_a_gateway_says_so_in_the_users_language(scheduler: RunningScheduler) -> None:
    run_job(scheduler, "no-gateway")
    ran = Pai(scheduler)("exec", "no-gateway", "--", "true", LANG="zh_CN.UTF-8", LC_ALL="zh_CN.UTF-8")
    assert ran.returncode == 255
    assert "此调度器没有 SSH 网关。" in ran.stderr.decode()
    Pai(scheduler)("stop", "no-gateway")


def test_another_users_task_is_not_entered_but_an_administrator_may(pai: Pai) -> None:
    refused = pai("exec", "--user", "alice", "one", "--", "true", PAI_TOKEN="token-of-bob")
    assert refused.returncode == 255
    assert refused.stdout == b""
    entered = pai("exec", "--user", "alice", "one", "--", "echo", "in", PAI_TOKEN="token-of-root")
    assert (entered.returncode, entered.stdout) == (0, b"in\n")


def test_a_shell_on_a_terminal_has_its_keys_its_size_and_its_exit_code(pai: Pai) -> None:
    with pai.at_terminal("ssh", "one") as terminal:
        terminal.types("stty size; echo $TERM-; tty\n")
        terminal.sees(r"\s30 100\s+vt220-\s+/dev/pts/")
        terminal.resize(132, 43)
        # (what is typed may overtake the news of the size)
        terminal.types("until stty size | grep '43 132'; do sleep 0.1; done\n")
        terminal.sees(r"43 132\r\n")
        # ^C is for the command there
        terminal.types("sh -c 'echo $((6 * 7)); exec sleep 12345'\n")
        terminal.sees(r"\s42\s")
        terminal.types("\x03")
        terminal.sees(r"\^C")
        terminal.types("echo still $((1 + 1)) here\n")
        terminal.sees(r"still 2 here")
        terminal.types("exit 5\n")
        assert terminal.process.wait(30) == 5


def test_a_command_has_a_terminal_where_that_is_asked_for(pai: Pai) -> None:
    with pai.at_terminal(
        "exec", "-t", "one", "--", "sh", "-c", "test -t 0 && test -t 1 && echo both"
    ) as terminal:
        terminal.sees("both")
        assert terminal.process.wait(30) == 0
    with pai.at_terminal("exec", "one", "--", "sh", "-c", "test -t 0 || echo none") as terminal:
        terminal.sees("none")
        terminal.types("\x04")
        assert terminal.process.wait(30) == 0


def test_a_connection_is_cut_by_tilde_and_dot(pai: Pai) -> None:
    with pai.at_terminal("ssh", "one", "-t", "--", "echo up; cat") as terminal:
        terminal.sees("up")
        terminal.types("\r~.")
        assert terminal.process.wait(30) == 255


def test_a_terminal_is_as_before_when_pai_is_told_to_end(pai: Pai) -> None:
    with pai.at_terminal("ssh", "one", "-t", "--", "echo up; cat") as terminal:
        terminal.sees("up")
        terminal.process.terminate()
        assert terminal.process.wait(30) == 143


def test_a_command_without_the_two_dashes_is_no_command(pai: Pai) -> None:
    ran = pai("exec", "one", "main-0", "true")
    assert ran.returncode == 2
    assert b"write -- before the command" in ran.stderr
    assert pai("exec", "one").returncode == 2
