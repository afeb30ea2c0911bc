"""A client's connection: who that is, and which channels are passed on to the task."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Protocol, TypeVar

import asyncssh
from asyncssh.constants import (
    MSG_IGNORE,
    OPEN_ADMINISTRATIVELY_PROHIBITED,
    OPEN_CONNECT_FAILED,
    OPEN_RESOURCE_SHORTAGE,
)
from asyncssh.packet import SSHPacket

from . import forwarding
from .forwarding import Listeners, NotForwardedError
from .guard import Credential
from .relay import PassedOn, handled
from .session import Session
from .upstream import WAITING_BYTES, Upstream
from .visit import NoWayError, Visit
from .wire import Kind, LoginAnswer, Target

#: how many keys (an agent may hold many) and tokens one connection may try
_MOST_KEYS, _MOST_TOKENS = 20, 6
#: how many channels one connection may have: browsers open many through `-D`
_MOST_CHANNELS = 1000
#: what one may send before one is let in; a key exchange has some kilobytes
_MOST_UNPROVEN_BYTES = 300 * 1024

#: Seconds between the end of all that is open and the end of a connection
_FAREWELL_SECONDS = 1.0

_T = TypeVar("_T")


class Entrance(Protocol):
    """What stands behind all connections of this process."""

    async def admit(self, connection: Connection, credential: Credential) -> LoginAnswer | None:
        """Find out whom a credential (login name, method, key or token) proves; None: nobody."""

    def enter(self, connection: Connection, credential: Credential, answer: LoginAnswer) -> Visit:
        """Let in whom that credential proves."""

    def gone(self, connection: Connection) -> None:
        """Hear that a connection has ended."""


class _Owner(asyncssh.SSHServer):
    """What asyncssh asks while somebody logs in."""

    def __init__(self, ask: Callable[[Credential], Awaitable[bool]], when_in: Callable[[], None]) -> None:
        self._ask = ask
        self._when_in = when_in

    def begin_auth(self, _username: str) -> bool:
        """Let nobody in without a proof."""
        return True

    def public_key_auth_supported(self) -> bool:
        """Take keys."""
        return True

    async def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        """Ask whether it would be enough to have that key; asyncssh checks whether they do."""
        return await self._ask((username, "publickey", _line(key.public_data)))

    def password_auth_supported(self) -> bool:
        """Take tokens."""
        return True

    async def validate_password(self, username: str, password: str) -> bool:
        """Ask whose token that is."""
        return await self._ask((username, "password", password))

    def auth_completed(self) -> None:
        """Hear that somebody is let in."""
        self._when_in()


class Connection(asyncssh.SSHServerConnection):
    """A connection of a client's. Nothing is passed on, and no task is known, before they have logged in."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        options: asyncssh.SSHServerConnectionOptions,
        entrance: Entrance,
    ) -> None:
        super().__init__(loop, options)
        self.failures = 0
        self.tried = self.proved = False
        self.lends_agent = False
        #: where the client is, as asyncio knows it
        self.peer = ""
        self.visit: Visit | None = None
        self._entrance = entrance
        self._answers: dict[Credential, LoginAnswer | None] = {}
        self._proven: Credential | None = None
        self._protocol_factory = lambda: _Owner(self._ask, self._enter)

    # the connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what waits to be sent."""
        peer = transport.get_extra_info("peername")
        self.peer = str(peer[0]) if peer else "?"
        if isinstance(transport, asyncio.WriteTransport):
            transport.set_write_buffer_limits(WAITING_BYTES)
        super().connection_made(transport)

    def data_received(self, data: bytes, datatype: Any = None) -> None:
        """Read on; strangers may not fill the memory while they wait for an answer."""
        super().data_received(data, datatype)
        if not self._auth_complete and len(self._inpbuf) > _MOST_UNPROVEN_BYTES:
            self.abort()

    def _cleanup(self, exc: Exception | None) -> None:
        super()._cleanup(exc)
        if self.visit is not None:
            self.visit.end()
        self._entrance.gone(self)

    def pause_writing(self) -> None:
        """Read no more from the task while the client takes nothing."""
        if self.visit is not None and self.visit.upstream is not None:
            self.visit.upstream.hold_back(True)

    def resume_writing(self) -> None:
        """Read on."""
        if self.visit is not None and self.visit.upstream is not None:
            self.visit.upstream.hold_back(False)

    def hold_back(self, held: bool) -> None:
        """Read no more from the client for now, or go on: the task takes nothing."""
        if isinstance(self._transport, asyncio.ReadTransport):
            (self._transport.pause_reading if held else self._transport.resume_reading)()

    def send_packet(self, pkttype: int, *args: bytes, handler: Any = None) -> None:
        """Send, less the empty packets against a weakness of CBC, which is not offered."""
        if pkttype != MSG_IGNORE:
            super().send_packet(pkttype, *args, handler=handler)

    def log_sent_packet(self, *_: object) -> None:
        """Say nothing of each packet."""

    # who that is

    async def reload_config(self) -> None:
        """Keep the options: they are the same for everybody."""

    async def validate_public_key(self, username: str, key_data: bytes, msg: bytes, signature: bytes) -> bool:
        """Let in whoever signs with a key that is known; that somebody would (`msg` is empty) is no proof."""
        valid = await super().validate_public_key(username, key_data, msg, signature)
        if valid and msg:
            self._proven = (username, "publickey", _line(key_data))
        return valid

    async def _ask(self, credential: Credential) -> bool:
        if credential not in self._answers:
            self.tried = True
            _, method, _ = credential
            most = _MOST_KEYS if method == "publickey" else _MOST_TOKENS
            if sum(tried[1] == method for tried in self._answers) >= most:
                raise asyncssh.PermissionDenied("Too many authentication failures")
            self._answers[credential] = answer = await self._entrance.admit(self, credential)
            self.failures += answer is None
        if self._answers[credential] is None:
            return False
        if credential[1] == "password":
            self._proven = credential
        return True

    def _enter(self) -> None:
        proven = self._proven
        answer = self._answers.get(proven) if proven else None
        if proven is None or answer is None or proven[0] != self._username:
            raise asyncssh.PermissionDenied("Nobody was proven to be there")
        self._answers.clear()
        self.visit = self._entrance.enter(self, proven, answer)

    def revoke(self) -> None:
        """End it with all that is open: what one logged in with is good no more."""
        if self.visit is not None and self.visit.revoke():
            # what is open has been told why, and is to read it
            reason = self.visit.lost()
            self._loop.call_later(_FAREWELL_SECONDS, self.disconnect, asyncssh.DISC_BY_APPLICATION, reason)

    # what they want

    def _process_session_open(self, packet: SSHPacket) -> tuple[Any, Any]:
        packet.check_end()
        self._check_room()
        return handled(Session(self, self))

    def _process_direct_tcpip_open(self, packet: SSHPacket) -> tuple[Any, Any]:
        details = packet.get_remaining_payload()
        host, port = _allowed(forwarding.destination, details)

        def check(target: Target) -> None:
            try:
                forwarding.check(host, target["forward"])
            except NotForwardedError:
                self._visit.refused(f"no connection is forwarded to {ascii(host)[:100]}, port {port}")
                raise

        return self._pass_on(b"direct-tcpip", details, check, f"{host}:{port}")

    def _process_direct_streamlocal_at_openssh_dot_com_open(self, packet: SSHPacket) -> tuple[Any, Any]:
        details = packet.get_remaining_payload()
        path = _allowed(forwarding.unix_path, details)
        return self._pass_on(b"direct-streamlocal@openssh.com", details, lambda _: None, path[:200])

    def _process_tun_at_openssh_dot_com_open(self, _packet: SSHPacket) -> tuple[Any, Any]:
        raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, "networks are not forwarded")

    def _process_tcpip_forward_global_request(self, packet: SSHPacket) -> None:
        self._answer_later(partial(self._listen, packet.get_remaining_payload()))

    def _process_cancel_tcpip_forward_global_request(self, packet: SSHPacket) -> None:
        self._answer_later(partial(self._listen_no_more, packet.get_remaining_payload()))

    def _process_streamlocal_forward_at_openssh_dot_com_global_request(self, packet: SSHPacket) -> None:
        self._answer_later(partial(self._listen_at_path, packet.get_remaining_payload()))

    def _process_cancel_streamlocal_forward_at_openssh_dot_com_global_request(
        self, packet: SSHPacket
    ) -> None:
        self._answer_later(partial(self._listen_at_path_no_more, packet.get_remaining_payload()))

    # how they get it

    @property
    def _visit(self) -> Visit:
        if self.visit is None:
            raise asyncssh.PermissionDenied("Nobody has logged in")
        return self.visit

    def _check_room(self) -> None:
        if len(self._channels) >= _MOST_CHANNELS:
            raise asyncssh.ChannelOpenError(OPEN_RESOURCE_SHORTAGE, f"{_MOST_CHANNELS} channels are open")

    def session_wanted(self, session: Session) -> None:
        """Open a session in the task."""
        self.create_task(self._begin(session))

    def session_starts(self, kind: Kind) -> None:
        """Have it noted."""
        self._visit.used(kind)

    def agent_lent(self) -> None:
        """Let the task's server ask for it."""
        self.lends_agent = True
        self._visit.used("agent")

    async def _begin(self, session: Session) -> None:
        visit = self._visit
        visit.language = session.language
        try:
            upstream, target = await visit.way()
            session.notice = target.get("notice", "")
            session.lost = visit.lost
            session.begin(upstream)
        except NoWayError as error:
            session.fail(str(error))
        except asyncssh.ChannelOpenError:
            session.fail(visit.lost())

    def _pass_on(
        self, kind: bytes, details: bytes, check: Callable[[Target], None], detail: str
    ) -> tuple[Any, Any]:
        self._check_room()

        async def pass_on(end: PassedOn) -> None:
            try:
                upstream, target = await self._visit.way()
                check(target)
            except NoWayError as error:
                end.refuse(OPEN_CONNECT_FAILED, str(error))
            except NotForwardedError as error:
                end.refuse(OPEN_ADMINISTRATIVELY_PROHIBITED, str(error))
            else:
                self._visit.used("forward", detail)
                end.pass_on(upstream, kind, details)

        def decide(end: PassedOn) -> None:
            self.create_task(pass_on(end))

        return handled(PassedOn(self, decide))

    def _answer_later(self, ask: Callable[[Upstream], None]) -> None:
        """Do something in the task that `_answer`s the oldest global request that has no answer yet."""

        async def go() -> None:
            try:
                upstream, _ = await self._visit.way()
                ask(upstream)
            except (NoWayError, NotForwardedError) as error:
                self._visit.refused(f"nothing listens for them in the task: {error}")
                self._answer(None)

        self.create_task(go())

    def _answer(self, given: bytes | None) -> None:
        # to asyncssh an answer without anything in it is `True`
        self._report_global_response(given is not None and (given or True))

    def _listen(self, details: bytes, upstream: Upstream) -> None:
        host, port = Listeners.wanted(details)

        def answered(given: bytes | None) -> None:
            if given is not None:
                chosen = port or int.from_bytes(given[:4], "big")
                upstream.listeners.add(host, chosen)
                self._visit.used("remote-forward", str(chosen))
            self._answer(given)

        upstream.ask(b"tcpip-forward", Listeners.asked(port), answered)

    def _listen_no_more(self, details: bytes, upstream: Upstream) -> None:
        _, port = Listeners.wanted(details)
        upstream.listeners.remove(port)
        upstream.ask(b"cancel-tcpip-forward", Listeners.asked(port), self._answer)

    def _listen_at_path(self, details: bytes, upstream: Upstream) -> None:
        path = forwarding.unix_path(details)

        def answered(given: bytes | None) -> None:
            if given is not None:
                upstream.listeners.add_path(path)
                self._visit.used("remote-forward", path[:200])
            self._answer(given)

        upstream.ask(b"streamlocal-forward@openssh.com", details, answered)

    def _listen_at_path_no_more(self, details: bytes, upstream: Upstream) -> None:
        upstream.listeners.remove_path(forwarding.unix_path(details))
        upstream.ask(b"cancel-streamlocal-forward@openssh.com", details, self._answer)


def _line(key_data: bytes) -> str:
    """Write a key as OpenSSH does."""
    kind = SSHPacket(key_data).get_string().decode("ascii", "replace")
    return f"{kind} {base64.b64encode(key_data).decode()}"


def _allowed(read: Callable[[bytes], _T], details: bytes) -> _T:
    try:
        return read(details)
    except NotForwardedError as error:
        raise asyncssh.ChannelOpenError(OPEN_ADMINISTRATIVELY_PROHIBITED, str(error)) from error
