"""The SSH server of a task: who is let in, what is forwarded, and when it goes."""

from __future__ import annotations

import asyncio
import ipaddress
import os
import signal
import struct
import time
from collections.abc import Awaitable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple, cast

import asyncssh

from pai_scheduler.engine.process.ssh_server import SshServerRegistration

from .session import LocalTask, Reaper, SshSession

# Which sockets of this machine a task's processes listen on, from /proc: connections go to no others.

_LISTEN = "0A"
#: of /proc/net/unix: SO_ACCEPTCON
_ACCEPTS = 0x10000

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class SocketOwner(Enum):
    """The owner of the socket that listens at an address."""

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


# The SSH server itself: who is let in, what is forwarded, and when it goes.

_ADDRESS = "127.0.0.1"
#: The one name by which the gateway logs in, as in containers; it is no account.
_USER = "root"
_LOGIN_SECONDS, _KEEPALIVE_SECONDS = 30.0, 60.0
#: How often it is looked whether anybody still comes, within the time of idleness.
_LOOKS = 10
_LOOPBACK = {"localhost": ("127.0.0.1", "::1"), "127.0.0.1": ("127.0.0.1",), "::1": ("::1",)}
#: Names for all interfaces of a machine; listened is on loopback, whatever they say.
_EVERYWHERE = ("", "*", "0.0.0.0", "::")  # noqa: S104
_FIRST_FREE_PORT = 1024


class TaskServer(asyncssh.SSHServer):
    """One connection of the gateway, or of another task of the job, to this task."""

    def __init__(self, task: LocalTask, reaper: Reaper, open_connections: set[TaskServer]) -> None:
        self._task, self._reaper, self._open = task, reaper, open_connections
        self.connection: asyncssh.SSHServerConnection

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Note the connection among the open ones."""
        self.connection = conn
        self._open.add(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Remove the connection from the open ones."""
        self._open.discard(self)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """Require authentication of every client."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Take keys, and nothing else."""
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Take the job's key, for the one user that there is."""
        known = (line for line in self._task.authorized_keys.splitlines() if line.strip())
        keys = [asyncssh.import_public_key(line) for line in known]
        return username == _USER and any(key.public_data == candidate.public_data for candidate in keys)

    def session_requested(self) -> SshSession:
        """Accept a session."""
        return SshSession(self._task, self._reaper)

    async def _forward_port(self, host: str, port: int) -> asyncssh.SSHTCPSession[bytes]:
        """Connect to a port of the task's; ChannelOpenError where it is not."""
        addresses = _LOOPBACK.get(host.lower())
        if addresses is None:
            raise _refused(f"{host} is not this task: it has localhost only")
        processes = self._task.processes()
        owners = {address: owner_of_port(address, port, processes) for address in addresses}
        for address, owner in owners.items():
            if owner is SocketOwner.TASK or (owner is SocketOwner.OTHER and port in self._task.ports):
                forwarder = await self.connection.forward_connection(address, port)
                # what the library takes for one, and says so at other places
                return cast("asyncssh.SSHTCPSession[bytes]", forwarder)
        if SocketOwner.OTHER in owners.values():
            raise _refused(f"port {port} of this machine is not of this task")
        raise asyncssh.ChannelOpenError(
            asyncssh.OPEN_CONNECT_FAILED, f"nothing in the task listens on port {port}"
        )

    def connection_requested(
        self,
        dest_host: str,
        dest_port: int,
        orig_host: str,  # noqa: ARG002
        orig_port: int,  # noqa: ARG002
    ) -> Awaitable[asyncssh.SSHTCPSession[bytes]]:
        """Forward to ports of the task only: the scheduler, the Hub and others listen on loopback too."""
        return self._forward_port(dest_host, dest_port)

    def unix_connection_requested(self, dest_path: str) -> bool:
        """Forward to Unix sockets of the task only."""
        if owner_of_path(dest_path, self._task.processes()) is not SocketOwner.TASK:
            raise _refused(f"nothing in the task listens on {dest_path}")
        return True

    def server_requested(self, listen_host: str, listen_port: int) -> bool | Awaitable[asyncssh.SSHListener]:
        """Listen for the client, on loopback, where a program of the task could."""
        addresses = _LOOPBACK.get("localhost" if listen_host in _EVERYWHERE else listen_host)
        if addresses is None or 0 < listen_port < _FIRST_FREE_PORT:
            return False
        return self.connection.forward_local_port(addresses[0], listen_port, listen_host, listen_port)

    def unix_server_requested(self, listen_path: str) -> bool:  # noqa: ARG002
        """Listen for the client where a program of the task could."""
        return True


async def serve(folder: Path, registration: SshServerRegistration, idle_seconds: float) -> None:
    """Listen for a task and register that; return when told to, or when unused for `idle_seconds`.

    OSError, ValueError where the task's folder or port cannot be used.
    """
    task = LocalTask(folder)
    # relative paths of SFTP and scp start here
    os.chdir(task.work)
    reaper, connections = Reaper(), set[TaskServer]()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    listener = await asyncssh.listen(
        _ADDRESS,
        task.port,
        server_factory=lambda: TaskServer(task, reaper, connections),
        server_host_keys=[asyncssh.import_private_key(task.host_key)],
        # nothing of the account's own settings
        config=[],
        gss_host=None,
        encoding=None,
        line_editor=False,
        x11_forwarding=False,
        agent_forwarding=True,
        login_timeout=_LOGIN_SECONDS,
        keepalive_interval=_KEEPALIVE_SECONDS,
        # it is this machine itself that would have to be slow
        compression_algs=None,
    )
    registration.tell({"port": task.port})
    last_used = time.time()
    while not over.is_set():
        try:
            async with asyncio.timeout(idle_seconds / _LOOKS):
                await over.wait()
        except TimeoutError:
            if connections:
                last_used = time.time()
            elif time.time() - max(last_used, registration.last_visit()) > idle_seconds:
                break
    listener.close()
    for server in list(connections):
        # not a session after the other, each as if it had ended: all is over
        server.connection.abort()


def _refused(reason: str) -> asyncssh.ChannelOpenError:
    return asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, reason)
