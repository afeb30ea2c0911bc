"""Makes guessing slow without keeping anybody out: what is shown is checked first, only the answer is late.

Each wrong token is counted: for the address and the account together, and more generously for each
of the two. Where one has been guessed at, an answer takes longer and longer, to a right token that was never
right here before as to a wrong one: so it does not help to hang up early and to guess on. A token that was
right before is answered at once, even while others guess.
"""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

#: wrong ones that cost nothing, and seconds until one is forgotten: of an address for an account, for an
#: account from anywhere, of an address (many people may come from one, and a program may hold an old token)
PAIR, ACCOUNT, ADDRESS = (5, 20.0), (50, 5.0), (100, 0.5)
#: Seconds: the first pause, doubled with each further wrong one, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 8.0
#: how many of one address are checked at once; the others wait for their turn
CHECKED_AT_ONCE = 8
#: wrong ones beyond those that cost nothing that are counted: so soon is an account as before
_MOST_COUNTED = 15
#: Seconds for which what was right is known to have been.
_KNOWN_SECONDS = 12 * 3600.0
_MOST_REMEMBERED = 20_000
_IPV6_PREFIX = 64

_T = TypeVar("_T")


def place(address: str) -> str:
    """Return what counts as one place: an IPv4 address, an IPv6 network of somebody's."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, _IPV6_PREFIX), strict=False))
    return str(found)


class _Counter:
    """Counts wrong ones for each of many; forgets one of them every so often."""

    def __init__(self, free: int, seconds: float) -> None:
        self._free, self._seconds = free, seconds
        #: until when all is forgotten
        self._until: OrderedDict[object, float] = OrderedDict()

    def add(self, who: object, now: float) -> None:
        until = max(self._until.get(who, now), now) + self._seconds
        self._until[who] = min(until, now + (self._free + _MOST_COUNTED) * self._seconds)
        self._until.move_to_end(who)
        _shorten(self._until)

    def beyond(self, who: object, now: float) -> float:
        """Return how many are counted beyond those that cost nothing."""
        return (self._until.get(who, now) - now) / self._seconds - self._free


class PerAddressLimit:
    """Limits how many of one address do something at once; the others wait in order."""

    def __init__(self, most: int = CHECKED_AT_ONCE) -> None:
        self._most = most
        self._of: dict[object, tuple[asyncio.Semaphore, int]] = {}

    async def within(self, who: object, do: Callable[[], Awaitable[_T]]) -> _T:
        """Do it when there is a place."""
        semaphore, there = self._of.get(who, (asyncio.Semaphore(self._most), 0))
        self._of[who] = semaphore, there + 1
        try:
            async with semaphore:
                return await do()
        finally:
            semaphore, there = self._of.pop(who)
            if there > 1:
                self._of[who] = semaphore, there - 1


class GuessThrottle:
    """Throttle for token guessing, with the state of one process. `now`: seconds, ever rising."""

    def __init__(
        self,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._now, self._sleep = now, sleep
        self._pairs, self._accounts, self._addresses = _Counter(*PAIR), _Counter(*ACCOUNT), _Counter(*ADDRESS)
        self._known: OrderedDict[bytes, float] = OrderedDict()
        self._places = PerAddressLimit()

    async def check(
        self, address: str, account: str, token: str, ask: Callable[[], Awaitable[_T | None]]
    ) -> _T | None:
        """Return what `ask` gives, as late as it must be. `account`: whom it should prove; empty: anybody.

        None from `ask` means that the token is wrong; what it raises is passed on and says nothing of it.
        """
        digest = hashlib.sha256(f"{account}\0{token}".encode("utf-8", "surrogatepass")).digest()
        known = self._known.get(digest, 0.0) > self._now()
        if known and (answer := await ask()) is not None:
            return answer
        where = place(address)
        answer = None if known else await self._places.within(where, ask)
        pause = self.pause(where, account)
        if answer is None:
            self._known.pop(digest, None)
            self._count(where, account)
        if pause > 0:
            await self._sleep(pause)
        if answer is not None:
            self._known[digest] = self._now() + _KNOWN_SECONDS
            _shorten(self._known)
        return answer

    def pause(self, address: str, account: str) -> float:
        """Return how many seconds the next answer takes that is not to somebody who is known."""
        now, where = self._now(), place(address)
        beyond = self._addresses.beyond(where, now)
        if account:
            pair = self._pairs.beyond((where, account), now)
            beyond = max(beyond, pair, self._accounts.beyond(account, now))
        return 0.0 if beyond < 0 else min(LONGEST_PAUSE, FIRST_PAUSE * 2**beyond)

    def _count(self, where: str, account: str) -> None:
        now = self._now()
        self._addresses.add(where, now)
        if account:
            self._pairs.add((where, account), now)
            self._accounts.add(account, now)


def _shorten(remembered: OrderedDict[Any, Any]) -> None:
    while len(remembered) > _MOST_REMEMBERED:
        remembered.popitem(last=False)
