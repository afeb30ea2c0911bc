"""Ends what a killed Hub left behind: its proxy and its scheduler, never servers or jobs."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

#: Seconds a process gets between being asked and being made to end.
_GRACE = 10.0


def end_leftovers(folder: Path) -> list[str]:
    """End the proxy and the scheduler of an installation whose Hub is gone; gives what was ended, in words.

    A process is known by what it was started with: this installation's own folder stands in its command line
    (the scheduler's data folder, the proxy's pid file).
    """
    ended = []
    for name, pid in _processes(folder):
        os.kill(pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while _runs(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        if _runs(pid):
            os.kill(pid, signal.SIGKILL)
        ended.append(f"{name} (process {pid})")
    return ended


def _processes(folder: Path) -> Iterator[tuple[str, int]]:
    scheduler_folder = str(folder / "scheduler")
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            words = _command_line(int(entry.name))
            if "--admin-service" in words and scheduler_folder in words:
                yield "the scheduler", int(entry.name)
    pid_file = folder / "hub" / "proxy.pid"
    if pid_file.exists():
        pid = int(pid_file.read_text() or 0)
        if any("configurable-http-proxy" in word for word in _command_line(pid)):
            yield "the proxy", pid


def _command_line(pid: int) -> list[str]:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _runs(pid: int) -> bool:
    # a zombie has no command line any more
    return any(_command_line(pid))
