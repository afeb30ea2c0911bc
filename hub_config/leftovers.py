"""Ends what a killed Hub left behind: its proxy and its services, never servers or jobs."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

#: Seconds a process gets between being asked and being made to end.
_GRACE = 10.0


def end_leftovers(folder: Path) -> list[str]:
    """End the services and the proxy of an installation whose Hub is gone; gives what was ended, in words.

    A process is known by what belongs to this installation alone: services by their data folders, the proxy
    by the Hub's folder, which it works in.
    """
    ended = []
    for name, pid in _processes(folder):
        _signal(pid, signal.SIGTERM)
        deadline = time.monotonic() + _GRACE
        while _runs(pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        if _runs(pid):
            _signal(pid, signal.SIGKILL)
        ended.append(f"{name} (process {pid})")
    return ended


def _processes(folder: Path) -> Iterator[tuple[str, int]]:
    scheduler_folder, hub_folder = str(folder / "scheduler"), folder / "hub"
    for pid in _others():
        words = _command_line(pid)
        if "--admin-service" in words and scheduler_folder in words:
            yield "the scheduler", pid
    for pid in _others():
        words = _command_line(pid)
        if "pai_spawner.sessions" in words and str(folder / "sessions") in words:
            yield "the sessions service", pid
    for pid in _others():
        words = _command_line(pid)
        if any("configurable-http-proxy" in word for word in words) and _works_in(pid) == hub_folder:
            yield "the proxy", pid


def _others() -> list[int]:
    return [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and int(entry.name) != os.getpid()
    ]


def _works_in(pid: int) -> Path | None:
    try:
        return (Path("/proc") / str(pid) / "cwd").readlink()
    except OSError:
        return None


def _signal(pid: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):  # it ended by itself meanwhile
        os.kill(pid, number)


def _command_line(pid: int) -> list[str]:
    try:
        return (Path("/proc") / str(pid) / "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def _runs(pid: int) -> bool:
    # a zombie has no command line any more
    return any(_command_line(pid))
