"""Brings contents to and from HDFS in constant memory: between the loop and the threads that speak HTTP."""

from __future__ import annotations

import asyncio
import queue
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import requests

from .folder_errors import closing
from .hdfs_client import BROKEN, make_client, never_sent, why
from .hdfs_errors import refusal, remote, unavailable
from .path import StoragePath

#: Bytes that are read at a time.
PIECE = 2**20
#: Pieces of an upload that wait for the connection.
_WAITING = 2
#: Transfers at once; the next ones wait. An upload keeps a thread, a download has one while it reads.
_UPLOADS, _DOWNLOADS, _READERS = 32, 64, 16
#: How often in a row a transfer is begun again.
_TRIES = 4
_PAUSE = 0.2

#: Transfers at once; the next ones wait. An upload keeps a thread, a download one while it reads.
Locate = Callable[[str | None], Awaitable[requests.Response]]


class Transfers:
    """Speaks with data nodes, in threads of its own: what goes through here keeps no control call waiting."""

    def __init__(self, url: str, account: str, *, kerberos: bool) -> None:
        self._account = account
        self._client: Any = make_client(url, account, kerberos, _UPLOADS + _DOWNLOADS)
        self._up = ThreadPoolExecutor(_UPLOADS, "hdfs-up")
        self._down = ThreadPoolExecutor(_READERS, "hdfs-down")
        self._uploads, self.downloads = asyncio.Semaphore(_UPLOADS), asyncio.Semaphore(_DOWNLOADS)
        self._feeds: set[Feed] = set()

    def close(self) -> None:
        """Break off what is being transferred; blocks until the threads have noticed."""
        for feed in list(self._feeds):
            feed.end(broken=True)
        self._client._session.close()
        for pool in (self._up, self._down):
            pool.shutdown(cancel_futures=True)

    async def send(
        self,
        method: str,
        path: StoragePath,
        locate: Locate,
        pieces: AsyncIterator[bytes],
        *,
        broken_ends: bool,
    ) -> None:
        """Send `pieces`; StorageError. `broken_ends`: what came before `pieces` raised is to stay."""
        async with self._uploads:
            feed = Feed()
            self._feeds.add(feed)
            sending = asyncio.ensure_future(self._send(method, path, locate, feed))
            sending.add_done_callback(lambda _: feed.stop())
            try:
                await feed.fill(pieces)
                feed.end()
                await asyncio.shield(sending)
            except BaseException:
                # the connection ends with the feed; only then it is known what is there
                feed.end(broken=not broken_ends)
                await asyncio.wait([sending])
                raise
            finally:
                self._feeds.discard(feed)

    async def _send(self, method: str, path: StoragePath, locate: Locate, feed: Feed) -> None:
        loop, silent, tries = asyncio.get_running_loop(), list[str](), 0
        while True:
            location = (await locate(",".join(silent) or None)).headers["Location"]
            request = partial(self._client._request, method, location, data=feed)
            try:
                response = await loop.run_in_executor(self._up, request)
            except BrokenOffError:
                raise closing(path) from None
            except BROKEN as error:
                tries += 1
                if feed.begun or not never_sent(error) or tries == _TRIES:
                    raise unavailable(path, why(error)) from error
                silent.append(urlsplit(location).netloc)
                await asyncio.sleep(_PAUSE * tries)
                continue
            if response.status_code >= requests.codes.bad_request:
                raise refusal(path, remote(response.status_code, response.content), self._account)
            return

    async def begin(self, path: StoragePath, locate: Locate) -> requests.Response:
        """Begin to read: give the answer of which the contents are to come."""
        loop, silent, tries = asyncio.get_running_loop(), list[str](), 0
        while True:
            response = await locate(",".join(silent) or None)
            location = response.headers.get("Location")
            if location is None:
                return response
            response.close()
            request = partial(self._client._request, "GET", location, stream=True)
            try:
                response = await loop.run_in_executor(self._down, request)
            except BROKEN as error:
                tries += 1
                if tries == _TRIES:
                    raise unavailable(path, why(error)) from error
                silent.append(urlsplit(location).netloc)
                await asyncio.sleep(_PAUSE * tries)
                continue
            if response.status_code >= requests.codes.bad_request:
                body = await loop.run_in_executor(self._down, getattr, response, "content")
                raise refusal(path, remote(response.status_code, body), self._account)
            return response

    async def read(
        self,
        path: StoragePath,
        response: requests.Response,
        length: int,
        again: Callable[[int], Awaitable[requests.Response]],
    ) -> AsyncIterator[bytes]:
        """Give `length` bytes, the next piece being read while one is used.

        `again`: gives another answer, from so many bytes on, after a connection broke.
        """
        loop, done, tries = asyncio.get_running_loop(), 0, 0
        reading: asyncio.Future[bytes] | None = None
        try:
            while done < length:
                if reading is None:
                    reading = loop.run_in_executor(self._down, _read, response, length - done)
                try:
                    piece = await asyncio.shield(reading)
                except BROKEN as error:
                    tries += 1
                    if tries == _TRIES:
                        raise unavailable(path, why(error)) from error
                    response.close()
                    reading = None
                    await asyncio.sleep(_PAUSE * tries)
                    response = await again(done)
                    continue
                done, tries = done + len(piece), 0
                reading = None
                if done < length:
                    reading = loop.run_in_executor(self._down, _read, response, length - done)
                yield piece
        finally:
            if reading is None or reading.done():
                response.close()
            else:
                reading.add_done_callback(partial(_close_after, response))


def _read(response: requests.Response, most: int) -> bytes:
    piece = bytes(response.raw.read(min(PIECE, most)))
    if not piece:
        raise OSError("the connection ended too early")
    return piece


def _close_after(response: requests.Response, reading: asyncio.Future[bytes]) -> None:
    if not reading.cancelled():
        reading.exception()  # nobody waits for it any more
    response.close()


class BrokenOffError(Exception):
    """An upload is not wanted any more."""


class Feed:
    """Pieces on their way from the loop to the thread that sends them, a few at a time."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._room = asyncio.Semaphore(_WAITING)
        self._pieces: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._broken = self._over = False
        #: something has been taken, which cannot be had again
        self.begun = False

    async def fill(self, pieces: AsyncIterator[bytes]) -> None:
        """Take the pieces as fast as they are sent, until they end or nobody sends them any more."""
        async for piece in pieces:
            await self._room.acquire()
            if self._over:
                return
            if piece:
                self._pieces.put(piece)
            else:
                # an empty piece would end the request
                self._room.release()

    def end(self, *, broken: bool = False) -> None:
        """Say that no piece follows; `broken`: and that what there was is not all."""
        self._broken = broken
        self._pieces.put(None)

    def stop(self) -> None:
        """Say that nobody sends any more."""
        self._over = True
        self._room.release()

    def __iter__(self) -> Iterator[bytes]:
        """Give the pieces; for the thread."""
        while (piece := self._pieces.get()) is not None:
            self.begun = True
            yield piece
            self._loop.call_soon_threadsafe(self._room.release)
        if self._broken:
            raise BrokenOffError
