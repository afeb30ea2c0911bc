"""Limits of a user's open streams and transfers: connections, threads and memory are for everybody."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from pai_scheduler.cluster.definition import DEFAULT_STREAMS_PER_USER
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError, too_many_streams

# How many answers that go on for long each user has open: connections are for everybody.


class Streams:
    """Counts the logs and job events that are followed; `most`: of one user at once.

    Administrators, and services that act for users, have no limit.
    """

    def __init__(self, most: int = DEFAULT_STREAMS_PER_USER) -> None:
        self._most = most
        self._open: Counter[str] = Counter()

    @contextmanager
    def counted(self, principal: Principal) -> Iterator[None]:
        """Count one more for as long as the block goes on; refuses one too many."""
        if principal.admin:
            yield
            return
        if self._open[principal.name] >= self._most:
            raise too_many_streams(self._most)
        self._open[principal.name] += 1
        try:
            yield
        finally:
            self._open[principal.name] -= 1
            if not self._open[principal.name]:
                del self._open[principal.name]


# How many files each user sends and fetches at once: the threads and the memory are for everybody.

#: Transfers of one user that go on at once. The tasks of a user's jobs count as the user.
_MOST = 32
#: Seconds that one more waits for its turn; clients that read wait a minute.
_PATIENCE = 50.0


class TransferLimit:
    """Allows each user `most` transfers at once; one more waits `patience` seconds, and is refused."""

    def __init__(self, most: int = _MOST, patience: float = _PATIENCE) -> None:
        self._most, self._patience = most, patience
        self._turns: dict[str, _Turns] = {}

    @asynccontextmanager
    async def counted(self, principal: Principal) -> AsyncIterator[None]:
        """Count one more for as long as the block goes on; RequestError where its turn does not come."""
        turns = self._turns.setdefault(principal.name, _Turns(self._most))
        turns.users += 1
        try:
            try:
                async with asyncio.timeout(self._patience):
                    await turns.free.acquire()
            except TimeoutError:
                raise _too_many(self._most) from None
            try:
                yield
            finally:
                turns.free.release()
        finally:
            turns.users -= 1
            if not turns.users:
                del self._turns[principal.name]


class _Turns:
    """One user's: `users` counts those that go on and those that wait."""

    def __init__(self, most: int) -> None:
        self.free = asyncio.Semaphore(most)
        self.users = 0


def _too_many(most: int) -> RequestError:
    message = msg(
        "You transfer {most} files at once, which is all that one user may, and none of them came to its "
        "end while this one waited. Try again later.",
        most=most,
    )
    return RequestError(429, "RetriableException", message)
