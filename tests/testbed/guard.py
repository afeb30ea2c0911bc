"""Whatever way the tests end, nothing that they started goes on: a process above them waits and clears up.

A plugin of the root conftest. pytest runs in a child of the process that was called; that one becomes the
parent of all that loses its own (`PR_SET_CHILD_SUBREAPER`). SIGINT and SIGTERM end the tests as Ctrl-C does,
with what their fixtures do at their end; what is left then is killed. The testbed's Docker Engine is ended by
the last who used it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker.errors import DockerException

from tests.testbed.docker import end_unused, private_daemon
from tests.testbed.machine import CannotError, as_root, say

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD}
#: What `si_code` is of a signal that somebody sent; Ctrl-C at a terminal reaches the tests by itself.
_SI_USER = 0
_programs = ctypes.CDLL(None, use_errno=True)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> int | None:
    """Run the tests in a child, unless we are in it already or are a function in another program."""
    if hasattr(config, "workerinput") or not _is_the_program() or not sys.platform.startswith("linux"):
        return None
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    # (who is started in the background by a shell has SIGINT ignored)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    tests = os.fork()
    if tests == 0:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return None
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)  # (what is ignored is not waited for either)
    code = _wait(tests)
    clear_up()
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    return code


def clear_up() -> None:
    """Kill every process below this one, but for the testbed's Docker Engine while others use it."""
    spared = str(private_daemon().exec_root / "exec")
    while left := [pid for pid in _below(os.getpid(), spared) if not _is_zombie(pid)]:
        for pid in left:
            _kill(pid)
        _reap()
    try:
        end_unused(private_daemon())
    except (CannotError, DockerException) as error:
        say(str(error))
    _reap()


def _is_the_program() -> bool:
    """Return whether pytest was called from a command line."""
    spec = getattr(sys.modules["__main__"], "__spec__", None)
    return (spec is not None and spec.name == "pytest.__main__") or Path(sys.argv[0]).name == "pytest"


def _wait(tests: int) -> int:
    """Wait for the tests' process and hand on signals to it; give the exit code."""
    asked = 0
    while True:
        code = _reap(tests)
        if code is not None:
            return code
        told = signal.sigwaitinfo(_SIGNALS)
        number = signal.Signals(told.si_signo)
        if number is signal.SIGCHLD:
            continue
        asked += 1
        if asked > 2:
            os.kill(tests, signal.SIGKILL)
        elif number is not signal.SIGINT or told.si_code == _SI_USER:
            os.kill(tests, signal.SIGINT)


def _reap(awaited: int | None = None) -> int | None:
    """Take note of all that ended; give the exit code of the awaited one, once it has."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == awaited:
            ended = os.waitstatus_to_exitcode(status)
            code = ended if ended >= 0 else 128 - ended


def _below(pid: int, spared: str) -> Iterator[int]:
    """Go through all descendants, without those whose command line has that text, and theirs."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            children.setdefault(parent, []).append(int(entry.name))
    waiting = list(children.get(pid, ()))
    while waiting:
        found = waiting.pop()
        if spared in _command(found):
            continue
        waiting += children.get(found, ())
        yield found


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    except PermissionError:
        subprocess.run(as_root("kill", "-9", str(pid)), check=False, capture_output=True)


def _prctl(option: int, value: int) -> None:
    if _programs.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")
