"""One look-out of the Hub's for changes of the scheduler, for all pages that show what would start."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from weakref import WeakKeyDictionary

from pai_scheduler.client.rest import ApiError, Client, UnreachableError

from .clients import client_for

#: Seconds between two attempts to reach a scheduler that is away.
_TRY_EVERY = 2.0
#: Seconds that somebody new waits for a scheduler that does not answer.
_PATIENCE = 5.0


class ChangeFeed:
    """Waits for changes at a scheduler while anybody listens: one request, however many listen."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._listeners: set[asyncio.Event] = set()
        self._following: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()

    @contextlib.asynccontextmanager
    async def listening(self) -> AsyncIterator[asyncio.Event]:
        """Give what is set at each change from now on, and when the scheduler goes away or comes back."""
        news = asyncio.Event()
        self._listeners.add(news)
        try:
            if self._following is None:
                self._answered.clear()
                self._following = asyncio.create_task(self._follow())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), _PATIENCE)
            yield news
        finally:
            self._listeners.discard(news)
            if not self._listeners and self._following is not None:
                self._following.cancel()
                self._following = None

    async def _follow(self) -> None:
        known: str | None = None
        away = False
        while True:
            try:
                version = await self._client.changes(known)
            except (UnreachableError, ApiError):
                if not away:
                    self._tell()
                away = True
                await asyncio.sleep(_TRY_EVERY)
                continue
            if away or (known is not None and version != known):
                self._tell()
            known, away = version, False
            self._answered.set()

    def _tell(self) -> None:
        for news in self._listeners:
            news.set()


_feeds: WeakKeyDictionary[Client, ChangeFeed] = WeakKeyDictionary()


def change_feed(url: str, token: str) -> ChangeFeed:
    """Return the feed of this address and identity that belongs to the running loop."""
    client = client_for(url, token, "en")
    if client not in _feeds:
        _feeds[client] = ChangeFeed(client)
    return _feeds[client]
