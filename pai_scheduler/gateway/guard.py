"""Keeps those who guess from the service, and lets everybody else in, those at the same address too.

What was refused is refused again without asking. Whoever has not logged in before takes turns with the others
at their address, first come, first served; the line is short, as each connection stands in it once and their
number is bounded (`waiting.py`). Who guesses tokens for one name is not even asked about for a while, except
with one that was right before.
"""

from __future__ import annotations

import hashlib
import ipaddress
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

#: From one address: logins that are asked about per second, and how many at once after a pause.
PER_SECOND, AT_ONCE = 10.0, 40
#: Of one address for one name: wrong tokens per second that are asked about, and how many at once.
GUESSES_PER_SECOND, GUESSES_AT_ONCE = 0.2, 10
#: Seconds for which a refusal is remembered: a token stays wrong, a key may be registered meanwhile.
_WRONG_SECONDS = {"password": 60.0, "publickey": 3.0}
#: Seconds for which somebody who was let in is known.
_KNOWN_SECONDS = 12 * 3600.0
_MOST_REMEMBERED = 20_000
#: lines in the log for one address and minute; the rest is counted
_MOST_LINES, _LINES_SECONDS = 5, 60.0
_MOST_OF_NAME = 60
_IPV6_PREFIX = 64

_log = logging.getLogger(__name__)

Credential = tuple[str, str, str]


def shown(login: str) -> str:
    """Give a login name as it may stand in a log, whatever is in it."""
    text = ascii(login)
    return text if len(text) <= _MOST_OF_NAME else f"{text[:_MOST_OF_NAME]}…"


def place(address: str) -> str:
    """Give what counts as one place: an IPv4 address, an IPv6 network of somebody's."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, _IPV6_PREFIX), strict=False))
    return str(found)


class Turns:
    """So many in a second, and so many at once: when is the next one's turn."""

    def __init__(self, per_second: float, at_once: int) -> None:
        self._interval, self._ahead = 1 / per_second, at_once / per_second
        self._next: OrderedDict[object, float] = OrderedDict()

    def wait(self, who: object, now: float) -> float:
        """Take a turn; give the seconds until it comes."""
        turn = max(self._next.get(who, 0.0), now - self._ahead) + self._interval
        self._next[who] = turn
        self._next.move_to_end(who)
        _shorten(self._next)
        return max(0.0, turn - now)

    def is_open(self, who: object, now: float) -> bool:
        """Say whether a turn would come at once."""
        return self._next.get(who, 0.0) + self._interval <= now


@dataclass(slots=True)
class _Lines:
    since: float
    count: int = 0


class Guard:
    """What one process of the gateway remembers of those who tried to log in. `now`: seconds, ever rising."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._turns = Turns(PER_SECOND, AT_ONCE)
        self._guesses = Turns(GUESSES_PER_SECOND, GUESSES_AT_ONCE)
        self._wrong: OrderedDict[bytes, float] = OrderedDict()
        self._known: OrderedDict[bytes, float] = OrderedDict()
        self._lines: OrderedDict[str, _Lines] = OrderedDict()

    def refuses(self, peer: str, credential: Credential) -> bool:
        """Say whether that is refused without asking. `credential`: login name, method, key or token."""
        now, digest = self._now(), _digest(credential)
        if self._wrong.get(digest, 0.0) > now:
            return True
        login, method, _ = credential
        guessing = method == "password" and not self._guesses.is_open((place(peer), login), now)
        return guessing and not self._knows(digest)

    def wait(self, peer: str, credential: Credential) -> float:
        """Take a turn to be asked about; give the seconds until it comes."""
        return 0.0 if self._knows(_digest(credential)) else self._turns.wait(place(peer), self._now())

    def refused(self, peer: str, credential: Credential, *, asked: bool) -> None:
        """Hear that somebody is not let in. `asked`: the service said so, just now."""
        login, method, _ = credential
        if asked:
            now = self._now()
            digest = _digest(credential)
            self._known.pop(digest, None)
            self._wrong[digest] = now + _WRONG_SECONDS[method]
            _shorten(self._wrong)
            if method == "password":
                self._guesses.wait((place(peer), login), now)
        self.report(peer, f"{method} for {shown(login)}")

    def let_in(self, credential: Credential) -> None:
        """Hear that somebody is let in."""
        self._known[_digest(credential)] = self._now() + _KNOWN_SECONDS
        _shorten(self._known)

    def report(self, peer: str, what: str) -> None:
        """Log a login that was refused: a few of each place, then how many."""
        lines = self._lines.setdefault(place(peer), _Lines(self._now()))
        lines.count += 1
        if lines.count <= _MOST_LINES:
            _log.warning("login refused from %s: %s", peer, what)
        _shorten(self._lines)

    def sum_up(self) -> None:
        """Log what was only counted; to be called now and then."""
        now = self._now()
        for where, lines in list(self._lines.items()):
            if now - lines.since >= _LINES_SECONDS:
                del self._lines[where]
                if lines.count > _MOST_LINES:
                    seconds, more = now - lines.since, lines.count - _MOST_LINES
                    _log.warning("%d more logins refused from %s in %.0f s", more, where, seconds)

    def _knows(self, digest: bytes) -> bool:
        return self._known.get(digest, 0.0) > self._now()


def _digest(credential: Credential) -> bytes:
    """Give what stands for a credential: none is kept."""
    return hashlib.sha256("\0".join(credential).encode("utf-8", "surrogatepass")).digest()


def _shorten(remembered: OrderedDict[Any, Any]) -> None:
    while len(remembered) > _MOST_REMEMBERED:
        remembered.popitem(last=False)
