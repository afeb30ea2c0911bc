"""Free ports of this machine, of which no other test process gets the same."""

from __future__ import annotations

import fcntl
import itertools
import os
import socket
import threading
from functools import cache
from pathlib import Path
from typing import IO

#: Above the ports that Linux gives to programs that ask for any, and above those that the scheduler chooses.
_FIRST, _END = 61000, 65500
#: A process has a block of its own; what it gave long ago comes round again.
_BLOCK = 250
_LOCKS = Path("/tmp")  # noqa: S108 - the one place that all who run tests here know
_order = threading.Lock()


def free_port() -> int:
    """Return a port of this machine at which nothing listens."""
    return free_ports(1)[0]


def free_ports(number: int) -> list[int]:
    """Return so many different ports at which nothing listens."""
    with _order:
        ports = _block(os.getpid())
        return [next(port for port in ports if _is_free(port)) for _ in range(number)]


@cache
def _block(process: int) -> itertools.cycle[int]:
    """Take a block of ports for as long as this process lives."""
    del process  # a forked one asks for a block of its own
    starts = range(_FIRST, _END, _BLOCK)
    for start in starts:
        if lock := _take(_LOCKS / f"pai-test-ports-{start}"):
            _held.append(lock)
            break
    return itertools.cycle(range(start, start + _BLOCK))


_held: list[IO[str]] = []


def _take(path: Path) -> IO[str] | None:
    """Lock a file; None where another process has it, or it is somebody else's."""
    try:
        lock = path.open("a")
    except OSError:
        return None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        return None
    return lock


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("", port))
        except OSError:
            return False
        return True
