"""Programs that a session starts in the task: in its folder, with its environment, in its cgroups."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import re
import signal
import subprocess
import termios
from collections.abc import Mapping, Sequence

from .task import LocalTask

#: The protocol's signals; another has a name of OpenSSH's making.
_SIGNALS = re.compile("ABRT|ALRM|FPE|HUP|ILL|INT|KILL|PIPE|QUIT|SEGV|TERM|USR1|USR2")


def start(
    task: LocalTask, argv: Sequence[str], env: Mapping[str, str], terminal: int | None = None
) -> subprocess.Popen[bytes]:
    """Start a program on a terminal (its programs' side), else on pipes; OSError, ValueError."""
    stream = subprocess.PIPE if terminal is None else terminal

    def become() -> None:
        task.group.join()
        if terminal is not None:
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    try:
        # between fork and exec nothing runs that could wait for what another thread had at the fork
        return subprocess.Popen(  # noqa: S603
            argv,
            bufsize=0,
            stdin=stream,
            stdout=stream,
            stderr=stream,
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


def signal_number(name: str) -> signal.Signals | None:
    """Return the signal that the protocol calls `name`; None where there is none."""
    found = getattr(signal, f"SIG{name}", None) if name.isalnum() else None
    return found if isinstance(found, signal.Signals) else None


def signal_name(number: int) -> str:
    """Return what the protocol, or OpenSSH, calls a signal."""
    try:
        name = signal.Signals(number).name.removeprefix("SIG")
    except ValueError:  # a real-time signal between those with names
        name = f"RTMIN+{number - signal.SIGRTMIN}"
    return name if _SIGNALS.fullmatch(name) else f"{name}@openssh.com"


class Reaper:
    """Reaps the programs that end, whether somebody still waits for them or not.

    Not asyncio's own processes: those are killed with the server, where a program may be meant to stay.
    """

    def __init__(self) -> None:
        self._running: dict[subprocess.Popen[bytes], asyncio.Event] = {}
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._look)

    def watch(self, process: subprocess.Popen[bytes]) -> asyncio.Event:
        """Return what is set once the program has ended; its `returncode` is known by then."""
        ended = self._running[process] = asyncio.Event()
        self._look()
        return ended

    def _look(self) -> None:
        for process in list(self._running):
            if process.poll() is not None:
                self._running.pop(process).set()


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
