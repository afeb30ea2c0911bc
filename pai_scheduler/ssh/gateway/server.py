"""One process of the gateway: takes connections while the scheduler is there, keeps those that are open."""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import asyncssh

from pai_scheduler.rate_limit import place

from .client_session import AuditQueue, AuthenticatedClient, ClientSession, Credential, LoginThrottle
from .connection import Connection
from .protocol import MOST_HELD, GatewaySettings, LoginAnswer
from .service_client import ServiceClient, UnavailableError

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
