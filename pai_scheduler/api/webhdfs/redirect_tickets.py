"""Tickets: what a redirect carries instead of a token, good for one request and for some minutes."""

from __future__ import annotations

import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from pai_scheduler.principal import Principal
from pai_scheduler.storage.paths import StoragePath

#: Seconds for which a ticket is good. What has begun by then goes on.
_SECONDS = 600.0
#: Tickets that one user may hold; beyond that the oldest is worth nothing.
_MOST = 1000


@dataclass(frozen=True, slots=True)
class RequestScope:
    """Scope of a ticket: one operation on one path, with these parameters and no others."""

    method: str
    operation: str
    path: StoragePath
    parameters: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Issued:
    principal: Principal
    scope: RequestScope
    until: float


class RedirectTickets:
    """Issues tickets and redeems them; they are in memory only. `clock` returns seconds."""

    def __init__(
        self, most: int = _MOST, seconds: float = _SECONDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most, self._seconds, self._now = most, seconds, clock
        self._issued: dict[str, _Issued] = {}
        #: each user's, oldest first
        self._held: dict[str, OrderedDict[str, None]] = {}
        self._swept = clock()

    def issue(self, principal: Principal, scope: RequestScope) -> str:
        """Return a ticket for a request in somebody's name."""
        self._sweep()
        ticket = secrets.token_urlsafe(32)
        self._issued[ticket] = _Issued(principal, scope, self._now() + self._seconds)
        held = self._held.setdefault(principal.name, OrderedDict())
        held[ticket] = None
        if len(held) > self._most:
            self._drop(next(iter(held)))
        return ticket

    def redeem(self, ticket: str, scope: RequestScope) -> Principal | None:
        """Return in whose name a ticket speaks; None where it is none, no longer, or for another request."""
        issued = self._issued.get(ticket)
        if issued is None or issued.scope != scope or issued.until < self._now():
            return None
        return issued.principal

    def _sweep(self) -> None:
        """Forget what has expired, now and then."""
        now = self._now()
        if now < self._swept + self._seconds / 10:
            return
        self._swept = now
        for ticket in [ticket for ticket, issued in self._issued.items() if issued.until < now]:
            self._drop(ticket)

    def _drop(self, ticket: str) -> None:
        name = self._issued.pop(ticket).principal.name
        del self._held[name][ticket]
        if not self._held[name]:
            del self._held[name]
