"""What control groups say of this server's memory: its limit, and how many of its processes it has cost."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TypedDict

_CGROUPS = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")
#: What version 1 of control groups says where there is no limit is beyond this many bytes.
_NO_LIMIT = 2**62
_MB = 2**20


class OwnMemory(TypedDict):
    """What is known of it: MB, and processes that the kernel of the operating system has ended for it."""

    limitMB: int | None
    killed: int | None


def own_memory(cgroups: Path = _CGROUPS, mounts: Path = _MOUNTS) -> OwnMemory:
    """Read them; what is not known is null. The kernel ends a process where all together use more."""
    try:
        version_2, folder = _group(cgroups.read_text(), mounts.read_text())
    except OSError:
        folder = None
    if folder is None:
        return {"limitMB": None, "killed": None}
    limit = _text(folder / ("memory.max" if version_2 else "memory.limit_in_bytes")).strip()
    counts = _text(folder / ("memory.events" if version_2 else "memory.oom_control"))
    killed = re.search(r"^oom_kill (\d+)$", counts, re.MULTILINE)
    known = limit.isdigit() and int(limit) < _NO_LIMIT
    return {
        "limitMB": int(limit) // _MB if known else None,
        "killed": int(killed[1]) if killed else None,
    }


def _group(cgroups: str, mounts: str) -> tuple[bool, Path | None]:
    """Return the folder of this process's group that limits memory, and whether it is of version 2."""
    groups = {
        controllers: path for _, controllers, path in (line.split(":", 2) for line in cgroups.splitlines())
    }
    for version_2, controllers in ((False, "memory"), (True, "")):
        path = next((path for names, path in groups.items() if controllers in names.split(",")), None)
        mount = _mount(mounts, version_2)
        if path is None or mount is None:
            continue
        # in a container the mount is the group itself, under a path of the machine's
        folders = [mount / path.lstrip("/"), mount]
        name = "memory.events" if version_2 else "memory.oom_control"
        found = next((folder for folder in folders if (folder / name).exists()), None)
        if found is not None:
            return version_2, found
    return False, None


def _mount(mounts: str, version_2: bool) -> Path | None:
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if (
            (kind == "cgroup2")
            if version_2
            else (kind == "cgroup" and "memory" in options.split(" ")[-1].split(","))
        ):
            return Path(before.split(" ")[4])
    return None


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
