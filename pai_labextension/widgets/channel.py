"""Server behind a widget: what its components ask in the browser comes over the widget's comm.

Frames are `{"id", "kind", …}`, with bytes in the message's buffers; an `id` is one question. From the
browser:

- `request`: `method`, `path` (parts, not encoded), `query`, `headers`; `body`: "none", "whole" (the first
  buffer) or "parts" (`data` frames, then `end`);
- `data`, `end`: the next piece of a body, and that there are no more; `data` is acknowledged;
- `ack`: a `data` frame of an answer has arrived; `cancel`: nobody waits for the answer any more;
- `asset`: wants a file of the front end by its `name`.

To the browser: `taken` (the question is here, and takes longer), `answer` (`status`, `headers`, the first
piece; `end`: that is all), then `data` and `end` (`broken`: it ends too soon, and why), `ack`, `asset`.
An answer that follows something (a log, events) is a subscription, which `cancel` ends.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from http import HTTPStatus
from importlib import resources
from typing import Any
from urllib.parse import urlencode

import aiohttp

from pai_labextension.callers import RefusedError, refusal
from pai_labextension.messages import msg
from pai_labextension.proxy.forwarding import (
    RequestTarget,
    SchedulerUnreachableError,
    Upstream,
    answer_headers,
    find_storage_target,
    find_target,
    unreachable,
)
from pai_labextension.proxy.streaming import BodyPipe
from pai_scheduler.i18n import choose_locale

#: Bytes of an answer in one message, seconds between two of them, and how many may be without their `ack`.
BATCH, GAP, UNCONFIRMED = 64 * 1024, 0.1, 4
#: Seconds until a question that is not answered yet is said to be here.
PATIENCE = 1.0

#: Sends a frame with its buffers; callable from any thread.
Send = Callable[[dict[str, Any], list[bytes]], None]
#: Frame of a question, and its body where that came as a whole.
Question = tuple[Mapping[str, Any], bytes]


#: Answers a body that was read, in a language, piece by piece; RefusedError where there is no answer.
LocalRoute = Callable[[Any, str], AsyncGenerator[bytes, None]]


class CommServer:
    """Answers the components of one widget, on the loop on which it is made, whatever the kernel does.

    Forwards to the scheduler at `url` with the kernel's own `token`, and only what `proxy.forwarding` lets
    pass.
    `routes`: what is answered here, by method and path.
    """

    def __init__(
        self, send: Send, url: str, token: str, routes: Mapping[tuple[str, str], LocalRoute]
    ) -> None:
        self._send, self._token, self._routes = send, token, routes
        self._upstream = Upstream(url)
        self._open: dict[str, _Exchange] = {}
        #: When the next batch may go: all answers of a widget share the pace.
        self._next_batch = 0.0

    def take(self, frame: Mapping[str, Any], buffers: Sequence[bytes]) -> None:
        """Take a frame of the browser's; one of a question that has ended counts for nothing."""
        kind, name = frame.get("kind"), str(frame.get("id"))
        exchange = self._open.get(name)
        body = buffers[0] if buffers else b""
        if kind == "request" and exchange is None:
            exchange = self._open[name] = _Exchange(parts=frame.get("body") == "parts")
            exchange.task = asyncio.create_task(self._answer(name, frame, body, exchange))
            exchange.task.add_done_callback(lambda _: self._open.pop(name, None))
        elif kind == "asset":
            self._send_asset(name, str(frame.get("name")))
        elif exchange is None:
            return
        elif kind == "cancel" and exchange.task is not None:
            exchange.task.cancel()
        elif kind == "ack":
            exchange.window.release()
        elif kind in ("data", "end"):
            exchange.pieces.put_nowait(body if kind == "data" else None)

    async def close(self) -> None:
        """End all that is under way, and close the connections."""
        tasks = [exchange.task for exchange in self._open.values() if exchange.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._upstream.close()

    def _send_asset(self, name: str, asset: str) -> None:
        content = read_asset(asset)
        self._send({"id": name, "kind": "asset", "found": content is not None}, [content or b""])

    async def _answer(self, name: str, frame: Mapping[str, Any], body: bytes, exchange: _Exchange) -> None:
        headers = {str(key): str(value) for key, value in dict(frame.get("headers") or {}).items()}
        locale = choose_locale(headers.get("Accept-Language", ""))
        sign = asyncio.get_running_loop().call_later(PATIENCE, self._send, {"id": name, "kind": "taken"}, [])
        try:
            await self._forward(name, frame, body, headers, exchange, sign.cancel)
        except RefusedError as error:
            self._send_refusal(name, error.status_code, error.sentence(locale))
        except Exception as error:  # the browser would wait for ever; the fault is told where it is seen
            self._send_refusal(name, HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}: {error}")
        finally:
            sign.cancel()

    async def _forward(
        self,
        name: str,
        frame: Mapping[str, Any],
        body: bytes,
        headers: Mapping[str, str],
        exchange: _Exchange,
        begun: Callable[[], None],
    ) -> None:
        method, parts = str(frame.get("method")), [str(part) for part in frame.get("path") or ()]
        route = self._routes.get((method, "/".join(parts)))
        if route is not None:
            locale = choose_locale(headers.get("Accept-Language", ""))
            given = json.loads(body) if body else None
            async with aclosing(route(given, locale)) as pieces:
                first = await anext(pieces, b"")  # what is refused is refused here
                begun()
                self._send({"id": name, "kind": "answer", "status": 200, "headers": []}, [first])
                await self._send_rest(name, pieces, exchange)
            return
        target = find(method, parts, dict(frame.get("query") or {}))
        pipe, feeding = self._pipe(name, frame, body, exchange)
        try:
            answer = await self._upstream.ask(method, target, self._token, headers, pipe)
        except SchedulerUnreachableError as error:
            raise unreachable(self._upstream, error) from error
        finally:
            if feeding is not None:
                feeding.cancel()
        begun()
        async with answer, aclosing(batches(answer.content, follows=target.follows)) as pieces:
            first = b"" if target.follows else await anext(pieces, b"")
            ended = not target.follows and len(first) < BATCH
            head = {"status": answer.status, "headers": answer_headers(answer), "end": ended}
            self._send({"id": name, "kind": "answer", **head}, [first])
            if not ended:
                await self._send_rest(name, pieces, exchange)

    def _pipe(
        self, name: str, frame: Mapping[str, Any], body: bytes, exchange: _Exchange
    ) -> tuple[BodyPipe | None, asyncio.Task[None] | None]:
        """Return the body of a request, and what feeds it."""
        kind = frame.get("body")
        if kind not in ("whole", "parts"):
            return None, None
        pipe = BodyPipe()
        if kind == "whole":
            exchange.pieces.put_nowait(body)
            exchange.pieces.put_nowait(None)

        async def feed() -> None:
            while (piece := await exchange.pieces.get()) is not None:
                await pipe.put(piece)
                if exchange.parts:
                    self._send({"id": name, "kind": "ack"}, [])
            await pipe.end()

        return pipe, asyncio.create_task(feed())

    async def _send_rest(self, name: str, pieces: AsyncIterator[bytes], exchange: _Exchange) -> None:
        broken = ""
        loop = asyncio.get_running_loop()
        try:
            async for piece in pieces:
                await exchange.window.acquire()
                now = loop.time()
                self._next_batch = max(now, self._next_batch) + GAP
                await asyncio.sleep(self._next_batch - GAP - now)
                self._send({"id": name, "kind": "data"}, [piece])
        except (aiohttp.ClientError, OSError, RefusedError) as error:
            broken = str(error) or type(error).__name__
        self._send({"id": name, "kind": "end", "broken": broken}, [])

    def _send_refusal(self, name: str, status: int, message: str) -> None:
        body = json.dumps(refusal(status, message)).encode()
        headers = [("Content-Type", "application/json")]
        self._send({"id": name, "kind": "answer", "status": status, "headers": headers, "end": True}, [body])


class _Exchange:
    """A question that is under way. `parts`: its body comes piece by piece."""

    def __init__(self, *, parts: bool) -> None:
        self.parts = parts
        self.task: asyncio.Task[None] | None = None
        self.pieces: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.window = asyncio.Semaphore(UNCONFIRMED)


def find(method: str, parts: Sequence[str], query: Mapping[str, Any]) -> RequestTarget:
    """Find where a request goes; RefusedError where it is neither the API's nor the storage's."""
    head, rest = tuple(parts[:2]), "/".join(parts[2:])
    given = urlencode({name: str(value) for name, value in query.items()})
    if head == ("api", "v1"):
        return find_target(method, rest, given)
    if head == ("webhdfs", "v1"):
        return find_storage_target(method, rest, given)
    raise RefusedError(
        HTTPStatus.NOT_FOUND,
        msg("A kernel cannot do this. Open the job in JupyterLab or in the console of the Hub."),
    )


async def batches(content: aiohttp.StreamReader, *, follows: bool) -> AsyncGenerator[bytes, None]:
    """Return what comes in pieces of at most `BATCH` bytes: full ones, unless somebody `follows`."""
    kept = bytearray()
    while True:
        piece = await content.readany()
        kept += piece
        if piece and not follows and len(kept) < BATCH:
            continue
        while len(kept) >= BATCH or (kept and (follows or not piece)):
            yield bytes(kept[:BATCH])
            del kept[:BATCH]
        if not piece:
            return


def read_asset(name: str) -> bytes | None:
    """Return a file of the front end (`files.json` names them); None where there is none of that name."""
    static = resources.files(__package__) / "static"
    with suppress(OSError):
        files: dict[str, str] = json.loads((static / "files.json").read_text(encoding="utf-8"))
        if name in files:
            return (static / files[name]).read_bytes()
    return None


async def answered_json(work: Awaitable[Any]) -> AsyncGenerator[bytes, None]:
    """Answer with what comes of some work."""
    yield json.dumps(await work).encode()
