"""The sessions of clients (shells, commands, SFTP), held back until they start something, then passed on.

A client's session is taken at once, and opened in the task when it starts something; what it asked before
that (a terminal, its language) is kept until then. So what stands in the way is said in their language,
where a person sees it: on the error stream of what they tried to open, which then ends with 255.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

import asyncssh
from asyncssh.constants import (
    EXTENDED_DATA_STDERR,
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_DATA,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_EXTENDED_DATA,
    MSG_CHANNEL_FAILURE,
    MSG_CHANNEL_REQUEST,
    MSG_CHANNEL_SUCCESS,
    MSG_CHANNEL_WINDOW_ADJUST,
)
from asyncssh.packet import Boolean, SSHPacket, String, UInt32

from ..job.messages import choose_locale
from .relay import PACKET_BYTES, Carrier, End
from .wire import Kind

#: the exit code of what could not be opened, as OpenSSH's client has it
FAILED = 255
#: Bytes of the client's window that are kept for sentences of ours, so that there is always room for them.
_ROOM = 4096
#: What a client may ask before it starts anything: more than any does.
_MOST_KEPT, _MOST_KEPT_BYTES = 256, 256 * 1024
_MOST_OF_WINDOW = 2**32 - 1


@dataclass(frozen=True, slots=True)
class Start:
    """What a session starts, in the client's `language`; `agent`: it forwards its agent."""

    kind: Kind
    language: str
    agent: bool


@dataclass(slots=True)
class _Asked:
    """A client's request whose answer is still to come."""

    name: bytes
    notice: str = ""


@dataclass(slots=True)
class _Kept:
    """What came before the session was opened in the task."""

    packets: list[tuple[int, bytes]] = field(default_factory=list)
    size: int = 0


