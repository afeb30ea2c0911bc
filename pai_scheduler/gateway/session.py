"""The sessions of clients (shells, commands, SFTP), held back until they ask for something, then passed on.

A client's session is taken at once, and opened in the task when it asks for something; what came before (its
language) is kept until then. So what stands in the way is said in the client's language, where a person sees
it: on the error stream of what they start, which then ends with 255.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

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
#: the requests that start something
_STARTS = (b"shell", b"exec", b"subsystem")


class Watcher(Protocol):
    """The connection that a session is in, as far as the session tells it anything."""

    def session_wanted(self, session: Session) -> None:
        """Have the session opened in the task (`begin`), or say why not (`fail`)."""

    def session_starts(self, kind: Kind) -> None:
        """Hear what is started in the task."""

    def agent_lent(self) -> None:
        """Hear that the client lends its agent."""


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
    """A client's end of a session."""

    def __init__(self, carrier: Carrier, watcher: Watcher) -> None:
        super().__init__(carrier)
        #: what is said when a terminal's shell has opened
        self.notice = ""
        #: gives the sentence for a way that was lost
        self.lost: Callable[[], str] = lambda: "The connection to the task was lost."
        self._watcher = watcher
        self._environment: dict[bytes, bytes] = {}
        self._terminal = self._wanted = self._begun = False
        self._kept: _Kept | None = _Kept()
        self._asked: deque[_Asked] = deque()
        #: why nothing comes of it, as long as nothing was started that could say so
        self._failure: str | None = None
        self._exit_said = False
        self._room = self._owed = 0

    @property
    def language(self) -> str:
        """The client's language, "en" or "zh_CN", as far as it has said."""
        for name in (b"LC_ALL", b"LC_MESSAGES", b"LANG"):
            if value := self._environment.get(name):
                return choose_locale(value[:64].decode("ascii", "replace"))
        return "en"

    def opened(self) -> None:
        """Take it; nothing can be sent to it yet but requests."""
        self.carrier.send_channel_open_confirmation(self._number_of_peer(), self._number, 0, PACKET_BYTES)

    def begin(self, carrier: Carrier) -> None:
        """Open it in the task. `asyncssh.ChannelOpenError` where that connection is closed."""
        self._begun = True
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
        """Say why nothing comes of it, and end it; before anything was started, when it is."""
        kept, self._kept = self._kept, None
        # once it was passed on, how much of the client's window is left beside our part is not known here
        room = self._room if kept is None else self.window
        started = kept is None
        for pkttype, rest in kept.packets if kept else ():
            started = (pkttype == MSG_CHANNEL_REQUEST and self._promise(rest)) or started
        for _ in range(len(self._asked)):
            self.send(MSG_CHANNEL_FAILURE)
        if started:
            self._end_with(words, room)
        else:
            self._failure = words

    def _promise(self, rest: bytes) -> bool:
        """Answer a request that nothing comes of with a yes, so that more is asked; say whether it starts."""
        name, answered, _ = _request(rest)
        if answered:
            self.send(MSG_CHANNEL_SUCCESS)
        return name in _STARTS

    def _end_with(self, words: str, room: int) -> None:
        self._say(words, MSG_CHANNEL_EXTENDED_DATA, UInt32(EXTENDED_DATA_STDERR), room)
        self.send(MSG_CHANNEL_REQUEST, String("exit-status"), Boolean(False), UInt32(FAILED))
        self.send(MSG_CHANNEL_EOF)
        self.close()

    def received(self, pkttype: int, rest: bytes) -> None:
        """Keep it, or pass it on and remember what it asks."""
        if self._kept is not None:
            self._keep(self._kept, pkttype, rest)
            return
        if self._failure is not None:
            if pkttype == MSG_CHANNEL_REQUEST and self._promise(rest):
                self._end_with(self._failure, self.window)
            elif pkttype == MSG_CHANNEL_CLOSE:
                self.close()
            return
        if pkttype == MSG_CHANNEL_REQUEST:
            name, answered, details = _request(rest)
            self._heed(name, details)
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
        if pkttype == MSG_CHANNEL_WINDOW_ADJUST and not self._begun:
            self.window = min(self.window + int.from_bytes(rest[:4], "big"), _MOST_OF_WINDOW)
            return
        kept.packets.append((pkttype, rest))
        kept.size += len(rest)
        if len(kept.packets) > _MOST_KEPT or kept.size > _MOST_KEPT_BYTES:
            raise asyncssh.ProtocolError("Too many requests before the session started anything")
        if pkttype != MSG_CHANNEL_REQUEST:
            return
        name, answered, details = _request(rest)
        if name == b"env":
            variable = details.get_string()
            self._environment[variable] = details.get_string()
        elif name == b"pty-req":
            self._terminal = True
        # some wait for each answer before they ask for more
        if (answered or name in _STARTS) and not self._wanted:
            self._wanted = True
            self._watcher.session_wanted(self)

    def _heed(self, name: bytes, details: SSHPacket) -> None:
        if name == b"pty-req":
            self._terminal = True
        elif name == b"auth-agent-req@openssh.com":
            self._watcher.agent_lent()
        elif name == b"shell":
            self._watcher.session_starts("shell")
        elif name == b"subsystem" and details.get_string() == b"sftp":
            self._watcher.session_starts("sftp")
        elif name in _STARTS:
            self._watcher.session_starts("exec")

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
