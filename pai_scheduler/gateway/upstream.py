"""The connection to a task's own SSH server, over which the channels of one client are passed on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

import asyncssh
from asyncssh.constants import MSG_IGNORE, MSG_REQUEST_SUCCESS, OPEN_ADMINISTRATIVELY_PROHIBITED
from asyncssh.packet import SSHPacket

from .forwarding import Listeners, NotForwardedError
from .relay import Carrier, PassedOn, handled
from .settings import KEEPALIVE_SECONDS
from .wire import Target

#: Seconds: until a server that does not answer is given up; for one whose task has just begun to appear.
_CONNECT_SECONDS, _APPEAR_SECONDS, _AGAIN_SECONDS = 15.0, 5.0, 0.2
#: Signs of life that a server may owe; seconds for what is left to send at the end.
_KEEPALIVE_TIMES, _FLUSH_SECONDS = 3, 10.0
#: how many bytes wait to be sent before the other connection is read no further
WAITING_BYTES = 512 * 1024
#: quick ones first; both sides are ours
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "chacha20-poly1305@openssh.com")


class UnreachableError(Exception):
    """The task's server cannot be reached; the text says why, for the log."""


class Upstream(asyncssh.SSHClientConnection):
    """A connection to a task's server; made by `reach`.

    `client` is the connection whose channels are passed on, `when_lost` is called when this one ends.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        options: asyncssh.SSHClientConnectionOptions,
        client: Client,
        when_lost: Callable[[], None],
    ) -> None:
        super().__init__(loop, options, wait="auth")
        self._client = client
        self._when_lost = when_lost
        self.listeners = Listeners()

    @property
    def usable(self) -> bool:
        """Whether channels may be opened in it."""
        return self._transport is not None and not self._transport.is_closing()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what waits to be sent."""
        super().connection_made(transport)
        if isinstance(transport, asyncio.WriteTransport):
            transport.set_write_buffer_limits(WAITING_BYTES)

    def connection_lost(self, exc: Exception | None = None) -> None:
        """Tell, once."""
        super().connection_lost(exc)
        self._client.hold_back(False)
        when_lost, self._when_lost = self._when_lost, _nothing
        when_lost()

    def pause_writing(self) -> None:
        """Read no more from the client while the task takes nothing."""
        self._client.hold_back(True)

    def resume_writing(self) -> None:
        """Read on."""
        self._client.hold_back(False)

    def hold_back(self, held: bool) -> None:
        """Read no more from the task for now, or go on: the client takes nothing."""
        if isinstance(self._transport, asyncio.ReadTransport):
            (self._transport.pause_reading if held else self._transport.resume_reading)()

    def finish(self) -> None:
        """End it, when what waits to be sent has been."""
        transport = self._transport
        if transport is None:
            return
        self._cancel_keepalive_timer()
        transport.close()
        # whoever takes nothing any more is cut off
        self._loop.call_later(_FLUSH_SECONDS, transport.abort)

    def ask(self, request: bytes, details: bytes, answered: Callable[[bytes | None], None]) -> None:
        """Make a global request; `answered` gets what the answer says, None: refused."""

        def tell(answer: tuple[int, SSHPacket]) -> None:
            pkttype, packet = answer
            answered(packet.get_remaining_payload() if pkttype == MSG_REQUEST_SUCCESS else None)

        if not self.usable:
            answered(None)
            return
        self._global_request_waiters.append(_AtOnce(tell, loop=self._loop))
        self._send_global_request(request, details, want_reply=True)

    def send_packet(self, pkttype: int, *args: bytes, handler: Any = None) -> None:
        """Send, less the empty packets against a weakness of CBC, which is not used here."""
        if pkttype != MSG_IGNORE:
            super().send_packet(pkttype, *args, handler=handler)

    def log_sent_packet(self, *_: object) -> None:
        """Say nothing of each packet."""

    def _process_forwarded_tcpip_open(self, packet: SSHPacket) -> tuple[Any, Any]:
        return self._to_client(b"forwarded-tcpip", self.listeners.connected, packet)

    def _process_forwarded_streamlocal_at_openssh_dot_com_open(self, packet: SSHPacket) -> tuple[Any, Any]:
        kind = b"forwarded-streamlocal@openssh.com"
        return self._to_client(kind, self.listeners.connected_path, packet)

    def _process_auth_agent_at_openssh_dot_com_open(self, packet: SSHPacket) -> tuple[Any, Any]:
        if not self._client.lends_agent:
            raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "nobody forwards an agent")
        return self._to_client(b"auth-agent@openssh.com", lambda details: details, packet)

    def _process_x11_open(self, _packet: SSHPacket) -> tuple[Any, Any]:
        raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "X11 is not forwarded")

    def _to_client(
        self, kind: bytes, checked: Callable[[bytes], bytes], packet: SSHPacket
    ) -> tuple[Any, Any]:
        try:
            details = checked(packet.get_remaining_payload())
        except NotForwardedError as error:
            raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, str(error)) from error
        client = self._client
        return handled(PassedOn(self, lambda end: end.pass_on(client, kind, details)))


