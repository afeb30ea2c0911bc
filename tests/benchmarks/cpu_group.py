"""What a server and all that it starts take of a core, counted by the kernel: a cgroup of version 2.

A process that nobody waits for takes the time that it used with it when it ends, so adding up the children
of a server misses just the short ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

import psutil

from pai_scheduler.engine.cgroups import CgroupMount, own_mounts
from tests.testbed.machine import CannotError

_PATIENCE = 10.0


def own_mounts_of_version_2() -> list[CgroupMount]:
    """List where this process's cgroup of version 2 is; empty where there is none."""
    return [mount for mount in own_mounts() if not mount.controllers]


class CpuGroup:
    """Counts the processor time of the processes in it, and of those that they start."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @classmethod
    @contextmanager
    def open(cls, name: str) -> Iterator[Self]:
        """Make one; CannotError: this process may not. It goes when what is in it has ended."""
        mounts = own_mounts_of_version_2()
        if not mounts:
            raise CannotError("there is no cgroup of version 2")
        path = mounts[0].own / f"{name}-{os.getpid()}"
        try:
            path.mkdir()
        except OSError as error:
            raise CannotError(f"no cgroup can be made: {error}") from error
        try:
            yield cls(path)
        finally:
            deadline = time.monotonic() + _PATIENCE
            while path.exists() and time.monotonic() < deadline:
                for folder, _, _ in os.walk(path, topdown=False):
                    with suppress(OSError):
                        Path(folder).rmdir()
                time.sleep(0.05)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Be in it for a while: a server that starts here makes its own cgroups inside, and they count."""
        before = own_mounts_of_version_2()[0].own
        self._move(os.getpid(), self._path)
        try:
            yield
        finally:
            self._move(os.getpid(), before)

    def take(self, servers: Iterable[psutil.Process]) -> None:
        """Move servers into it, and what they have started."""
        for server in servers:
            for process in (server, *server.children(recursive=True)):
                with suppress(psutil.NoSuchProcess, ProcessLookupError):
                    self._move(process.pid, self._path)

    @staticmethod
    def _move(pid: int, group: Path) -> None:
        (group / "cgroup.procs").write_text(str(pid))

    def seconds(self) -> float:
        """Return the time that they took so far, in seconds of one core."""
        for line in (self._path / "cpu.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == "usage_usec":
                return int(value) / 1e6
        raise AssertionError("the kernel counts no processor time in cpu.stat")
