"""The Hub's address from which an open options form hears that it should ask again."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Iterator
from http import HTTPStatus

from jupyterhub.apihandlers.base import APIHandler
from jupyterhub.scopes import needs_scope
from tornado.iostream import StreamClosedError
from tornado.web import HTTPError

from pai_scheduler.i18n import choose_locale

from .change_feed import change_feed
from .choosing import Choosing
from .messages import msg

#: below the Hub's own prefix
CHANGES_PATTERN = r"/api/pai/changes/([^/]+)"
#: Pages of one person that may listen at once.
MOST_STREAMS = 10
#: Seconds between two signs of life, below the idle limits of common proxies; and after which a page has to
#: come again, so that who was logged out hears nothing more.
HEARTBEAT = 15.0
_LONGEST = 600.0
#: Seconds between two changes that are told: the first is told at once, and where they do not cease, pages
#: ask no more often than those do that are told of none.
SHORTEST_PAUSE, LONGEST_PAUSE = 2.0, 8.0

_open: Counter[str] = Counter()


class ChangesHandler(APIHandler):  # type: ignore[misc]  # jupyterhub has no types
    """`/hub/api/pai/changes/:user`: server-sent events, for who may start that user's servers.

    They say only that something has changed: what is free, or a queue.
    """

    def initialize(self) -> None:
        """Begin with a reader who is there."""
        super().initialize()
        self._gone = asyncio.Event()

    def get_content_type(self) -> str:
        """Return what it sends."""
        return "text/event-stream"

    def on_connection_close(self) -> None:
        """Note that the reader has left."""
        super().on_connection_close()
        self._gone.set()

    @needs_scope("servers")  # type: ignore[untyped-decorator]
    async def get(self, user_name: str) -> None:
        """Tell of changes until the reader leaves, ten minutes at most."""
        user = self.find_user(user_name)
        spawner = user and user.spawners[""]
        if not isinstance(spawner, Choosing):
            raise HTTPError(404)
        with _counted(self.current_user.name, choose_locale(self.request.headers.get("Accept-Language", ""))):
            self.set_header("Cache-Control", "no-store")
            self.set_header("X-Accel-Buffering", "no")
            async with change_feed(spawner.scheduler_url, spawner.scheduler_token).listening() as news:
                with contextlib.suppress(StreamClosedError, TimeoutError):
                    async with asyncio.timeout(_LONGEST):
                        await self._tell(news)

    async def _tell(self, news: asyncio.Event) -> None:
        await self._send("retry: 2000\n\n")
        pause = SHORTEST_PAUSE
        while not self._gone.is_set():
            if await self._within(news, HEARTBEAT):
                news.clear()
                await self._send("data: changed\n\n")
                # where much happens it is told together
                await self._within(self._gone, pause)
                pause = next_pause(pause, changed=news.is_set())
            else:
                await self._send(": still here\n\n")

    async def _within(self, event: asyncio.Event, seconds: float) -> bool:
        """Wait for something to happen, for so long; tell whether it has."""
        gone, happened = asyncio.create_task(self._gone.wait()), asyncio.create_task(event.wait())
        try:
            await asyncio.wait({gone, happened}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            happened.cancel()
        return event.is_set()

    async def _send(self, text: str) -> None:
        self.write(text)
        await self.flush()


def next_pause(pause: float, *, changed: bool) -> float:
    """Return how long to wait after the next change, where something `changed`, or not, in the last pause."""
    return min(2 * pause, LONGEST_PAUSE) if changed else SHORTEST_PAUSE


@contextlib.contextmanager
def _counted(name: str, locale: str) -> Iterator[None]:
    """Count one more page of a person's; refuses one too many."""
    if _open[name] >= MOST_STREAMS:
        text = msg("You have {count} pages open that listen for changes. Close one.", count=MOST_STREAMS)
        raise HTTPError(HTTPStatus.TOO_MANY_REQUESTS, text.in_locale(locale))
    _open[name] += 1
    try:
        yield
    finally:
        _open[name] -= 1
        if not _open[name]:
            del _open[name]
