"""Memory of this server, and kernels that were ended for the lack of it."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypedDict

from jupyter_events import EventLogger
from jupyter_server.serverapp import ServerApp

# What control groups say of this server's memory: its limit, and how many of its processes it has cost.

_CGROUPS = Path("/proc/self/cgroup")
_MOUNTS = Path("/proc/self/mountinfo")
#: What version 1 of control groups says where there is no limit is beyond this many bytes.
_NO_LIMIT = 2**62
_MB = 2**20


class OwnMemory(TypedDict):
    """Memory limit in MB, and the number of processes that the operating system killed for lack of memory."""

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


# Knows which kernels ended because the memory of this server was not enough.

#: The name in the settings of the web application under which handlers find it.
KERNEL_MEMORY = "pai_kernel_memory"
_ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"


class KernelMemory:
    """Judges each end of a kernel when it happens: a page that asks later cannot know how it was before."""

    def __init__(self, kernels: Any, memory: Callable[[], OwnMemory] = own_memory) -> None:
        """Begin to count; `kernels`: the server's kernel manager."""
        self._kernels, self._memory = kernels, memory
        self._killed = memory()["killed"] or 0
        self._lost: dict[str, bool] = {}

    @property
    def limit_mb(self) -> int | None:
        """Return the memory limit of this server in MB; None: there is none, or it is not known."""
        return self._memory()["limitMB"]

    def lost(self, kernel_id: str) -> bool:
        """Return whether a kernel's last end by itself was for its memory."""
        return self._lost.get(kernel_id, False)

    async def on_action(self, logger: EventLogger, schema_id: str, data: dict[str, Any]) -> None:  # noqa: ARG002 - the form of listeners
        """Watch over a kernel that has started."""
        kernel_id: str = data.get("kernel_id", "")
        # (a restart is a start, too; what watches over a kernel stays)
        if data["action"] != "start" or kernel_id in self._lost or kernel_id not in self._kernels:
            return
        self._lost[kernel_id] = False
        # (of one that is dead the server forgets the id)
        on_end = partial(self._on_end, kernel_id, self._kernels.get_kernel(kernel_id))
        for event in ("restart", "dead"):
            self._kernels.add_restart_callback(kernel_id, on_end, event)

    def _on_end(self, kernel_id: str, kernel: Any) -> None:
        killed = self._memory()["killed"] or 0
        # a kernel that is no process of this machine has nothing to do with its memory
        code = getattr(getattr(kernel.provisioner, "process", None), "returncode", None)
        self._lost[kernel_id] = code == -signal.SIGKILL and killed > self._killed
        self._killed = killed


def watch_kernel_memory(server: ServerApp) -> None:
    """Judge each end of a kernel from now on."""
    watch = KernelMemory(server.kernel_manager)
    server.web_app.settings[KERNEL_MEMORY] = watch
    if server.event_logger is not None:
        server.event_logger.add_listener(schema_id=_ACTIONS, listener=watch.on_action)
