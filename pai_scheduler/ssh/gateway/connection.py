"""A client's connection: who that is, and which channels are passed on to the task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

import asyncssh

from .client_session import ClientSession, Credential, TaskUnreachableError
from .protocol import LoginAnswer, TaskTarget
from .relay import PACKET_BYTES, ChannelEnd, PeerConnection
from .session import ClientEnd
from .upstream import NotForwardedError, TaskServerConnection, check_port
from .upstream import check as check_forward

#: how many keys (an agent may hold many) and tokens one connection may try
_MOST_KEYS, _MOST_TOKENS = 20, 6
#: how many channels one connection may have: browsers open many through `-D`
_MOST_CHANNELS = 1000

#: Seconds between the end of all that is open and the end of a connection
_FAREWELL_SECONDS = 1.0

_ChannelT = TypeVar("_ChannelT")


class GatewayContext(Protocol):
    """Context shared by all connections of this process."""

    def came(self, connection: Connection) -> None:
        """Hear of a connection that was made."""

    async def admit(self, connection: Connection, credential: Credential) -> LoginAnswer | None:
        """Find out whom a credential (login name, method, key or token) proves; None: nobody."""

    def enter(self, connection: Connection, credential: Credential, answer: LoginAnswer) -> ClientSession:
        """Begin the session of the user that the credential proves."""

    def gone(self, connection: Connection) -> None:
        """Hear that a connection has ended."""


class Connection(asyncssh.SSHServer):
    """A connection of a client's. Nothing is passed on, and no task is known, before they have logged in."""

    def __init__(self, context: GatewayContext) -> None:
        self.failures = 0
        self.tried = self.proved = False
        #: where the client is, as asyncio knows it
        self.peer = ""
        self.client_session: ClientSession | None = None
        self.line: PeerConnection
        self.ssh: asyncssh.SSHServerConnection
        self._context = context
        self._answers: dict[Credential, LoginAnswer | None] = {}
        self._proven: Credential | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    # the connection

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        """Note the connection and the client's address."""
        self.ssh = conn
        self.line = PeerConnection(conn.get_extra_info("socket"))
        peer = conn.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else "?"
        self._context.came(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Close all that was opened."""
        self.line.outlet.close()
        for task in self._tasks:
            task.cancel()
        if self.client_session is not None:
            self.client_session.end()
        self._context.gone(self)

    def abort(self) -> None:
        """Close the connection at once."""
        self.ssh.abort()

    def send_auth_banner(self, words: str) -> None:
        """Send a text to a client that is about to log in."""
        self.ssh.send_auth_banner(words)

    # who that is

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        """Require authentication of every client."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Allow public keys."""
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Ask whether it would be enough to have that key; asyncssh checks whether they do."""
        return await self._ask((username, "publickey", key.export_public_key().decode().strip()))

    def password_auth_supported(self) -> bool:
        """Allow tokens, as passwords."""
        return True

    async def validate_password(self, username: str, password: str) -> bool:
        """Ask whose token that is."""
        return await self._ask((username, "password", password))

    async def _ask(self, credential: Credential) -> bool:
        if credential not in self._answers:
            self.tried = True
            _, method, _ = credential
            most = _MOST_KEYS if method == "publickey" else _MOST_TOKENS
            if sum(tried[1] == method for tried in self._answers) >= most:
                raise asyncssh.PermissionDenied("Too many authentication failures")
            self._answers[credential] = answer = await self._context.admit(self, credential)
            self.failures += answer is None
        if self._answers[credential] is None:
            return False
        # A key is asked about before somebody signs with it, and again when they do. A try is called off by
        # the next one, so the client gets in with what was found good last.
        self._proven = credential
        return True

    def auth_completed(self) -> None:
        """Hear that somebody is let in."""
        proven = self._proven
        answer = self._answers.get(proven) if proven else None
        if proven is None or answer is None or proven[0] != self.ssh.get_extra_info("username"):
            raise asyncssh.PermissionDenied("Nobody was proven to be there")
        self._answers.clear()
        self.client_session = self._context.enter(self, proven, answer)

    def revoke(self) -> None:
        """End it with all that is open: what one logged in with is good no more."""
        if self.client_session is not None and self.client_session.revoke():
            # what is open has been told why, and is to read it
            reason = self.client_session.lost()
            asyncio.get_running_loop().call_later(
                _FAREWELL_SECONDS, self.ssh.disconnect, asyncssh.DISC_BY_APPLICATION, reason
            )

    # what they want

    def session_requested(self) -> Any:
        """Accept a session."""
        self._check_room()
        channel = self.ssh.create_server_channel(None, "strict", self.line.window, PACKET_BYTES)
        return channel, ClientEnd(self.line, self)

    def connection_requested(self, dest_host: str, dest_port: int, orig_host: str, orig_port: int) -> Any:
        """Pass a connection to a port on, of the task or of its job."""
        try:
            check_port(dest_port)
        except NotForwardedError as error:
            raise _refused(error) from error

        def check(target: TaskTarget) -> None:
            try:
                check_forward(dest_host, target["forward"])
            except NotForwardedError:
                self._client_session.refused(
                    f"no connection is forwarded to {ascii(dest_host)[:100]}, port {dest_port}"
                )
                raise

        async def reach(upstream: TaskServerConnection, end: ChannelEnd) -> None:
            await upstream.connect(end, dest_host, dest_port, orig_host, orig_port)

        return self._forwarded(self.ssh.create_tcp_channel, check, reach, f"{dest_host}:{dest_port}")

    def unix_connection_requested(self, dest_path: str) -> Any:
        """Pass a connection to a socket file on."""

        async def reach(upstream: TaskServerConnection, end: ChannelEnd) -> None:
            await upstream.connect_to_path(end, dest_path)

        return self._forwarded(self.ssh.create_unix_channel, lambda _: None, reach, dest_path[:200])

    async def server_requested(self, listen_host: str, listen_port: int) -> Any:
        """Have the task listen for them, on its loopback only, whatever address they named."""

        def open_to_client(end: ChannelEnd, orig_host: str, orig_port: int, port: int) -> Awaitable[object]:
            return self.ssh.create_connection(
                lambda: end,
                listen_host,
                port,
                orig_host,
                orig_port,
                window=self.line.window,
                max_pktsize=PACKET_BYTES,
            )

        async def listen(upstream: TaskServerConnection) -> asyncssh.SSHListener:
            check_port(listen_port, least=0)
            listener = await upstream.listen(listen_port, self._client_end(open_to_client))
            self._client_session.used("remote-forward", str(listener.get_port()))
            return listener

        return await self._listening(listen)

    async def unix_server_requested(self, listen_path: str) -> Any:
        """Have the task listen for them at a socket file."""

        def open_to_client(end: ChannelEnd) -> Awaitable[object]:
            return self.ssh.create_unix_connection(
                lambda: end, listen_path, window=self.line.window, max_pktsize=PACKET_BYTES
            )

        async def listen(upstream: TaskServerConnection) -> asyncssh.SSHListener:
            listener = await upstream.listen_at_path(listen_path, self._client_end(open_to_client))
            self._client_session.used("remote-forward", listen_path[:200])
            return listener

        return await self._listening(listen)

    # how they get it

    @property
    def _client_session(self) -> ClientSession:
        if self.client_session is None:
            raise asyncssh.PermissionDenied("Nobody has logged in")
        return self.client_session

    def _check_room(self) -> None:
        if len(self.line.ends) >= _MOST_CHANNELS:
            raise asyncssh.ChannelOpenError(
                asyncssh.OPEN_RESOURCE_SHORTAGE, f"{_MOST_CHANNELS} channels are open"
            )

    def session_wanted(self, session: ClientEnd) -> None:
        """Open a session in the task."""
        task = asyncio.create_task(self._begin(session))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _begin(self, session: ClientEnd) -> None:
        client_session = self._client_session
        client_session.language = session.language
        try:
            upstream, target = await client_session.way(session.agent)
        except TaskUnreachableError as error:
            session.fail(str(error))
            return
        session.notice = target.get("notice", "")
        session.signals = target.get("signals")
        session.lost = client_session.lost
        try:
            await session.begin(upstream.ssh, upstream.line)
        except (asyncssh.Error, OSError) as error:
            refused = isinstance(error, asyncssh.ChannelOpenError) and upstream.usable
            session.fail(str(error) if refused else client_session.lost())
            return
        if session.agent is not None:
            client_session.used("agent")
        client_session.used(session.kind)

    def _forwarded(
        self,
        create: Callable[..., _ChannelT],
        check: Callable[[TaskTarget], None],
        reach: Callable[[TaskServerConnection, ChannelEnd], Coroutine[Any, Any, None]],
        detail: str,
    ) -> tuple[_ChannelT, Awaitable[ChannelEnd]]:
        self._check_room()
        channel = create(window=self.line.window, max_pktsize=PACKET_BYTES)
        end = ChannelEnd(self.line)

        async def opened() -> ChannelEnd:
            try:
                upstream, target = await self._client_session.way()
                check(target)
                self._client_session.used("forward", detail)
                await reach(upstream, end)
            except TaskUnreachableError as error:
                end.drop()
                raise asyncssh.ChannelOpenError(asyncssh.OPEN_CONNECT_FAILED, str(error)) from error
            except NotForwardedError as error:
                end.drop()
                raise _refused(error) from error
            except BaseException:
                end.drop()
                raise
            return end

        return channel, opened()

    def _client_end(
        self, open_to_client: Callable[..., Awaitable[object]]
    ) -> Callable[..., Awaitable[ChannelEnd]]:
        async def opened(*origin: Any) -> ChannelEnd:
            end = ChannelEnd(self.line)
            try:
                await open_to_client(end, *origin)
            except BaseException:
                end.drop()
                raise
            return end

        return opened

    async def _listening(
        self, listen: Callable[[TaskServerConnection], Awaitable[asyncssh.SSHListener]]
    ) -> asyncssh.SSHListener | bool:
        try:
            upstream, _ = await self._client_session.way()
            return await listen(upstream)
        except (TaskUnreachableError, NotForwardedError) as error:
            self._client_session.refused(f"nothing listens for them in the task: {error}")
        except (asyncssh.Error, OSError):
            pass
        return False


def _refused(error: NotForwardedError) -> asyncssh.ChannelOpenError:
    return asyncssh.ChannelOpenError(asyncssh.OPEN_ADMINISTRATIVELY_PROHIBITED, str(error))
