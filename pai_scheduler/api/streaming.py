"""Answers written while things happen, and long lists in pieces between which others are served."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError

from pai_scheduler.rest.errors import RequestError

from .answering import to_json
from .auth import bearer_token
from .base import ApiHandler, HandlerContext, PageRequest, link_to_next

# Answers that are written while things happen: events, and logs that are being written.

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


# Lists as answers: a page of one, or the whole in pieces between which other requests are served.

Item = TypeVar("Item")
Position = TypeVar("Position")
#: Some entries of a list as JSON values, each with its own position.
Slice = Sequence[tuple[Position, Any]]
#: Gives the entries after a position, so many or (None) all, a slice at a time.
ReadList = Callable[[Position | None, int | None], AsyncIterator[Slice[Position]]]

#: Entries that are made at once: a few ms of everybody's time.
SLICE = 100
#: What it takes at most, and one entry more: of some it is estimated when they start.
_AT_ONCE_SECONDS = 0.005
#: Rows that are read at once, beside everybody else's requests.
_BATCH = 1000


class ListHandler(SendingHandler):
    """An address whose answer is a list."""

    async def answer_list(self, page: PageRequest[Position], read: ReadList[Position]) -> None:
        """Finish with a page, which says where the next one is, or with the whole."""
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        if page.limit is None:
            await self.write_array(page.after, read)
            self.finish()
            return
        array, last = await take(page.after, page.limit, read)
        if last is not None:
            self.set_header("Link", link_to_next(self.request, last))
        self.finish(array)

    async def write_array(self, after: Position | None, read: ReadList[Position]) -> None:
        """Write a JSON array while it is read; what fits into one piece is not sent yet."""
        separator = b"["
        async for part in read(after, None):
            if self.gone.is_set():
                return
            if part:
                self.write(separator + b",".join(to_json(entry) for _, entry in part))
                separator = b","
            if len(part) == SLICE:
                # from here on it takes as long as its reader likes
                self.timed = False
                await self.send(b"")
        self.write(b"[]" if separator == b"[" else b"]")


async def take(after: Position | None, limit: int, read: ReadList[Position]) -> tuple[bytes, Position | None]:
    """Return `limit` entries as a JSON array, and the position of the last one where there are more."""
    entries: list[bytes] = []
    last = after
    async for part in read(after, limit + 1):
        for position, entry in part:
            if len(entries) == limit:
                return b"[" + b",".join(entries) + b"]", last
            entries.append(to_json(entry))
            last = position
    return b"[" + b",".join(entries) + b"]", None


def stored(
    read: Callable[[Position | None, int], Awaitable[Sequence[Item]]],
    present: Callable[[Item], tuple[Position, Any]],
) -> ReadList[Position]:
    """Make a list of what lies in the store: `read` gives so many after a position."""

    async def slices(after: Position | None, limit: int | None) -> AsyncIterator[Slice[Position]]:
        while limit is None or limit > 0:
            wanted = _BATCH if limit is None else min(_BATCH, limit)
            batch = await read(after, wanted)
            for begin in range(0, len(batch), SLICE):
                part, since = [], time.perf_counter()
                for item in batch[begin : begin + SLICE]:
                    part.append(present(item))
                    if time.perf_counter() - since > _AT_ONCE_SECONDS:
                        await asyncio.sleep(0)  # others' requests come between
                        since = time.perf_counter()
                after = part[-1][0]
                yield part
                await asyncio.sleep(0)
            if len(batch) < wanted:
                return
            limit = None if limit is None else limit - wanted

    return slices


def joined(first: bytes, second: bytes) -> bytes:
    """Make one JSON array of two."""
    if first == b"[]" or second == b"[]":
        return second if first == b"[]" else first
    return first[:-1] + b"," + second[1:]
