"""Programs that a session starts in the task: in its folder, with its environment, in its cgroups."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import termios
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .task import LocalTask


@dataclass(frozen=True, slots=True)
class StartedProgram:
    """A program, and our ends of what it reads and writes: of a terminal, one and the same."""

    process: subprocess.Popen[bytes]
    stdin: int
    #: descriptor: False for what it prints, True for its errors
    outputs: Mapping[int, bool]


def start_on_terminal(
    task: LocalTask, argv: Sequence[str], env: Mapping[str, str], ours: int, theirs: int
) -> StartedProgram:
    """Start a program on a terminal, of which only `ours` stays open; OSError where that fails."""
    try:
        process = _start(task, argv, env, (theirs, theirs, theirs), terminal=True)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    return StartedProgram(process, ours, {ours: False})


def start_on_pipes(task: LocalTask, argv: Sequence[str], env: Mapping[str, str]) -> StartedProgram:
    """Start a program that reads and writes pipes; OSError where that fails."""
    pairs = [os.pipe() for _ in range(3)]
    (stdin, our_stdin), (our_stdout, stdout), (our_stderr, stderr) = pairs
    try:
        process = _start(task, argv, env, (stdin, stdout, stderr), terminal=False)
    except BaseException:
        for descriptor in (our_stdin, our_stdout, our_stderr):
            os.close(descriptor)
        raise
    finally:
        for descriptor in (stdin, stdout, stderr):
            os.close(descriptor)
    return StartedProgram(process, our_stdin, {our_stdout: False, our_stderr: True})


def _start(
    task: LocalTask,
    argv: Sequence[str],
    env: Mapping[str, str],
    streams: tuple[int, int, int],
    *,
    terminal: bool,
) -> subprocess.Popen[bytes]:
    def become() -> None:
        task.group.join()
        if terminal:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    stdin, stdout, stderr = streams
    try:
        # between fork and exec nothing runs that could wait for what another thread had at the fork
        return subprocess.Popen(  # noqa: S603
            argv,
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            cwd=task.work,
            env={_bytes(name): _bytes(value) for name, value in env.items()},
            start_new_session=True,
            preexec_fn=become,
        )
    except subprocess.SubprocessError:  # all that it says of `become`
        raise ProcessLookupError(errno.ESRCH, "The task takes no more processes; it may be ending") from None


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Send a signal to a program and the processes of its group, unless it has ended."""
    # that it was not waited for keeps its number from becoming another's
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, number)


class Reaper:
    """Reaps the programs that end, and keeps how each ended."""

    def __init__(self) -> None:
        self._waiting: dict[subprocess.Popen[bytes], Callable[[], None]] = {}
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._look)

    def watch(self, process: subprocess.Popen[bytes], ended: Callable[[], None]) -> None:
        """Call `ended` once the program has; its `returncode` is set by then."""
        self._waiting[process] = ended
        self._look()

    def _look(self) -> None:
        for process in list(self._waiting):
            if process.poll() is not None:
                asyncio.get_running_loop().call_soon(self._waiting.pop(process))


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
