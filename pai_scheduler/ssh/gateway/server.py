"""One process of the gateway: connections of clients, taken while the scheduler is there, kept while open."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import asyncssh

from pai_scheduler.rate_limit import place

from .client_session import (
    AuditQueue,
    AuthenticatedClient,
    ClientSession,
    Credential,
    LoginThrottle,
    ServiceClient,
    TaskUnreachableError,
    UnavailableError,
)
from .protocol import MOST_HELD, GatewaySettings, LoginAnswer, TaskTarget
from .relay import PACKET_BYTES, ChannelEnd, PeerConnection
from .session import ClientEnd, NotForwardedError, TaskServerConnection, check_port
from .session import check as check_forward

# A client's connection: who that is, and which channels are passed on to the task.


#: how many keys (an agent may hold many) and tokens one connection may try
_MOST_KEYS, _MOST_TOKENS = 20, 6
#: how many channels one connection may have: browsers open many through `-D`
_MOST_CHANNELS = 1000

#: Seconds between the end of all that is open and the end of a connection
_FAREWELL_SECONDS = 1.0

_ChannelT = TypeVar("_ChannelT")


class Connection(asyncssh.SSHServer):
    """A connection of a client's. Nothing is passed on, and no task is known, before they have logged in."""

    def __init__(self, gateway: GatewayServer) -> None:
        self.failures = 0
        self.tried = self.proved = False
        #: where the client is, as asyncio knows it
        self.peer = ""
        self.client_session: ClientSession | None = None
        self.line: PeerConnection
        self.ssh: asyncssh.SSHServerConnection
        self._gateway = gateway
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
        self._gateway.came(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Close all that was opened."""
        self.line.outlet.close()
        for task in self._tasks:
            task.cancel()
        if self.client_session is not None:
            self.client_session.end()
        self._gateway.gone(self)

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
            self._answers[credential] = answer = await self._gateway.admit(self, credential)
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
        self.client_session = self._gateway.enter(self, proven, answer)

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


# Those who are connected and have not logged in: so many, so many of one place, and who goes first.

#: how many may be there before they have logged in, from one place and in all, in one process
MOST_OF_A_PLACE, MOST = 100, 400


class PendingClient(Protocol):
    """A connection that is not logged in yet."""

    #: how often it was refused; whether it has tried at all; whether it has shown a right token
    failures: int
    tried: bool
    proved: bool

    def abort(self) -> None:
        """Close the connection at once."""


class PendingClients:
    """Makes room for newcomers by cutting off the least likely: who was refused, then who says nothing.

    Who has shown a right token, and only waits for the answer, goes last.
    """

    def __init__(self, most_of_a_place: int = MOST_OF_A_PLACE, most: int = MOST) -> None:
        self._most_of_a_place, self._most = most_of_a_place, most
        # in the order in which they came
        self._places: dict[str, dict[PendingClient, None]] = defaultdict(dict)
        self._where: dict[PendingClient, str] = {}

    def __len__(self) -> int:
        return len(self._where)

    def come(self, caller: PendingClient, peer: str) -> None:
        """Add a new connection."""
        where = place(peer)
        if len(self._places[where]) >= self._most_of_a_place:
            self._cut_off(where)
        elif len(self._where) >= self._most:
            self._cut_off(max(self._places, key=lambda name: len(self._places[name])))
        self._places[where][caller] = None
        self._where[caller] = where

    def leave(self, caller: PendingClient) -> None:
        """Remove a client that logged in or went away; nothing happens where it is not listed."""
        where = self._where.pop(caller, None)
        if where is not None:
            del self._places[where][caller]
            if not self._places[where]:
                del self._places[where]

    def _cut_off(self, where: str) -> None:
        # the oldest of equals: those who mean it need a second
        least = max(
            self._places[where], key=lambda caller: (not caller.proved, caller.failures, not caller.tried)
        )
        self.leave(least)
        least.abort()


# One process of the gateway: takes connections while the scheduler is there, keeps those that are open.

#: Seconds for logging in; how often a client that gives none is asked for a sign of life.
_LOGIN_SECONDS, _KEEPALIVE_TIMES = 60.0, 3
#: Seconds until no more is taken where the system gives nothing, and between two sums in the log.
_BREATH_SECONDS, _SUM_SECONDS = 1.0, 60.0
#: quick ones: OpenSSH's client would else take chacha20, which costs four times as much here
_CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")

_log = logging.getLogger(__name__)


class GatewayServer:
    """Takes connections from `sockets`, and lets people in as the service says."""

    def __init__(self, settings: GatewaySettings, sockets: Sequence[socket.socket]) -> None:
        self._sockets = list(sockets)
        self._service = ServiceClient(settings.service, settings.token)
        self._notes = AuditQueue(self._service)
        self._keepalive, self._recheck = settings.keepalive, settings.recheck
        self._guard = LoginThrottle()
        self._waiting = PendingClients()
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._checks: set[asyncio.Task[LoginAnswer | None]] = set()
        self._nobody_left = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._options = asyncssh.SSHServerConnectionOptions(
            server_host_keys=[asyncssh.import_private_key(settings.host_key)],
            server_version="PAI",
            encryption_algs=_CIPHERS,
            # what is compressed grows when it is unpacked
            compression_algs=["none"],
            login_timeout=_LOGIN_SECONDS,
            keepalive_interval=settings.keepalive,
            keepalive_count_max=_KEEPALIVE_TIMES,
            gss_host=None,
            encoding=None,
            line_editor=False,
            allow_pty=True,
            agent_forwarding=True,
        )

    async def run(self, until: asyncio.Event, replaced: asyncio.Event) -> None:
        """Take connections until that happens, then wait for the last one's end.

        `replaced`: then the scheduler is still there, and who has come may log in; else nobody can any more.
        """
        for listening in self._sockets:
            listening.setblocking(False)
            self._loop.add_reader(listening, self._accept, listening)
        always = [asyncio.create_task(self._sum_up()), asyncio.create_task(self._look_again())]
        await until.wait()
        for listening in self._sockets:
            self._loop.remove_reader(listening)
            listening.close()
        self._sockets.clear()
        if replaced.is_set():
            await asyncio.gather(*self._tasks, return_exceptions=True)
        for connection in self._connections:
            if connection.client_session is None:
                connection.abort()
        if self._connections:
            why = "others take new connections" if replaced.is_set() else "the scheduler is gone"
            _log.info("%s; %d connections stay open", why, len(self._connections))
            self._nobody_left.clear()
            await self._nobody_left.wait()
        await self._notes.close()
        await self._service.close()
        for task in always:
            task.cancel()

    # what connections ask

    def came(self, connection: Connection) -> None:
        """Count a newcomer; somebody else may have to make room."""
        self._connections.add(connection)
        self._waiting.come(connection, connection.peer)

    async def admit(self, connection: Connection, credential: Credential) -> LoginAnswer | None:
        """Ask the service whom that proves; who guesses waits for the answer.

        It is asked, and a wrong one counted, to the end, also where the client hangs up meanwhile.
        """
        checking = asyncio.create_task(self._check(connection, credential))
        self._checks.add(checking)
        checking.add_done_callback(self._checks.discard)
        return await asyncio.shield(checking)

    async def _check(self, connection: Connection, credential: Credential) -> LoginAnswer | None:
        peer, (login, method, secret) = connection.peer, credential

        async def ask() -> LoginAnswer | None:
            answer = await self._service.login(
                {
                    "login": login,
                    "method": "password" if method == "password" else "publickey",
                    "credential": secret,
                    "peer": peer,
                }
            )
            connection.proved = connection.proved or (answer is not None and method == "password")
            return answer

        try:
            return await self._guard.check(peer, credential, ask)
        except UnavailableError as error:
            _log.warning("%s", error)
            if connection in self._connections:
                connection.send_auth_banner(
                    "The scheduler does not answer just now; try again in a minute.\n"
                )
            return None

    def enter(self, connection: Connection, credential: Credential, answer: LoginAnswer) -> ClientSession:
        """Begin a client's session."""
        self._waiting.leave(connection)
        client = AuthenticatedClient(credential[0], connection.peer, answer, credential)
        return ClientSession(client, self._service, self._notes, self._keepalive)

    def gone(self, connection: Connection) -> None:
        """Forget a connection."""
        self._waiting.leave(connection)
        self._connections.discard(connection)
        if not self._connections:
            self._nobody_left.set()

    # how they come

    def _accept(self, listening: socket.socket) -> None:
        # one at a time: the other processes take theirs
        try:
            accepted, _ = listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as error:
            if error.errno not in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                raise
            _log.error("no more connections can be taken for now: %s", error.strerror)
            self._loop.remove_reader(listening)
            self._loop.call_later(_BREATH_SECONDS, self._go_on, listening)
            return
        accepted.setblocking(False)
        task = self._loop.create_task(self._take(accepted))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _go_on(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            self._loop.add_reader(listening, self._accept, listening)

    async def _take(self, accepted: socket.socket) -> None:
        # who does not log in, or not in time, ends it: the guard has counted what is to be counted
        with suppress(asyncssh.Error, OSError):
            await asyncssh.run_server(
                accepted, options=self._options, server_factory=lambda: Connection(self)
            )

    async def _sum_up(self) -> None:
        while True:
            await asyncio.sleep(_SUM_SECONDS)
            self._guard.sum_up()

    async def _look_again(self) -> None:
        """End the connections of those whose key or token was revoked."""
        while True:
            await asyncio.sleep(self._recheck)
            inside = [
                (each, each.client_session) for each in self._connections if each.client_session is not None
            ]
            try:
                for start in range(0, len(inside), MOST_HELD):
                    part = inside[start : start + MOST_HELD]
                    for place in await self._service.still(
                        [client_session.held for _, client_session in part]
                    ):
                        part[place][0].revoke()
            except UnavailableError as error:
                # away is not revoked
                _log.debug("%s", error)
