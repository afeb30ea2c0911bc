"""Answers that are written while things happen: events, and logs that are being written."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager

from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError

from pai_scheduler.rest.errors import RequestError

from .auth import bearer_token
from .base_handlers import ApiHandler, HandlerContext

#: Seconds between two looks at whether the token of a reader who stays is still good.
RECHECK_SECONDS = 20.0

_log = logging.getLogger(__name__)


class SendingHandler(ApiHandler):
    """An address whose answer is sent in pieces; knows when its reader has left."""

    def initialize(self, context: HandlerContext) -> None:
        """Take what tornado hands to each new handler."""
        super().initialize(context)
        self.gone = asyncio.Event()

    def on_connection_close(self) -> None:
        """Note that the reader has left."""
        self.gone.set()

    def break_off(self) -> None:
        """End in the middle, so that nobody takes the answer for whole."""
        self.gone.set()
        if isinstance(self.request.connection, HTTP1Connection):
            self.request.connection.close()

    async def send(self, data: bytes | str) -> None:
        """Send now, and wait until the network has taken it, so that a slow reader fills no memory."""
        self.write(data)
        self.service.monitor.sent(type(self).__name__, len(data))
        try:
            await self.flush()
        except StreamClosedError:
            self.gone.set()


class StreamHandler(SendingHandler):
    """An address whose answer may go on for long."""

    timed = False

    def initialize(self, context: HandlerContext) -> None:
        """Take what tornado hands to each new handler."""
        super().initialize(context)
        self._opened = False

    async def prepare(self) -> None:
        """Find out who asks; count it as open until it is finished."""
        await super().prepare()
        self._opened = True
        self.service.monitor.streams(type(self).__name__, 1)

    def on_finish(self) -> None:
        """Count it as closed."""
        if self._opened:
            self.service.monitor.streams(type(self).__name__, -1)

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what follows as one of the caller's streams; refuses one too many.

        It is broken off when the token that opened it is revoked.
        """
        with self.context.streams.counted(self.principal):
            watching = asyncio.create_task(self._watch_token())
            try:
                yield
            finally:
                watching.cancel()

    async def pause(self, seconds: float, news: asyncio.Event | None = None) -> None:
        """Sleep, but not longer than the reader stays, nor beyond `news`."""
        if news is not None and news.is_set():
            return
        waits = [asyncio.create_task(event.wait()) for event in (self.gone, news) if event is not None]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _watch_token(self) -> None:
        while "Authorization" in self.request.headers:
            await asyncio.sleep(RECHECK_SECONDS)
            if not await self._may_stay():
                _log.warning(
                    "a token was revoked: what it followed ends", extra={"user": self.principal.name}
                )
                self.break_off()
                return

    async def _may_stay(self) -> bool:
        token = bearer_token(self.request.headers["Authorization"])
        try:
            now = await self.context.authenticator.identify(token)
        except RequestError as error:
            # that nobody can be asked does not mean that it was revoked
            return error.status >= 500
        return now is not None and now.name == self.principal.name and now.admin >= self.principal.admin