class _AtOnce(asyncio.Future[tuple[int, SSHPacket]]):
    """Tells of an answer before anything is read that came after it: connections to a port just opened."""

    def __init__(
        self, tell: Callable[[tuple[int, SSHPacket]], None], *, loop: asyncio.AbstractEventLoop
    ) -> None:
        super().__init__(loop=loop)
        self._tell = tell

    def set_result(self, result: tuple[int, SSHPacket], /) -> None:
        """Tell at once."""
        super().set_result(result)
        self._tell(result)


class Client(Carrier, Protocol):
    """The client's connection, as the one to the task sees it."""

    #: whether the client has asked for its agent to be forwarded
    lends_agent: bool

    def hold_back(self, held: bool) -> None:
        """Read no more from the client for now, or go on."""


async def reach(
    target: Target, client: Client, when_lost: Callable[[], None], keepalive: float = KEEPALIVE_SECONDS
) -> Upstream:
    """Connect to a task's server; UnreachableError where that cannot be done.

    `keepalive`: seconds after which a silent server is asked for a sign of life.
    """
    loop = asyncio.get_running_loop()
    options = _options(target, keepalive)
    deadline = loop.time() + _APPEAR_SECONDS
    while True:
        options.waiter = loop.create_future()
        upstream = None
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                _, upstream = await loop.create_connection(
                    lambda: Upstream(loop, options, client, when_lost), target["host"], target["port"]
                )
                await options.waiter
            return upstream
        except ConnectionRefusedError as error:
            if loop.time() > deadline:
                raise UnreachableError(str(error)) from error
            await asyncio.sleep(_AGAIN_SECONDS)
        except (OSError, TimeoutError, asyncssh.Error) as error:
            raise UnreachableError(f"{type(error).__name__} {error}") from error
        finally:
            if upstream is not None and not _came_true(options.waiter):
                upstream.abort()


def _options(target: Target, keepalive: float) -> asyncssh.SSHClientConnectionOptions:
    key = asyncssh.import_private_key(target["privateKey"])
    host_key = asyncssh.import_public_key(target["hostKey"])
    return asyncssh.SSHClientConnectionOptions(
        # nothing of the account's own settings, keys and agents
        config=None,
        agent_path=None,
        username="root",
        client_keys=[key],
        known_hosts=([host_key], [], []),
        host=target["host"],
        port=target["port"],
        preferred_auth="publickey",
        encryption_algs=_CIPHERS,
        compression_algs=["none"],
        keepalive_interval=keepalive,
        keepalive_count_max=_KEEPALIVE_TIMES,
    )


def _came_true(waiter: asyncio.Future[None]) -> bool:
    """Say whether what was waited for has come; a time that ran out cancels it."""
    return waiter.done() and not waiter.cancelled() and waiter.exception() is None


def _nothing() -> None:
    """Do nothing: it has been done."""
