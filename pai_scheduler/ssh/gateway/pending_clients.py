"""Those who are connected and have not logged in: so many, so many of one place, and who goes first."""

from __future__ import annotations

from collections import defaultdict
from typing import Protocol

from pai_scheduler.rate_limit import place

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
