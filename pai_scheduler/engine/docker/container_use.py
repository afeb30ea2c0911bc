"""What a container on this machine uses, read from the kernel's own files: Docker need not be asked for it.

Docker answers the same question in milliseconds of its time and ours, a file is read in microseconds. Where
the files are not those of the container, as the daemon is on another machine or we are in a container, they
are not believed: a container's control groups carry its id in their names.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

#: Version 2 of control groups has one hierarchy and no controller in its name.
_UNIFIED = ""


@dataclass(frozen=True, slots=True)
class ContainerProcess:
    """A container's id, and its first process as this machine numbers it (0: it does not run)."""

    container: str
    pid: int


@dataclass(frozen=True, slots=True)
class ContainerUse:
    """Processor time so far (ns), memory without what Linux can take back at once, bytes of its network."""

    cpu_ns: int
    memory_bytes: int
    net_rx_bytes: int
    net_tx_bytes: int


def read_use(process: ContainerProcess, proc: Path = Path("/proc")) -> ContainerUse | None:
    """Read what a container uses; None where that cannot be read here, or it does not run."""
    if not process.pid or not process.container:
        return None
    own = proc / str(process.pid)
    try:
        groups = _groups(own, process.container, _mounts(proc))
        if _UNIFIED in groups and "memory" not in groups:
            group = groups[_UNIFIED]
            cpu_ns = 1000 * _field(group / "cpu.stat", "usage_usec")
            memory = int((group / "memory.current").read_text()) - _field(
                group / "memory.stat", "inactive_file"
            )
        else:
            cpu_ns = int((groups["cpuacct"] / "cpuacct.usage").read_text())
            memory = int((groups["memory"] / "memory.usage_in_bytes").read_text())
            memory -= _field(groups["memory"] / "memory.stat", "total_inactive_file")
        rx, tx = _network(own)
        # the number may have become another process's while this was read
        still = _groups(own, process.container, _mounts(proc)) == groups
    except (OSError, ValueError, KeyError):
        return None
    return ContainerUse(cpu_ns, max(0, memory), rx, tx) if still else None


def _groups(own: Path, container: str, mounts: Mapping[str, Path]) -> Mapping[str, Path]:
    """Find the folders of a process's control groups, by controller, that are the container's."""
    found: dict[str, Path] = {}
    for line in (own / "cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        parts = PurePosixPath(path).parts
        last = next((n for n, part in enumerate(parts) if container in part), None)
        if last is None:
            continue
        for name in names.split(","):
            if (point := mounts.get(name)) is not None:
                found[name] = point.joinpath(*parts[1 : last + 1])
    return found


@cache
def _mounts(proc: Path) -> Mapping[str, Path]:
    """Find where whole hierarchies of control groups are mounted, by controller."""
    found: dict[str, Path] = {}
    with contextlib.suppress(OSError):
        for line in (proc / "self" / "mountinfo").read_text().splitlines():
            left, _, right = line.partition(" - ")
            root, point = left.split(" ")[3:5]
            kind, _, options = right.split(" ", 2)
            if root == "/" and kind == "cgroup2":
                found.setdefault(_UNIFIED, Path(point))
            elif root == "/" and kind == "cgroup":
                for name in options.split(","):
                    found.setdefault(name, Path(point))
    return found


def _network(own: Path) -> tuple[int, int]:
    """Return the bytes that a process's network has received and sent, but for those to itself."""
    rx = tx = 0
    for line in (own / "net" / "dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        fields = numbers.split()
        if name.strip() != "lo":
            rx, tx = rx + int(fields[0]), tx + int(fields[8])
    return rx, tx


def _field(file: Path, name: str) -> int:
    for line in file.read_text().splitlines():
        key, _, value = line.partition(" ")
        if key == name:
            return int(value)
    raise KeyError(name)
