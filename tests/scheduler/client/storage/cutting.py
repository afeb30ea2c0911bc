"""A way to the scheduler on which connections break off: a real one, over TCP."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit


class Cutter:
    """Passes bytes on until `up` (to the scheduler) or `down` have passed, then cuts: `cuts` times.

    With `late` the scheduler does not hear of a cut until `let_go`, as of one that is on its way for long.
    """

    def __init__(self, target: str) -> None:
        self._target = urlsplit(target)
        self.url = ""
        self.up: int | None = None
        self.down: int | None = None
        self.cuts = 1
        self.late = False
        self.passed_up = 0
        self.passed_down = 0
        self.ends: list[asyncio.WriteTransport] = []
        self._let_go = asyncio.Event()
        self._moved = asyncio.Condition()

    async def until_up(self, count: int) -> None:
        """Wait until as many bytes have passed to the scheduler."""
        async with self._moved:
            await self._moved.wait_for(lambda: self.passed_up >= count)

    def let_go(self) -> None:
        """Let the scheduler hear of the cut that is late."""
        self._let_go.set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_connection(self._target.hostname, self._target.port)
        ends = (writer.transport, down.transport)
        self.ends.extend(ends)
        passing = [
            asyncio.create_task(self._pass(reader, down, ends, upwards=True)),
            asyncio.create_task(self._pass(up, writer, ends, upwards=False)),
        ]
        await asyncio.wait(passing)

    async def _pass(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        ends: tuple[asyncio.WriteTransport, ...],
        *,
        upwards: bool,
    ) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
                if upwards:
                    self.passed_up += len(data)
                else:
                    self.passed_down += len(data)
                async with self._moved:
                    self._moved.notify_all()
                reached = (self.up is not None and self.passed_up >= self.up) or (
                    self.down is not None and self.passed_down >= self.down
                )
                if reached and self.cuts:
                    self.cuts -= 1
                    self.passed_up = self.passed_down = 0
                    if self.late:
                        self.late = False
                        ends[0].abort()
                        await self._let_go.wait()
                    for end in ends:
                        end.abort()
                    return
            writer.close()
        except OSError:
            writer.transport.abort()


@asynccontextmanager
async def cutting(target: str) -> AsyncIterator[Cutter]:
    cutter = Cutter(target)
    server = await asyncio.start_server(cutter.serve, "127.0.0.1", 0)
    cutter.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield cutter
        for end in cutter.ends:
            end.abort()
        # what is passed on notices, and ends
        await asyncio.sleep(0.01)
