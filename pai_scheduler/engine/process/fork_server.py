"""Starts supervisors quickly: one process with everything imported, which forks for each line it reads.

A fork of it takes a millisecond where a new interpreter takes tens, and the memory of thousands of
supervisors is shared. It ends when the service does; the supervisors do not.
"""

from __future__ import annotations

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
    with open(0, "rb", buffering=0, closefd=False) as requests:
        rest = b""
        while data := requests.read(65536):
            *names, rest = (rest + data).split(b"\n")
            for name in names:
                pid = _fork()
                if pid < 0:
                    sys.exit("no process could be made to watch over a task")
                if pid == 0:
                    _supervisor(tasks / os.fsdecode(name), doorbell)


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
        (folder / SUPERVISOR_ERROR).write_text(traceback.format_exc())
    finally:
        os._exit(status)
