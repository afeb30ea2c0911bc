"""Starts supervisors quickly: one process with everything imported, which forks for each line it reads.

A fork of it takes a millisecond where a new interpreter takes tens, and the memory of thousands of
supervisors is shared. One is forked ahead, for the task that comes next. It ends when the service does, and
the one that waits with it; the supervisors do not.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import time
import traceback
from pathlib import Path

from .supervisor import supervise
from .task_folder import SUPERVISOR_ERROR

_FORK_ATTEMPTS, _FORK_PAUSE = 50, 0.1


def main() -> None:
    """Arguments: the folder of all tasks, the doorbell. Input: names of tasks to start, one in a line."""
    tasks, doorbell = Path(sys.argv[1]), Path(sys.argv[2])
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # Ctrl-C is the service's, which says by closing what it means
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how supervisors ended
    gc.disable()
    gc.freeze()
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # one that waited may have been killed
    with open(0, "rb", buffering=0, closefd=False) as requests:
        rest = b""
        spare = _spare(tasks, doorbell)
        while data := requests.read(65536):
            *names, rest = (rest + data).split(b"\n")
            for name in names:
                if spare is not None:
                    taken, spare = _hand_over(spare, name), None
                    if taken:
                        continue
                pid = _fork()
                if pid < 0:
                    sys.exit("no process could be made to watch over a task")
                if pid == 0:
                    _supervisor(tasks / os.fsdecode(name), doorbell)
            if spare is None:
                spare = _spare(tasks, doorbell)


def _spare(tasks: Path, doorbell: Path) -> int | None:
    """Fork a supervisor that waits for its task; give where to write the name, None: it cannot be had now."""
    read, write = os.pipe()
    try:
        pid = os.fork()
    except OSError:
        os.close(read)
        os.close(write)
        return None
    if pid == 0:
        os.close(write)
        name = b""
        with contextlib.suppress(OSError):
            name = os.read(read, 4096)
        os.close(read)
        if not name:  # the service has ended
            os._exit(0)
        _supervisor(tasks / os.fsdecode(name), doorbell)
    os.close(read)
    return write


def _hand_over(spare: int, name: bytes) -> bool:
    """Name the task to the supervisor that waits; False where that is gone."""
    try:
        os.write(spare, name)
    except BrokenPipeError:
        return False
    finally:
        os.close(spare)
    return True


def _fork() -> int:
    """Fork, and while the machine has no process to spare, wait; -1 where that goes on."""
    for _ in range(_FORK_ATTEMPTS):
        try:
            return os.fork()
        except OSError:
            time.sleep(_FORK_PAUSE)
    return -1


def _supervisor(folder: Path, doorbell: Path) -> None:
    status = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in range(3):  # who reads what the service prints must not wait for the tasks' end
            os.dup2(nothing, number)
        os.close(nothing)
        supervise(folder, doorbell)
        status = 0
    except BaseException:
        # in one piece: whoever sees it reads it at once
        fresh = folder / f"{SUPERVISOR_ERROR}.new"
        fresh.write_text(traceback.format_exc())
        fresh.rename(folder / SUPERVISOR_ERROR)
    finally:
        os._exit(status)
