"""The connection to a task's own SSH server, over which the channels of one client are passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncssh

from .protocol import KEEPALIVE_SECONDS, TaskTarget
from .relay import PACKET_BYTES, ChannelEnd, PeerConnection

# Which connections may be forwarded: to the task and the tasks of its job, by the names that they have.

_MOST_OF_PORT = 65535
#: how a listener in the task is asked for, whatever the client said: nobody else is to reach it
LOOPBACK = "localhost"


class NotForwardedError(Exception):
    """This is not forwarded; the text says why, for the client and the log."""


def check_port(port: int, least: int = 1) -> None:
    """Refuse what is no port."""
    if not least <= port <= _MOST_OF_PORT:
        raise NotForwardedError(f"{port} is no port")


def check(host: str, allowed: Sequence[str]) -> None:
    """Refuse every host but those that are named, letter by letter: an address has many spellings."""
    if host.lower() not in {name.lower() for name in allowed}:
        shown = ascii(host)[1:-1][:100]
        raise NotForwardedError(f"connections are forwarded to the task and its job only, not to {shown}")


# The connection to a task's own SSH server, over which the channels of one client are passed on.

#: Seconds: until a server that does not answer is given up; for one whose task has just begun to appear.
_CONNECT_SECONDS, _APPEAR_SECONDS, _AGAIN_SECONDS = 15.0, 5.0, 0.2
#: Signs of life that a server may owe; seconds for what is left to send at the end, and between two looks.
_KEEPALIVE_TIMES, _FLUSH_SECONDS, _LOOK_SECONDS = 3, 10.0, 0.05
#: quick ones first; both sides are ours
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "chacha20-poly1305@openssh.com")


class TaskServerUnreachableError(Exception):
    """The task's server cannot be reached; the text says why, for the log."""


class TaskServerConnection(asyncssh.SSHClient):
    """A connection to a task's server; made by `reach`. `when_lost` is called when it ends."""

    def __init__(self, when_lost: Callable[[], None]) -> None:
        self.ssh: asyncssh.SSHClientConnection
        self.line: PeerConnection
        self._when_lost = when_lost

    # what asyncssh calls

    def connection_made(self, conn: asyncssh.SSHClientConnection) -> None:
        """Note the connection."""
        self.ssh = conn
        self.line = PeerConnection(conn.get_extra_info("socket"))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Report that the connection to the task is lost."""
        self.line.outlet.close()
        self._when_lost()

    # what we do

    @property
    def usable(self) -> bool:
        """Return whether channels may be opened in it."""
        # it has no socket any more as soon as it is known to be lost
        return not self.ssh.is_closed() and self.ssh.get_extra_info("socket") is not None

    def finish(self) -> None:
        """End it, when what waits to be sent has been."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _FLUSH_SECONDS

        def look() -> None:
            # a peer that takes nothing any more is cut off
            if self.line.sent or loop.time() > deadline:
                self.ssh.close()
            else:
                loop.call_later(_LOOK_SECONDS, look)

        look()

    async def connect(self, client: ChannelEnd, host: str, port: int, orig_host: str, orig_port: int) -> None:
        """Connect to a port, for a client's channel. ChannelOpenError with the task's server's reason."""
        end = ChannelEnd(self.line)
        await self._opened(
            end,
            self.ssh.create_connection(
                lambda: end,
                host,
                port,
                orig_host,
                orig_port,
                window=self.line.window,
                max_pktsize=PACKET_BYTES,
            ),
        )
        end.join(client)

    async def connect_to_path(self, client: ChannelEnd, path: str) -> None:
        """Connect to a socket file in the same way."""
        end = ChannelEnd(self.line)
        await self._opened(
            end,
            self.ssh.create_unix_connection(
                lambda: end, path, window=self.line.window, max_pktsize=PACKET_BYTES
            ),
        )
        end.join(client)

    async def listen(
        self, port: int, open_to_client: Callable[[str, int, int], Awaitable[ChannelEnd]]
    ) -> asyncssh.SSHListener:
        """Have a port of the task's loopback listened to, 0: any. asyncssh.ChannelListenError where not.

        What connects to it before the answer has been read, a moment later, is refused.
        """

        async def connected(orig_host: str, orig_port: int) -> ChannelEnd:
            return await self._to_client(open_to_client(orig_host, orig_port, listener.get_port()))

        listener = await self.ssh.create_server(
            connected, LOOPBACK, port, window=self.line.window, max_pktsize=PACKET_BYTES
        )
        return listener

    async def listen_at_path(
        self, path: str, open_to_client: Callable[[], Awaitable[ChannelEnd]]
    ) -> asyncssh.SSHListener:
        """Have a socket file listened to in the same way."""
        return await self.ssh.create_unix_server(
            lambda: self._to_client(open_to_client()),
            path,
            window=self.line.window,
            max_pktsize=PACKET_BYTES,
        )

    async def _to_client(self, opening: Awaitable[ChannelEnd]) -> ChannelEnd:
        client = await opening
        end = ChannelEnd(self.line)
        end.join(client)
        return end

    @staticmethod
    async def _opened(end: ChannelEnd, opening: Awaitable[object]) -> None:
        try:
            await opening
        except asyncssh.ChannelOpenError:
            end.drop()
            raise
        except (asyncssh.Error, OSError) as error:
            end.drop()
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_CONNECT_FAILED, "the connection to the task is lost"
            ) from error
        except BaseException:
            end.drop()
            raise


async def reach(
    target: TaskTarget,
    when_lost: Callable[[], None],
    keepalive: float = KEEPALIVE_SECONDS,
    agent: str | None = None,
) -> TaskServerConnection:
    """Connect to a task's server; UnreachableError where that cannot be done.

    `keepalive`: seconds after which a silent server is asked for a sign of life. `agent`: the path of an
    agent that is lent to all sessions of this connection.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _APPEAR_SECONDS
    found = TaskServerConnection(when_lost)
    options = _options(target, keepalive, agent)
    while True:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await asyncssh.connect(
                    target["host"],
                    target["port"],
                    # nothing of the account's own settings
                    config=None,
                    options=options,
                    client_factory=lambda: found,
                )
            return found
        except ConnectionRefusedError as error:
            if loop.time() > deadline:
                raise TaskServerUnreachableError(str(error)) from error
            await asyncio.sleep(_AGAIN_SECONDS)
        except (OSError, TimeoutError, asyncssh.Error) as error:
            raise TaskServerUnreachableError(f"{type(error).__name__} {error}") from error


def _options(target: TaskTarget, keepalive: float, agent: str | None) -> Any:
    key = asyncssh.import_private_key(target["privateKey"])
    host_key = asyncssh.import_public_key(target["hostKey"])
    return asyncssh.SSHClientConnectionOptions(
        # nor of its keys and agents
        config=None,
        agent_path=None,
        agent_forwarding=agent or False,
        username="root",
        client_keys=[key],
        known_hosts=([host_key], [], []),
        preferred_auth="publickey",
        encryption_algs=_CIPHERS,
        compression_algs=["none"],
        keepalive_interval=keepalive,
        keepalive_count_max=_KEEPALIVE_TIMES,
    )
