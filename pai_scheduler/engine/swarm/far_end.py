"""Where a connection of the scheduler's goes on, through an agent, and who carries it there."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class FarEnd:
    """The agent at `host`:`port` is asked for `path` in `session`. `what`: the connection, for the log."""

    what: str
    host: str
    port: int
    path: str
    session: str


class TunnelServers(Protocol):
    """Carry connections to their far ends and back, outside of the scheduler's loop."""

    def start(self) -> None:
        """Get ready; who comes meanwhile waits."""

    async def close(self) -> None:
        """End, and break off what goes on."""

    async def serve(self, connection: socket.socket, about: FarEnd) -> None:
        """Carry a connection; return when it has ended. It is broken off where this is cancelled."""
