"""Passes SSH channels on, packet by packet, between a client's connection and one to a task.

A channel has two ends, one in each connection; what arrives at one leaves at the other unread: data, requests
and their answers, exit codes and signals, ends. The windows are those of the two far ends, so that nobody may
send more than the other will take, and nothing piles up here. asyncssh's own channels would read all of that,
and know only what they know; this is the layer below them (`SSHConnection.add_channel`), so the version of
asyncssh is held (pyproject.toml), and the tests try every kind of channel with real clients and servers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Protocol, cast

import asyncssh
from asyncssh.constants import (
    MSG_CHANNEL_CLOSE,
    MSG_CHANNEL_EOF,
    MSG_CHANNEL_OPEN,
    OPEN_CONNECT_FAILED,
)
from asyncssh.packet import SSHPacket, SSHPacketHandler, String, UInt32

#: The biggest packet that is taken, in bytes of data: what OpenSSH takes and sends.
PACKET_BYTES = 32768

_log = logging.getLogger(__name__)


class Carrier(Protocol):
    """The connection that a channel's end is in; all of it is asyncssh's."""

    def add_channel(self, chan: Any) -> int:
        """Give a new channel its number."""

    def remove_channel(self, recv_chan: int) -> None:
        """Give the number back."""

    def send_packet(self, pkttype: int, *args: bytes) -> None:
        """Send; what cannot be sent any more is dropped."""

    def send_channel_open_confirmation(
        self, send_chan: int, recv_chan: int, recv_window: int, recv_pktsize: int, *result_args: bytes
    ) -> None:
        """Tell that a channel is open."""

    def send_channel_open_failure(self, send_chan: int, code: int, reason: str, lang: str) -> None:
        """Tell that a channel is refused."""


class End(SSHPacketHandler):
    """One end of a channel that is passed on; it stands where asyncssh would have a channel of its own.

    Either its peer opens it (`process_open`), or we do (`open`), always for the sake of another end.
    `ChannelOpenError` where its connection is closed.
    """

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier
        #: what the peer of this end takes: bytes of data at first, and in one packet
        self.window, self.packet_bytes = 0, PACKET_BYTES
        self.other: End | None = None
        self._number = carrier.add_channel(self)
        self._address: bytes | None = None
        self._got_close = self._sent_close = self._gone = False

    # what asyncssh calls

    def log_received_packet(self, *_: object) -> None:
        """Say nothing of each packet."""

    def process_open(self, send_chan: int, send_window: int, send_pktsize: int, _session: object) -> None:
        """Take what the peer says of a channel that it opens."""
        self._joined(send_chan, send_window, send_pktsize)
        self.opened()

    def process_open_confirmation(
        self, send_chan: int, send_window: int, send_pktsize: int, packet: SSHPacket
    ) -> None:
        """Take what the peer says of a channel that we opened: from now on it is passed on."""
        if self._address is not None:
            raise asyncssh.ProtocolError("Channel opened twice")
        self._joined(send_chan, send_window, send_pktsize)
        behind = self.other
        if behind is None or behind.ended:
            self.close()
        else:
            behind.confirm(self, packet.get_remaining_payload())

    def process_open_failure(self, code: int, reason: str, _lang: str) -> None:
        """Hear that a channel that we opened is refused."""
        if self._address is not None:
            raise asyncssh.ProtocolError("Open channel refused")
        self._forget()
        if self.other is not None:
            self.other.refuse(code, reason)

    def process_packet(self, pkttype: int, _pktid: int, packet: SSHPacket) -> bool:
        """Pass a packet on."""
        if self._address is None:
            raise asyncssh.ProtocolError("Channel not open")
        if not self._got_close:
            self._got_close = pkttype == MSG_CHANNEL_CLOSE
            self.received(pkttype, packet.get_remaining_payload())
        return True

    def process_connection_close(self, _error: Exception | None) -> None:
        """Hear that this end's connection is lost."""
        opened = self._address is not None
        self._gone = True
        self._forget()
        if self.other is not None and not self.other.ended:
            if opened:
                self.other.abandoned()
            else:
                self.other.refuse(OPEN_CONNECT_FAILED, "the connection to the task is lost")

    # what we do

    @property
    def ended(self) -> bool:
        """Whether nothing can be sent to the peer any more."""
        return self._gone or self._sent_close

    def open(self, kind: bytes, behind: End, window: int, *details: bytes) -> None:
        """Open a channel for another end, whose peer takes `window` bytes."""
        self.other = behind
        packet_bytes = min(behind.packet_bytes, PACKET_BYTES)
        self.carrier.send_packet(
            MSG_CHANNEL_OPEN,
            String(kind),
            UInt32(self._number),
            UInt32(window),
            UInt32(packet_bytes),
            *details,
        )

    def opened(self) -> None:
        """Do what is to be done when the peer has opened this end; the connection's business by default."""

    def confirm(self, other: End, details: bytes = b"") -> None:
        """Tell the peer that the channel is open, and behind it that end."""
        self.other = other
        self.carrier.send_channel_open_confirmation(
            self._number_of_peer(), self._number, other.window, min(other.packet_bytes, PACKET_BYTES), details
        )

    def refuse(self, code: int, reason: str) -> None:
        """Tell the peer that the channel cannot be had."""
        if not self._gone:
            self.carrier.send_channel_open_failure(self._number_of_peer(), code, reason, "en")
            self._forget()

    def received(self, pkttype: int, rest: bytes) -> None:
        """Handle what came from the peer; `rest`: all after the channel's number."""
        other = self.other
        if other is not None and not other.ended:
            # an end is answered by the other peer, who may have more to say before it: an exit code
            other.send(pkttype, rest)
        elif self._got_close:
            self.close()
        if self._got_close:
            self._forget_if_done()

    def send(self, pkttype: int, *rest: bytes) -> None:
        """Send to the peer, unless it is too late for that."""
        if self._sent_close or self._address is None:
            return
        self.carrier.send_packet(pkttype, self._address, *rest)
        if pkttype == MSG_CHANNEL_CLOSE:
            self._sent_close = True
            self._forget_if_done()

    def close(self) -> None:
        """End this end; its peer answers, and then its number is free."""
        self.send(MSG_CHANNEL_CLOSE)
        self._forget_if_done()

    def abandoned(self) -> None:
        """Hear that the connection of the other end is lost: nothing comes from there any more."""
        self.other = None
        self.send(MSG_CHANNEL_EOF)
        self.close()

    def _joined(self, number: int, window: int, packet_bytes: int) -> None:
        self._address = UInt32(number)
        self.window, self.packet_bytes = window, packet_bytes

    def _number_of_peer(self) -> int:
        return int.from_bytes(self._address or b"", "big")

    def _forget_if_done(self) -> None:
        if self._got_close and self._sent_close:
            self._forget()

    def _forget(self) -> None:
        if self._number >= 0:
            self.carrier.remove_channel(self._number)
            self._number = -1
        self._gone = True


class PassedOn(End):
    """An end whose peer opens it, and which is passed on as soon as that is allowed.

    `when_opened` is called with it when the peer's windows are known.
    """

    def __init__(self, carrier: Carrier, when_opened: Callable[[PassedOn], None]) -> None:
        super().__init__(carrier)
        self._when_opened = when_opened

    def opened(self) -> None:
        """Tell whoever decides."""
        self._when_opened(self)

    def pass_on(self, carrier: Carrier, kind: bytes, details: bytes) -> None:
        """Open the other end in another connection; refuses by itself where that is closed."""
        try:
            other = End(carrier)
        except asyncssh.ChannelOpenError as error:
            self.refuse(error.code, error.reason)
            return
        other.open(kind, self, self.window, details)


def handled(end: End) -> tuple[Any, Any]:
    """Give what asyncssh's handlers of channel opens give: the channel, and no session of asyncssh's."""
    return cast(Any, end), None
