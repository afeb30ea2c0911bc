"""Hands requests on, to the scheduler or into a task, and answers back, both while they come."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import ClassVar, Protocol

import aiohttp
from aiohttp.abc import AbstractStreamWriter
from tornado import web
from tornado.iostream import StreamClosedError

#: Seconds in which a piece of a body must have been taken.
PATIENCE = 30.0


class BodyPipe(aiohttp.Payload):
    """A request's body on its way: one piece at a time, so that a slow server slows the sender down.

    A server that takes nothing of it for `patience` seconds is given up: asking it raises TimeoutError.
    """

    def __init__(self, patience: float = PATIENCE) -> None:
        super().__init__(None)
        self._patience = patience
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._dropped = False
        self._taken = False

    async def put(self, piece: bytes) -> None:
        """Hand a piece over; returns when there is room for the next."""
        if not self._dropped:
            await self._pieces.put(piece)

    async def end(self) -> None:
        """End the body."""
        if not self._dropped:
            await self._pieces.put(None)

    def drop(self) -> None:
        """Stop the body: who waits in `put` goes on, later pieces are thrown away."""
        self._dropped = True
        while not self._pieces.empty():
            self._pieces.get_nowait()

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:  # noqa: ARG002
        """Refuse: the body is never here as a whole."""
        raise TypeError("a body on its way has no text")

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the pieces as they come; ConnectionError to a client that would send the rest again."""
        if self._taken:
            raise ConnectionError("a body is sent once")
        self._taken = True
        while (piece := await self._pieces.get()) is not None:
            try:
                async with asyncio.timeout(self._patience):
                    await writer.write(piece)
                    # else the last of it would wait behind the end, where nothing bounds it
                    await writer.drain()
            except TimeoutError:
                raise TimeoutError(f"took nothing of what was sent for {self._patience:g} s") from None


class Rewriter(Protocol):
    """Changes an answer's body on its way."""

    def feed(self, piece: bytes) -> bytes:
        """Take a piece; return what is ready."""

    def end(self) -> bytes:
        """Return what was kept back, at the end of the body."""


@web.stream_request_body
class StreamingProxy(web.RequestHandler):
    """Hands one request on and the answer back, until either side hangs up.

    The body of a request reaches `data_received` before `post` or `put` are called, so everything that may
    refuse the request stands in `prepare`, which ends with `begin`.
    """

    #: What a connection raises that breaks off.
    broken: ClassVar[tuple[type[Exception], ...]] = (aiohttp.ClientError, OSError)
    #: Seconds in which a piece of the request's body must have been taken.
    patience: ClassVar[float] = PATIENCE
    _body: BodyPipe | None = None
    _exchange: asyncio.Task[None] | None = None

    @abstractmethod
    async def ask(self, body: BodyPipe | None) -> aiohttp.ClientResponse:
        """Send the request on; RefusedError where nobody answers."""

    @abstractmethod
    def dress(self, answer: aiohttp.ClientResponse) -> Rewriter | None:
        """Set the headers of an answer that is about to be handed on; return what changes its body."""

    def begin(self) -> None:
        """Begin to hand the request on."""
        headers = self.request.headers
        if "Transfer-Encoding" in headers or headers.get("Content-Length", "0") != "0":
            self._body = BodyPipe(self.patience)
        self._received = asyncio.Event()
        self._exchange = asyncio.create_task(self._pass_on())

    async def data_received(self, chunk: bytes) -> None:
        """Hand a piece of the request's body on."""
        if self._body is not None:
            await self._body.put(chunk)

    async def complete(self, *_args: str) -> None:
        """The whole request is here; wait until the whole answer is through."""
        if self._exchange is None:
            raise web.HTTPError(403)
        if self._body is not None:
            await self._body.end()
        self._received.set()
        # not awaited itself: when the browser goes, the exchange is cancelled and this method just ends
        await asyncio.wait([self._exchange])
        if not self._exchange.cancelled():
            self._exchange.result()

    def on_connection_close(self) -> None:
        """The browser went away: so do we."""
        super().on_connection_close()
        if self._exchange is not None:
            self._exchange.cancel()

    async def _pass_on(self) -> None:
        try:
            answer = await self.ask(self._body)
        finally:
            if self._body is not None:
                self._body.drop()
        try:
            await self._received.wait()
            self.set_status(answer.status, answer.reason)
            await self._relay(answer, self.dress(answer))
        finally:
            answer.close()

    async def _relay(self, answer: aiohttp.ClientResponse, rewriter: Rewriter | None) -> None:
        try:
            await self.flush()
            async for piece in answer.content.iter_any():
                await self._send(rewriter.feed(piece) if rewriter is not None else piece)
            if rewriter is not None:
                await self._send(rewriter.end())
        except StreamClosedError:
            pass
        except self.broken:
            # an answer that breaks off must not look like a complete one
            self.detach().close()

    async def _send(self, piece: bytes) -> None:
        if piece:
            self.write(piece)
            await self.flush()


def raw_headers(answer: aiohttp.ClientResponse) -> list[tuple[str, str]]:
    """Return the headers of an answer as Tornado writes them, byte for byte."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.raw_headers]