class Session(End):
    """A client's end of a session. `when_started` is called once, and answers with `open` or `fail`."""

    def __init__(self, carrier: Carrier, when_started: Callable[[Session, Start], None]) -> None:
        super().__init__(carrier)
        self.start: Start | None = None
        #: what is said when a terminal's shell has opened
        self.notice = ""
        #: gives the sentence for a way that was lost
        self.lost: Callable[[], str] = lambda: "The connection to the task was lost."
        self._when_started = when_started
        self._environment: dict[bytes, bytes] = {}
        self._terminal = self._agent = False
        self._kept: _Kept | None = _Kept()
        self._asked: deque[_Asked] = deque()
        self._exit_said = False
        self._room = self._owed = 0

    def opened(self) -> None:
        """Take it; nothing can be sent to it yet but requests."""
        self.carrier.send_channel_open_confirmation(self._number_of_peer(), self._number, 0, PACKET_BYTES)

    def begin(self, carrier: Carrier) -> None:
        """Open it in the task. `asyncssh.ChannelOpenError` where that connection is closed."""
        self._room = _ROOM if self.window >= 2 * _ROOM else 0
        End(carrier).open(b"session", self, self.window - self._room)

    def confirm(self, other: End, _details: bytes = b"") -> None:
        """Send on what was kept: the task's server has opened the session."""
        self.other = other
        if other.window:
            self.send(MSG_CHANNEL_WINDOW_ADJUST, UInt32(other.window))
        kept, self._kept = self._kept, None
        for pkttype, rest in kept.packets if kept else ():
            self.received(pkttype, rest)

    def refuse(self, _code: int, reason: str) -> None:
        """Say that the task's server refuses."""
        self.fail(reason)

    def abandoned(self) -> None:
        """Say that the connection to the task was lost, unless all had been said."""
        self.other = None
        if self._exit_said:
            self.send(MSG_CHANNEL_EOF)
            self.close()
        else:
            self.fail(self.lost())

    def fail(self, words: str) -> None:
        """Say why nothing comes of it, and end it."""
        kept, self._kept = self._kept, None
        for pkttype, rest in kept.packets if kept else ():
            if pkttype == MSG_CHANNEL_REQUEST and _request(rest)[1]:
                self.send(MSG_CHANNEL_SUCCESS)
        for _ in range(len(self._asked)):
            self.send(MSG_CHANNEL_FAILURE)
        # once it was passed on, how much of the client's window is left beside our part is not known here
        room = self._room if kept is None else self.window
        self._say(words, MSG_CHANNEL_EXTENDED_DATA, UInt32(EXTENDED_DATA_STDERR), room)
        self.send(MSG_CHANNEL_REQUEST, String("exit-status"), Boolean(False), UInt32(FAILED))
        self.send(MSG_CHANNEL_EOF)
        self.close()

    def received(self, pkttype: int, rest: bytes) -> None:
        """Keep it, or pass it on and remember what it asks."""
        if self._kept is not None:
            self._keep(self._kept, pkttype, rest)
            return
        if pkttype == MSG_CHANNEL_REQUEST:
            name, answered, _ = _request(rest)
            notice = self.notice if name == b"shell" and self._terminal else ""
            if answered:
                self._asked.append(_Asked(name, notice))
            super().received(pkttype, rest)
            if notice and not answered:
                self._say(notice, MSG_CHANNEL_DATA, b"", self._room)
            return
        if pkttype == MSG_CHANNEL_WINDOW_ADJUST and self._owed:
            more = int.from_bytes(rest[:4], "big")
            paid = min(more, self._owed)
            self._owed -= paid
            rest = UInt32(more - paid)
        super().received(pkttype, rest)

    def send(self, pkttype: int, *rest: bytes) -> None:
        """Send to the client; an answer is to the first request that waits for one."""
        super().send(pkttype, *rest)
        if pkttype in (MSG_CHANNEL_SUCCESS, MSG_CHANNEL_FAILURE) and self._asked:
            asked = self._asked.popleft()
            if pkttype == MSG_CHANNEL_SUCCESS and asked.notice:
                self._say(asked.notice, MSG_CHANNEL_DATA, b"", self._room)
        elif pkttype == MSG_CHANNEL_REQUEST and rest[0][4:9] == b"exit-":
            self._exit_said = True

    def _keep(self, kept: _Kept, pkttype: int, rest: bytes) -> None:
        if pkttype == MSG_CHANNEL_CLOSE:
            self._kept = None
            self.close()
            return
        if pkttype == MSG_CHANNEL_WINDOW_ADJUST and self.start is None:
            self.window = min(self.window + int.from_bytes(rest[:4], "big"), _MOST_OF_WINDOW)
            return
        kept.packets.append((pkttype, rest))
        kept.size += len(rest)
        if len(kept.packets) > _MOST_KEPT or kept.size > _MOST_KEPT_BYTES:
            raise asyncssh.ProtocolError("Too many requests before the session started anything")
        if pkttype == MSG_CHANNEL_REQUEST and self.start is None:
            self._heed(*_request(rest))

    def _heed(self, name: bytes, _answered: bool, details: SSHPacket) -> None:
        if name == b"pty-req":
            self._terminal = True
        elif name == b"auth-agent-req@openssh.com":
            self._agent = True
        elif name == b"env":
            self._environment[details.get_string()] = details.get_string()
        elif name in (b"shell", b"exec", b"subsystem"):
            kind: Kind = "shell" if name == b"shell" else "exec"
            if name == b"subsystem" and details.get_string() == b"sftp":
                kind = "sftp"
            self.start = Start(kind, self._language(), self._agent)
            self._when_started(self, self.start)

    def _language(self) -> str:
        for name in (b"LC_ALL", b"LC_MESSAGES", b"LANG"):
            if value := self._environment.get(name):
                return choose_locale(value[:64].decode("ascii", "replace"))
        return "en"

    def _say(self, words: str, pkttype: int, prefix: bytes, room: int) -> None:
        """Write a sentence into the client's stream, as much as its window has room for."""
        ending = "\r\n" if self._terminal else "\n"
        text = (ending.join(words.splitlines()) + ending).encode()[: min(room, self.packet_bytes)]
        if text:
            self._room -= min(self._room, len(text))
            self._owed += len(text)
            self.send(pkttype, prefix, String(text))


def _request(rest: bytes) -> tuple[bytes, bool, SSHPacket]:
    """Read a channel request: its name, whether it is to be answered, its details."""
    packet = SSHPacket(rest)
    return packet.get_string(), packet.get_boolean(), packet
