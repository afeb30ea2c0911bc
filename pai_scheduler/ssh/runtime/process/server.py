"""The SSH server itself: who is let in, what is forwarded, and when it goes."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import cast

import asyncssh

from pai_scheduler.engine.process.ssh_server import SshServerRegistration

from .child import Reaper
from .listening import SocketOwner, owner_of_path, owner_of_port
from .session import SshSession
from .task import LocalTask

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
