"""Brings contents to and from HDFS in constant memory: between the loop and the threads that speak HTTP."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests

from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import closing

from .client import BROKEN, TIMEOUT, make_session, never_sent, refusal, remote, unavailable, why

#: Bytes that are read at a time.
PIECE = 2**20
#: Pieces of an upload that wait for the connection.
_WAITING = 2
#: Transfers at once; the next ones wait. An upload keeps a thread, a download has one while it reads.
_UPLOADS, _DOWNLOADS, _READERS = 32, 64, 16
#: Seconds before a transfer is begun again.
_PAUSE = 0.5

#: Asks a name node where to send or read, leaving out data nodes (`host:port`, by commas) that are silent.
Locate = Callable[[str | None], Awaitable[requests.Response]]


class DataNodeTransfers:
    """Speaks with data nodes, in threads of its own: what goes through here keeps no control call waiting."""

    def __init__(self, account: str, *, kerberos: bool, patience: float) -> None:
        self._account, self._patience = account, patience
        self._session = make_session(account, kerberos, _UPLOADS + _DOWNLOADS)
        self._up = ThreadPoolExecutor(_UPLOADS, "hdfs-up")
        self._down = ThreadPoolExecutor(_READERS, "hdfs-down")
        self._uploads, self.downloads = asyncio.Semaphore(_UPLOADS), asyncio.Semaphore(_DOWNLOADS)
        self._feeds: set[Feed] = set()
        self._closed = False

    async def close(self) -> None:
        """Break off what is being transferred, and wait until the threads have noticed."""
        self._closed = True
        for feed in self._feeds:
            feed.end()
        for pool in (self._up, self._down):
            await asyncio.to_thread(pool.shutdown)
        self._session.close()

    async def send(
        self, method: str, path: StoragePath, locate: Locate, pieces: AsyncIterator[bytes]
    ) -> None:
        """Send `pieces`; StorageError. When they raise, what came before is there.

        A request always ends well: after one that is cut, the data node may still begin to write.
        """
        async with self._uploads:
            feed = Feed()
            self._feeds.add(feed)
            filling = asyncio.ensure_future(feed.fill(pieces))
            sending = asyncio.ensure_future(self._send(method, path, locate, feed))
            try:
                await asyncio.wait([filling, sending], return_when=asyncio.FIRST_COMPLETED)
                if filling.done():
                    filling.result()
                    feed.end()
                await asyncio.shield(sending)
            finally:
                feed.end()
                filling.cancel()
                await asyncio.wait([filling, sending])
                if not sending.cancelled():
                    sending.exception()  # what made us break off counts more
                self._feeds.discard(feed)
            if filling.cancelled():
                # somebody else ended the feed
                raise closing(path)

    async def _send(self, method: str, path: StoragePath, locate: Locate, feed: Feed) -> None:
        tries = _Tries(path, self._patience)
        while True:
            try:
                location = (await tries.locate(locate)).headers["Location"]
                response = await self._run(self._up, path, method, location, data=feed)
            except BROKEN as error:
                if feed.begun or not never_sent(error):
                    raise unavailable(path, why(error)) from error
                await tries.pause(error)
                continue
            self._check(path, response)
            return

    async def begin(self, path: StoragePath, locate: Locate) -> requests.Response:
        """Begin to read: give the answer of which the contents are to come."""
        tries = _Tries(path, self._patience)
        while True:
            try:
                response = await tries.locate(locate)
                location = response.headers.get("Location")
                if location is None:
                    return response
                # with that the connection serves again
                await self._load(path, response)
                response = await self._run(self._down, path, "GET", location, stream=True)
            except BROKEN as error:
                await tries.pause(error)
                continue
            if response.status_code >= requests.codes.bad_request:
                await self._load(path, response)
                self._check(path, response)
            return response

    async def _run(
        self, pool: ThreadPoolExecutor, path: StoragePath, method: str, location: str, **given: Any
    ) -> requests.Response:
        if self._closed:
            raise closing(path)
        request = partial(self._session.request, method, location, timeout=TIMEOUT, **given)
        return await asyncio.get_running_loop().run_in_executor(pool, request)

    async def _load(self, path: StoragePath, response: requests.Response) -> None:
        if self._closed:
            raise closing(path)
        await asyncio.get_running_loop().run_in_executor(self._down, getattr, response, "content")

    def _check(self, path: StoragePath, response: requests.Response) -> None:
        if response.status_code >= requests.codes.bad_request:
            raise refusal(path, remote(response.status_code, response.content), self._account)

    async def read(
        self,
        path: StoragePath,
        response: requests.Response,
        length: int,
        again: Callable[[int], Awaitable[requests.Response]],
    ) -> AsyncIterator[bytes]:
        """Return `length` bytes, the next piece being read while one is used.

        `again`: gives another answer, from so many bytes on, after a connection broke.
        """
        loop, done = asyncio.get_running_loop(), 0
        tries: _Tries | None = None
        reading: asyncio.Future[bytes] | None = None
        try:
            while done < length:
                if self._closed:
                    raise closing(path)
                if reading is None:
                    reading = loop.run_in_executor(self._down, _read, response, length - done)
                try:
                    piece = await asyncio.shield(reading)
                except BROKEN as error:
                    response.close()
                    reading = None
                    tries = tries or _Tries(path, self._patience)
                    await tries.pause(error)
                    response = await again(done)
                    continue
                done, reading, tries = done + len(piece), None, None
                if done < length and not self._closed:
                    reading = loop.run_in_executor(self._down, _read, response, length - done)
                yield piece
        finally:
            if reading is None or reading.done():
                response.close()
            else:
                reading.add_done_callback(partial(_close_after, response))


class _Tries:
    """Tries to reach a data node, again and again for `patience` seconds, others first."""

    def __init__(self, path: StoragePath, patience: float) -> None:
        self._path = path
        self._give_up = time.monotonic() + patience
        self._silent: list[str] = []
        self._asked = ""

    async def locate(self, locate: Locate) -> requests.Response:
        """Ask a name node for the address, of a node that has not been silent if there is one."""
        while True:
            try:
                response = await locate(",".join(self._silent) or None)
            except StorageError as error:
                if error.problem is not Problem.UNAVAILABLE or time.monotonic() > self._give_up:
                    raise
                # there is no other, or none at all
                self._silent.clear()
                await asyncio.sleep(_PAUSE)
            else:
                self._asked = urlsplit(response.headers.get("Location", "")).netloc
                return response

    async def pause(self, error: BaseException) -> None:
        """Wait before the next try; UNAVAILABLE where there have been enough."""
        if time.monotonic() > self._give_up:
            raise unavailable(self._path, why(error)) from error
        if self._asked:
            self._silent.append(self._asked)
        await asyncio.sleep(_PAUSE)


def _read(response: requests.Response, most: int) -> bytes:
    piece = bytes(response.raw.read(min(PIECE, most)))
    if not piece:
        raise OSError("the connection ended too early")
    return piece


def _close_after(response: requests.Response, reading: asyncio.Future[bytes]) -> None:
    if not reading.cancelled():
        reading.exception()  # nobody waits for it any more
    response.close()


class Feed:
    """Pieces on their way from the loop to the thread that sends them, a few at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Semaphore(_WAITING)
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        #: something has been taken, which cannot be had again
        self.begun = False

    async def fill(self, pieces: AsyncIterator[bytes]) -> None:
        """Take the pieces as fast as they are sent."""
        async for piece in pieces:
            # an empty one would end the request
            if piece:
                await self._room.acquire()
                self._pieces.put(piece)

    def end(self) -> None:
        """End the file: no piece follows."""
        self._pieces.put(None)

    def __iter__(self) -> Iterator[bytes]:
        """Return the pieces; for the thread."""
        while (piece := self._pieces.get()) is not None:
            self.begun = True
            yield piece
            self._loop.call_soon_threadsafe(self._room.release)
