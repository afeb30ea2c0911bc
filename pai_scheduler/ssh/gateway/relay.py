"""Relay of SSH channels between a client's connection and one to a task, with flow control."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

import asyncssh

# Notices when a connection takes no more, so that no more is read for it: a window is only what a peer
# says.
#
# A peer may promise to take gigabytes and then read nothing. What it does not read would pile up here, in
# the connection's buffer, so its socket is looked at: while the kernel has no room for more, writers wait.


class Sock(Protocol):
    """The socket methods in use: asyncio exposes its own sockets only in part."""

    def fileno(self) -> int:
        """Return its file descriptor."""

    def dup(self) -> socket.socket:
        """Return another descriptor of the same socket."""


class FlowControl:
    """One connection's way out. It may be closed, and is never full then."""

    def __init__(self, sock: Sock) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._poll = select.poll()
        self._poll.register(sock.fileno(), select.POLLOUT)
        # the loop watches the number that the connection uses; this is another one of the same socket
        self._watched: socket.socket | None = None
        self._waiting: dict[Callable[[], None], None] = {}
        self._closed = False

    @property
    def full(self) -> bool:
        """Return whether the kernel has no room for what would be sent."""
        return not self._closed and not self._poll.poll(0)

    def wait(self, ready: Callable[[], None]) -> None:
        """Call `ready` once there is room, unless it is called off."""
        if self._closed:
            return
        self._waiting[ready] = None
        if self._watched is None:
            with suppress(OSError):  # it has just been closed
                self._watched = self._sock.dup()
                self._loop.add_writer(self._watched, self._room)

    def call_off(self, ready: Callable[[], None]) -> None:
        """Cancel a `wait`."""
        self._waiting.pop(ready, None)

    def close(self) -> None:
        """Close the watched socket: the connection has ended."""
        self._closed = True
        self._waiting.clear()
        self._rest()

    def _room(self) -> None:
        # the connection sends first what it has kept; only what is left of the room is for more
        self._loop.call_soon(self._tell)

    def _tell(self) -> None:
        if self.full:
            return
        waiting, self._waiting = self._waiting, {}
        for ready in waiting:
            ready()
        if not self._waiting:
            self._rest()

    def _rest(self) -> None:
        if self._watched is not None:
            self._loop.remove_writer(self._watched)
            self._watched.close()
            self._watched = None


# Passes SSH channels on between a client's connection and one to a task.
#
# A channel has two ends, one in each connection; what arrives at one leaves at the other. A slow peer is
# waited for: while one end does not take what it is sent, nothing is read at the other, whose peer may then
# send no more than the rest of its window.

#: The biggest packet that is taken, in bytes of data. Big ones are cheaper; OpenSSH sends up to 256 KiB.
PACKET_BYTES = 128 * 1024
#: How much a peer may send before it is told that more is wanted, by how many channels there are: together
#: those of one connection may fill so much memory here.
_WINDOWS = ((8, 2 * 1024 * 1024), (64, 256 * 1024))
_SMALL_WINDOW = 64 * 1024
#: Bytes that wait for a peer's window before its other end is read no more, and until it is again.
_HIGH_WATER, _LOW_WATER = 512 * 1024, 128 * 1024


class SshChannel(Protocol):
    """The channel methods in use; all of them are asyncssh's."""

    def write(self, data: bytes, datatype: asyncssh.DataType = None) -> None:
        """Send; OSError where nothing can be sent any more."""

    def write_eof(self) -> None:
        """Send the end of the input."""

    def close(self) -> None:
        """Close it, when what waits has been sent."""

    def abort(self) -> None:
        """Close it at once."""

    def pause_reading(self) -> None:
        """Deliver nothing for now."""

    def resume_reading(self) -> None:
        """Deliver again, what came meanwhile first."""

    def get_write_buffer_size(self) -> int:
        """Return how many bytes wait for the peer's window."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set when `pause_writing` and `resume_writing` are called."""


class PeerConnection:
    """A connection, as its channels' ends see it: there may be so many, and sometimes it takes no more."""

    def __init__(self, sock: Sock) -> None:
        self.outlet = FlowControl(sock)
        self.ends: set[ChannelEnd] = set()

    @property
    def window(self) -> int:
        """Return the window, in bytes, for one more channel."""
        return next((size for most, size in _WINDOWS if len(self.ends) < most), _SMALL_WINDOW)

    @property
    def sent(self) -> bool:
        """Return whether all outgoing data is on its way."""
        return not self.outlet.full and not any(end.waiting for end in self.ends)


