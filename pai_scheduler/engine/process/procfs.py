"""Processes as /proc tells of them. Only small modules are imported: every supervisor loads this one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Process:
    """A running process: processor time in seconds (its ended children's too), resident memory in bytes."""

    pid: int
    parent: int
    cpu_seconds: float
    memory_bytes: int


def process(pid: int) -> Process | None:
    """Look at one process; None where there is none, or only its zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # the name in brackets may hold anything, brackets and spaces too
    fields = stat[stat.rindex(")") + 2 :].split()
    if fields[0] in "ZX":
        return None
    cpu = sum(int(ticks) for ticks in fields[11:15]) / _TICKS
    return Process(pid, int(fields[1]), cpu, int(fields[21]) * _PAGE)


def processes() -> Iterator[Process]:
    """Go through all processes of this machine that may be seen."""
    for name in os.listdir("/proc"):  # noqa: PTH208 (thousands of Path objects are what it would cost)
        if name.isdigit() and (found := process(int(name))):
            yield found


def children(pid: int) -> list[int]:
    """List a single-threaded process's children, zombies too."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [found.pid for found in processes() if found.parent == pid]


def tree(root: int) -> list[Process]:
    """Return a process's descendants, without itself."""
    by_parent: dict[int, list[Process]] = {}
    for found in processes():
        by_parent.setdefault(found.parent, []).append(found)
    result: list[Process] = []
    level = by_parent.get(root, [])
    while level:
        result += level
        level = [child for parent in level for child in by_parent.get(parent.pid, [])]
    return result


def with_variable(name: str, value: str) -> list[int]:
    """Find the processes that were started with an environment variable."""
    wanted = f"{name}={value}".encode()
    found = []
    for candidate in processes():
        try:
            environment = Path(f"/proc/{candidate.pid}/environ").read_bytes()
        except OSError:  # gone meanwhile, or another user's
            continue
        if wanted in environment.split(b"\0"):
            found.append(candidate.pid)
    return found
