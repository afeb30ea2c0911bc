"""The SSH server of one task of the process engine: how the service, the supervisor and the server meet.

The service asks the supervisor for the server (`SSH_ORDER`), so that it is the supervisor's child: it ends
with the task, and whatever it leaves behind is the supervisor's to reap. While it runs, the server holds the
lock of a file `ssh-server` in the task's folder, and says in it that it listens, or before it ends why it
cannot. Only small modules are imported: every supervisor loads this one.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple, TypedDict

#: in a task's folder
FILE = "ssh-server"

_ROOT = Path(__file__).parents[3]
#: Not the user's environment: the interpreter and what is installed with it are all that it needs.
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from pai_scheduler.ssh.runtime.process.program import main; main()"
)
_PR_SET_PDEATHSIG = 1
_GOODBYE_ATTEMPTS, _GOODBYE_PAUSE = 50, 0.01
_prctl = ctypes.CDLL(None).prctl


class ServerStatus(TypedDict, total=False):
    """Status of a server: it listens on `port`, or its `problem`; `taken`: the port is another's."""

    port: int
    problem: str
    taken: bool


class SshServerState(NamedTuple):
    """Observed state of a task's server; `alive`: it has the lock."""

    alive: bool
    answer: ServerStatus


def look(folder: Path) -> SshServerState:
    """See how a task's server is. One that listens is told that somebody comes, so that it stays a while."""
    try:
        file = os.open(folder / FILE, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return SshServerState(False, {})
    try:
        alive = not _lock(file)
        answer = _parse(os.pread(file, 4096, 0))
        if alive and "port" in answer:
            os.utime(file)
        return SshServerState(alive, answer)
    finally:
        os.close(file)


def forget(folder: Path) -> None:
    """Forget what a server said that is gone, so that what is read later is from the next."""
    with contextlib.suppress(FileNotFoundError):
        file = os.open(folder / FILE, os.O_RDWR | os.O_CLOEXEC)
        try:
            if _lock(file):
                os.ftruncate(file, 0)
        finally:
            os.close(file)


class SshServerRegistration:
    """The server's side: `hold` before anything else, then `tell`."""

    def __init__(self, file: int) -> None:
        self._file = file

    @classmethod
    def hold(cls, folder: Path) -> SshServerRegistration | None:
        """Take the lock for as long as this process lives; None where there is a server already."""
        file = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        # a look of the service's takes it for a moment
        for _ in range(_GOODBYE_ATTEMPTS):
            if _lock(file):
                os.ftruncate(file, 0)
                return cls(file)
            if "port" in _parse(os.pread(file, 4096, 0)):
                break
            time.sleep(_GOODBYE_PAUSE)
        os.close(file)
        return None

    def tell(self, answer: ServerStatus) -> None:
        """Return how it went, in one piece."""
        os.pwrite(self._file, json.dumps(answer).encode(), 0)

    def last_visit(self) -> float:
        """Return the time (seconds since the epoch) at which the service last said that somebody comes."""
        return os.fstat(self._file).st_mtime


def start(folder: Path) -> int:
    """Start a task's server as a child of this process, which it does not outlive; return its process id."""
    parent = os.getpid()
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.set_wakeup_fd(-1)
        for number in signal.valid_signals():
            with contextlib.suppress(OSError):
                signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() == parent:  # else it died before it could be followed
            python = sys.executable
            os.execv(python, [python, "-I", "-X", "utf8", "-c", _BOOT, str(_ROOT), str(folder)])  # noqa: S606
    finally:
        os._exit(1)


def dismiss(pid: int) -> None:
    """End a server, a child of this process; one that does not close its connections in time is killed."""
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGTERM)
        for _ in range(_GOODBYE_ATTEMPTS):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            time.sleep(_GOODBYE_PAUSE)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _lock(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _parse(content: bytes) -> ServerStatus:
    try:
        answer: ServerStatus = json.loads(content or b"{}")
    except ValueError:  # read while it was being written
        return {}
    return answer
