"""How far a container's output is ahead of what was copied of its log; one that runs away has to wait.

Docker's log is rotated, so that it stays bounded, and what is not copied in time is gone. Docker itself lets
a container wait whose attached listener does not read on: so one listens, and counts, but keeps nothing.
"""

from __future__ import annotations

import asyncio
import contextlib

import aiodocker
import aiohttp

from .connection import DaemonUnreachableError, DockerApi

#: Docker records each line with its time, its stream and some marks.
_LINE_COST = 64
#: Docker records a longer line in pieces of this size.
PIECE = 2**14
#: How long the output waits for its reader at most: a container is slowed down, never stopped.
_WAIT_SECONDS = 1.0
#: How long it may write between two waits.
_FREE_SECONDS = 0.02


class Output:
    """Listens to one container. `window`: bytes of Docker's log that may be written between two readings."""

    def __init__(self, api: DockerApi, container: str, window: int) -> None:
        self._api, self._container, self._window = api, container, window
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._cost = self._unsaid = 0
        #: frames that Docker may have recorded since the last reading, rather too many than too few
        self.frames = 0

    def reading(self) -> None:
        """Note that the log is about to be read to its present end."""
        self._cost = self.frames = 0
        self._news.clear()
        self._room.set()

    async def news(self, seconds: float | None) -> bool:
        """Wait until something was written that Docker records; False where nothing was for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        return self._news.is_set()

    async def listen(self) -> None:
        """Listen until Docker closes the stream, which need not be the container's end; UnreachableError."""
        async with self._api.output_stream(self._container) as response:
            self._news.set()
            try:
                async for chunk in response.content.iter_any():
                    self._count(chunk)
                    if self._cost > self._window:
                        await self._wait_for_reader()
            except (aiohttp.ClientError, OSError) as error:
                raise DaemonUnreachableError(str(error)) from error
            finally:
                self._news.set()

    async def hold(self) -> None:
        """Have the container wait again and again, until cancelled, for one who reads its log itself."""
        while True:
            with contextlib.suppress(DaemonUnreachableError, aiodocker.DockerError):
                async with self._api.output_stream(self._container):
                    await asyncio.sleep(_WAIT_SECONDS)
            await asyncio.sleep(_FREE_SECONDS)

    def _count(self, chunk: bytes) -> None:
        lines = chunk.count(b"\n")
        self._unsaid += len(chunk)
        self._cost += len(chunk) + _LINE_COST * lines
        self.frames += lines + len(chunk) // PIECE + 1
        # of a line that is neither ended nor long Docker records nothing yet
        if lines or self._unsaid >= PIECE:
            self._unsaid = 0
            self._news.set()

    async def _wait_for_reader(self) -> None:
        self._room.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._room.wait()
        self._cost = 0
