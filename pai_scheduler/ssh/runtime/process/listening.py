"""Which sockets of this machine a task's processes listen on, from /proc: connections go to no others."""

from __future__ import annotations

import ipaddress
import os
import struct
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

_LISTEN = "0A"
#: of /proc/net/unix: SO_ACCEPTCON
_ACCEPTS = 0x10000

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class SocketOwner(Enum):
    """Who listens at an address."""

    NOBODY = "nobody"
    TASK = "task"
    OTHER = "other"


class _Socket(NamedTuple):
    address: _Address
    port: int
    inode: int


def owner_of_port(address: str, port: int, task: Iterable[int]) -> SocketOwner:
    """Return whether a connection to `address` (on loopback) would reach one of the processes `task`."""
    wanted = ipaddress.ip_address(address)
    sockets = [socket for socket in _tcp_listeners() if socket.port == port]
    # the kernel prefers the socket that is bound to the address itself
    exact = [socket.inode for socket in sockets if socket.address == wanted]
    wildcard = [
        socket.inode
        for socket in sockets
        if socket.address.is_unspecified and wanted.version <= socket.address.version
    ]
    return _owner(exact or wildcard, task)


def owner_of_path(path: str, task: Iterable[int]) -> SocketOwner:
    """Return whether one of the processes `task` listens on the Unix socket `path`."""
    wanted = os.path.realpath(path)
    inodes = [inode for name, inode in _unix_listeners() if os.path.realpath(name) == wanted]
    return _owner(inodes, task)


def _owner(inodes: list[int], task: Iterable[int]) -> SocketOwner:
    if not inodes:
        return SocketOwner.NOBODY
    wanted = {f"socket:[{inode}]" for inode in inodes}
    # several may share one port: each of them must be the task's
    for pid in task:
        wanted -= _open_files(pid)
        if not wanted:
            return SocketOwner.TASK
    return SocketOwner.OTHER


def _open_files(pid: int) -> set[str]:
    try:
        numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208 (thousands of Path objects are what it would cost)
    except OSError:  # gone meanwhile, or another user's
        return set()
    found = set()
    for number in numbers:
        try:
            found.add(os.readlink(f"/proc/{pid}/fd/{number}"))  # noqa: PTH115
        except OSError:
            continue
    return found


def _tcp_listeners() -> Iterator[_Socket]:
    for table in ("tcp", "tcp6"):
        for fields in _table(table):
            if fields[3] == _LISTEN:
                host, _, port = fields[1].partition(":")
                yield _Socket(_address(host), int(port, 16), int(fields[9]))


def _unix_listeners() -> Iterator[tuple[str, int]]:
    for fields in _table("unix", maximum=7):
        if len(fields) == 8 and int(fields[3], 16) & _ACCEPTS and fields[7].startswith("/"):
            yield fields[7], int(fields[6])


def _table(name: str, maximum: int = -1) -> Iterator[list[str]]:
    try:
        text = Path(f"/proc/self/net/{name}").read_text(errors="surrogateescape")
    except FileNotFoundError:  # a kernel without IPv6
        return
    for line in text.splitlines()[1:]:
        yield line.split(maxsplit=maximum)


def _address(digits: str) -> _Address:
    """Read an address as the kernel prints it: words of 32 bits in this machine's byte order."""
    words = [int(digits[start : start + 8], 16) for start in range(0, len(digits), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    if len(packed) == 4:
        return ipaddress.IPv4Address(packed)
    address = ipaddress.IPv6Address(packed)
    return address.ipv4_mapped or address
