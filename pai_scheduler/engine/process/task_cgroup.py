"""The cgroups of one task: made, joined, measured, emptied and removed; a fork into one."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
import time
from collections.abc import Sequence
from pathlib import Path

from .task_folder import GroupSpec

# Forks into a cgroup of version 2, which costs no more than a fork.
#
# To move a process that is there already, the kernel waits until nobody on the machine is in the middle of
# a fork or an exit: 10 ms and more. Only small modules are imported: every supervisor loads this one.

#: struct clone_args of Linux 5.7, which is the first to know the cgroup
_ARGUMENTS = struct.Struct("=11Q")
_CLONE_INTO_CGROUP = 0x200000000
#: a number that all machines share but for those that are not named here
_CLONE3, _MACHINES = 435, ("x86_64", "aarch64", "ppc64le", "riscv64", "s390x")

# keeps the interpreter's lock, which the child has to hold too
_libc_syscall = ctypes.PyDLL(None, use_errno=True).syscall
_libc_syscall.restype = ctypes.c_long


def fork_into(group: str) -> int:
    """Fork as `os.fork` does, the child in a group of version 2; OSError where that cannot be done here.

    Only for a process of one thread: nothing is done about the locks of others. What was registered with
    `os.register_at_fork` is not called.
    """
    if os.uname().machine not in _MACHINES:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), group)
    folder = os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        arguments = _ARGUMENTS.pack(_CLONE_INTO_CGROUP, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, 0, 0, folder)
        pid: int = _libc_syscall(
            ctypes.c_long(_CLONE3),
            ctypes.create_string_buffer(arguments, _ARGUMENTS.size),
            ctypes.c_size_t(_ARGUMENTS.size),
        )
        if pid < 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), group)
        return pid
    finally:
        os.close(folder)


# The cgroups of one task: made, joined, measured, emptied and removed. Which ones, `cgroups.py` decides.
#
# Only small modules are imported: every supervisor loads this one.

#: Files that count OOM kills in a line `oom_kill <n>`, in version 2 and version 1 of cgroups.
_OOM_COUNTERS = ("memory.events", "memory.oom_control")
#: A file of version 1 only, through which single threads are moved.
_ONE_THREAD = "tasks"
#: How many links a folder has in which there is no other.
_LINKS_OF_EMPTY = 2


class TaskGroup:
    """The cgroups of a task; with no `specs` everything here does nothing."""

    def __init__(self, specs: Sequence[GroupSpec]) -> None:
        self._specs = specs
        self._paths = [Path(spec["path"]) for spec in specs]
        #: where this process was made, so that it need not go there
        self._born_in: Path | None = None

    def make(self) -> None:
        """Make the groups and set their limits; OSError where that fails."""
        for path, spec in zip(self._paths, self._specs, strict=True):
            path.mkdir(parents=True, exist_ok=True)
            for name, value in spec["files"]:
                _write(path / name, value)

    def fork(self) -> int:
        """Fork as `os.fork` does; the child has to join. Where the kernel can, it is in its group already."""
        for path in self._paths:
            if (path / _ONE_THREAD).exists():
                continue
            try:
                pid = fork_into(str(path))
            except OSError:  # an older kernel, or a container that does not let us: the child goes by itself
                break
            if pid == 0:
                self._born_in = path
            return pid
        return os.fork()

    def join(self) -> None:
        """Move the calling process, which has one thread, into the groups."""
        for path in self._paths:
            if path == self._born_in:
                continue
            try:
                # version 1 only: for a thread that moves itself the kernel need not stop all forks, for
                # 10 ms and more
                _write(path / _ONE_THREAD, "0")
            except OSError:
                _write(path / "cgroup.procs", "0")

    def oom_kills(self) -> int:
        """Count the processes that the kernel ended for the memory limit."""
        limited = [
            path
            for path, spec in zip(self._paths, self._specs, strict=True)
            if any(name.startswith("memory.") for name, _ in spec["files"])
        ]
        return sum(_field(path / name, "oom_kill") for path in limited for name in _OOM_COUNTERS)

    def processes(self) -> set[int]:
        """List who is in the groups."""
        found: set[int] = set()
        for folder in self._folders():
            with contextlib.suppress(OSError), open(f"{folder}/cgroup.procs", "rb", buffering=0) as file:
                found.update(int(line) for line in file.read().split())
        return found

    def end(self, patience: float) -> bool:
        """SIGKILL all who are in the groups; False where some still are after `patience` seconds."""
        deadline = time.monotonic() + patience
        while left := self.processes():
            for path in self._paths:
                with contextlib.suppress(OSError):
                    # version 2 only: all at once, so that none can slip away by forking
                    file = os.open(path / "cgroup.kill", os.O_WRONLY)
                    try:
                        os.write(file, b"1")
                    finally:
                        os.close(file)
            for pid in left:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def remove(self) -> None:
        """Remove the empty groups, and those the task made inside; one that is in use stays."""
        for folder in self._folders():
            with contextlib.suppress(OSError):
                os.rmdir(folder)  # noqa: PTH106 (names are all that is there)

    def _folders(self) -> list[str]:
        """List the groups and those inside them, the inner ones first."""
        found = []
        for path in self._paths:
            with contextlib.suppress(FileNotFoundError):
                # a folder has a link from each folder in it; most tasks make none
                inside = os.stat(path).st_nlink != _LINKS_OF_EMPTY  # noqa: PTH116
                found += [folder for folder, _, _ in os.walk(path, topdown=False)] if inside else [str(path)]
        return found

    def cpu_seconds(self) -> float | None:
        """Return the processor time used so far; None where these groups do not count it."""
        for path in self._paths:
            if used := _field(path / "cpu.stat", "usage_usec"):
                return used / 1e6
        return None

    def memory_bytes(self) -> int | None:
        """Return the memory in use, without droppable file cache; None where nobody counts it."""
        for path in self._paths:
            for name, cache in (
                ("memory.current", "inactive_file"),
                ("memory.usage_in_bytes", "total_inactive_file"),
            ):
                with contextlib.suppress(OSError, ValueError):
                    return int((path / name).read_text()) - _field(path / "memory.stat", cache)
        return None


def _write(file: Path, value: str) -> None:
    opened = os.open(file, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(opened, value.encode())
    except OSError as error:
        error.filename = str(file)
        raise
    finally:
        os.close(opened)


def _field(file: Path, name: str) -> int:
    with contextlib.suppress(OSError):
        for line in file.read_text().splitlines():
            key, _, value = line.partition(" ")
            if key == name:
                return int(value)
    return 0