class ChannelEnd(asyncssh.SSHTCPSession[bytes], asyncssh.SSHUNIXSession[bytes]):
    """One end of a channel that is passed on. `line`: the connection that it is in, until it is closed.

    What its peer sends before the other end is ready is kept; that is no more than a piece.
    """

    def __init__(self, line: PeerConnection) -> None:
        self._line = line
        line.ends.add(self)
        self._channel: SshChannel | None = None
        self._other: ChannelEnd | None = None
        self._kept: list[tuple[bytes, asyncssh.DataType]] = []
        self._input_ended = False
        self._ready = self._gone = self._finishing = False
        # why the other end is not read: the peer's window is used up; the connection takes no more
        self._congested = self._full = False

    # what asyncssh calls

    def connection_made(self, chan: Any) -> None:
        """Note the channel and bound what it buffers."""
        self._channel = chan
        chan.set_write_buffer_limits(_HIGH_WATER, _LOW_WATER)

    def session_started(self) -> None:
        """Begin to take what comes from the other end."""
        self._ready = True
        if self._other is not None:
            self._other.deliver()
        if self._finishing:
            self._close()

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """Pass data to the other end, or keep it until that is ready."""
        other = self._other
        if other is not None and other._ready and not self._kept:
            other.write(data, datatype)
        elif not self._finishing and (other is None or not other._gone):
            self._kept.append((data, datatype))
            self._hold()

    def eof_received(self) -> bool:
        """Pass the end of what the peer sends on; it may be sent more."""
        self._input_ended = True
        if self._other is not None and self._other._ready and not self._kept:
            self._other.end_input()
        return True

    def pause_writing(self) -> None:
        """Read no more for a peer that does not take it."""
        self._congested = True
        self._hold_other()

    def resume_writing(self) -> None:
        """Read from the other end again: the peer takes data."""
        self._congested = False
        if self._finishing:
            self._close()
        else:
            self._release_other()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Hear that the channel is closed, or its connection."""
        self._ready = False
        self._gone = True
        self.drop()
        if self._other is not None:
            self._other.left()

    # what we do

    @property
    def waiting(self) -> bool:
        """Return whether there is data that could not be sent yet."""
        channel = self._channel
        return channel is not None and not self._gone and channel.get_write_buffer_size() > 0

    def drop(self) -> None:
        """Be no end of the connection any more: the channel is closed, or was never opened."""
        self._line.ends.discard(self)
        self._line.outlet.call_off(self._room)

    def join(self, other: ChannelEnd) -> None:
        """Connect two ends: from now on, what arrives at one leaves at the other."""
        self._other, other._other = other, self
        for end, behind in ((self, other), (other, self)):
            if behind._gone:
                end.left()
            elif behind._ready:
                end.deliver()

    def deliver(self) -> None:
        """Pass on what was kept: the other end is ready."""
        other = self._other
        if other is None:
            return
        kept, self._kept = self._kept, []
        for data, datatype in kept:
            other.write(data, datatype)
        if self._input_ended:
            other.end_input()
        other._release_other()

    def write(self, data: bytes, datatype: asyncssh.DataType = None) -> None:
        """Send to the peer."""
        if self._channel is None or self._gone:
            return
        try:
            self._channel.write(data, datatype)
        except OSError:  # it is being closed
            return
        if self._line.outlet.full:
            self._full = True
            self._line.outlet.wait(self._room)
            self._hold_other()

    def end_input(self) -> None:
        """Send the peer the end of the input."""
        if self._channel is not None and not self._gone:
            with suppress(OSError):
                self._channel.write_eof()

    def left(self) -> None:
        """Hear that the other end is closed, and all that came from it has been passed on."""
        self.finish()

    def finish(self) -> None:
        """Close the channel when what waits has been sent."""
        if not self._finishing and not self._gone:
            self._finishing = True
            self._kept.clear()
            if self._ready:
                self._close()

    def _close(self) -> None:
        if self._channel is not None and not self._gone:
            self._channel.close()

    def _room(self) -> None:
        self._full = False
        self._release_other()

    def _hold(self) -> None:
        if self._channel is not None and not self._gone:
            self._channel.pause_reading()

    def _hold_other(self) -> None:
        if self._other is not None:
            self._other._hold()

    def _release_other(self) -> None:
        other = self._other
        if other is None or self._congested or self._full or not self._ready:
            return
        if other._channel is not None and not other._gone:
            # which may bring more at once, and the end of it
            other._channel.resume_reading()
