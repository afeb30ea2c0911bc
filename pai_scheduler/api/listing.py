"""Lists as answers: a page of one, or the whole in pieces between which other requests are served."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from typing import Any, TypeVar

from .answering import to_json
from .paging import PageRequest, link_to_next
from .stream import SendingHandler

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
