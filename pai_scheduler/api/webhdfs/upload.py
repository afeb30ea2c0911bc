"""A file on its way from a request's body into the storage: bounded: a faster sender waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

#: Bytes that are handed to the storage at once: each handing over is a thread's turn.
PIECE = 1024 * 1024
#: Seconds without a byte after which the sender counts as gone.
SILENCE = 180.0


class BrokenOffError(Exception):
    """The sender of the file left in the middle, or said nothing for too long."""


class BodyUpload:
    """Joins a sender, who calls `receive` and `finish`, with the storage, which takes `pieces`.

    Three pieces are held at most: one that fills, one that waits, one that the storage has.
    """

    def __init__(self, store: Callable[[AsyncIterator[bytes]], Awaitable[None]]) -> None:
        self._filling: list[bytes] = []
        self._size = 0
        self._waiting: bytes | None = None
        self._complete = self._broken = False
        self._heard = asyncio.get_running_loop().time()
        #: set when there may be something for the storage: a piece, the end, the break
        self._news = asyncio.Event()
        #: set while another piece may wait
        self._room = asyncio.Event()
        self._room.set()
        self._wanted = asyncio.Event()
        self.task = asyncio.create_task(self._store(store))

    async def accepted(self) -> None:
        """Wait until the storage wants the first byte; raises what it refuses the file with."""
        await self._wanted.wait()
        if self.task.done():
            self.task.result()

    async def receive(self, chunk: bytes) -> None:
        """Take the next bytes; they lead nowhere once the storage has refused the file."""
        self._heard = asyncio.get_running_loop().time()
        self._filling.append(chunk)
        self._size += len(chunk)
        if self._size >= PIECE:
            await self._hand_over()

    async def finish(self) -> None:
        """End the file; raises what the storage refuses it with."""
        if self._filling:
            await self._hand_over()
        self._complete = True
        self._news.set()
        await self.task

    def break_off(self) -> None:
        """Break the file off: nothing more will come."""
        self._broken = True
        self._news.set()

    async def _store(self, store: Callable[[AsyncIterator[bytes]], Awaitable[None]]) -> None:
        try:
            await store(self._pieces())
        finally:
            self._wanted.set()
            self._room.set()

    async def _hand_over(self) -> None:
        await self._room.wait()
        self._waiting = b"".join(self._filling)
        self._filling.clear()
        self._size = 0
        if not self.task.done():
            self._room.clear()
        self._news.set()

    async def _pieces(self) -> AsyncIterator[bytes]:
        self._wanted.set()
        while True:
            await self._hear()
            if (piece := self._waiting) is not None:
                self._waiting = None
                self._room.set()
                yield piece
            elif self._complete:
                return
            else:
                # what had come counts, for a file that is written on
                if rest := b"".join(self._filling):
                    self._filling.clear()
                    yield rest
                raise BrokenOffError

    async def _hear(self) -> None:
        """Wait for a piece, the end, or the break; a long silence is one."""
        loop = asyncio.get_running_loop()
        while self._waiting is None and not self._complete and not self._broken:
            self._news.clear()
            try:
                async with asyncio.timeout_at(self._heard + SILENCE):
                    await self._news.wait()
            except TimeoutError:
                self._broken = loop.time() >= self._heard + SILENCE
