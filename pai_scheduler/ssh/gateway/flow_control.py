"""Notices when a connection takes no more, so that no more is read for it: a window is only what a peer says.

A peer may promise to take gigabytes and then read nothing. What it does not read would pile up here, in the
connection's buffer, so its socket is looked at: while the kernel has no room for more, writers wait.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol


class Sock(Protocol):
    """What is asked of a socket: asyncio gives its own only in part."""

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
