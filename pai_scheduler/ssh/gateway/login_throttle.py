"""Slows down those who guess at the gateway, and says in the log who was refused: a few lines, then a sum."""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from pai_scheduler.rate_limit import GuessThrottle, PerAddressLimit, place

#: lines in the log for one address and minute; the rest is counted
_MOST_LINES, _LINES_SECONDS = 5, 60.0
_MOST_REMEMBERED = 20_000
_MOST_OF_NAME = 60

_log = logging.getLogger(__name__)

Credential = tuple[str, str, str]

_T = TypeVar("_T")


def shown(login: str) -> str:
    """Return a login name as it may stand in a log, whatever is in it."""
    text = ascii(login)
    return text if len(text) <= _MOST_OF_NAME else f"{text[:_MOST_OF_NAME]}…"


@dataclass(slots=True)
class _Lines:
    since: float
    count: int = 0


class LoginThrottle:
    """What one process of the gateway remembers of those who tried to log in. `now`: seconds, ever rising."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, throttle: GuessThrottle | None = None
    ) -> None:
        self._now = now
        self._throttle = throttle or GuessThrottle(now)
        self._keys = PerAddressLimit()
        self._lines: OrderedDict[str, _Lines] = OrderedDict()

    async def check(
        self, peer: str, credential: Credential, ask: Callable[[], Awaitable[_T | None]]
    ) -> _T | None:
        """Return what `ask` says of a credential (login name, method, key or token); None: it is wrong."""
        login, method, secret = credential
        if method == "password":
            answer = await self._throttle.check(peer, login, secret, ask)
        else:
            # nobody guesses a key, and who has an agent shows many
            answer = await self._keys.within(place(peer), ask)
        if answer is None:
            self.report(peer, f"{method} for {shown(login)}")
        return answer

    def report(self, peer: str, what: str) -> None:
        """Log a login that was refused: a few of each place, then how many."""
        lines = self._lines.setdefault(place(peer), _Lines(self._now()))
        lines.count += 1
        if lines.count <= _MOST_LINES:
            _log.warning("login refused from %s: %s", peer, what)
        while len(self._lines) > _MOST_REMEMBERED:
            self._lines.popitem(last=False)

    def sum_up(self) -> None:
        """Log what was only counted; to be called now and then."""
        now = self._now()
        for where, lines in list(self._lines.items()):
            if now - lines.since >= _LINES_SECONDS:
                del self._lines[where]
                if lines.count > _MOST_LINES:
                    seconds, more = now - lines.since, lines.count - _MOST_LINES
                    _log.warning("%d more logins refused from %s in %.0f s", more, where, seconds)
