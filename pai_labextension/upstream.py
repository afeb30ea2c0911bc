"""The way from the notebook server to the scheduler: a request there, its answer back, while they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass

import httpx

from .resources import RequestTarget

#: Of a browser's request only these go on: no cookie, no Authorization, nothing hop-by-hop.
_REQUEST_HEADERS = (
    "Accept",
    "Accept-Language",
    "Content-Type",
    "Content-Length",
    "If-None-Match",
    "Last-Event-ID",
)
#: Of the scheduler's answer only these come back.
_RESPONSE_HEADERS = (
    "Cache-Control",
    "Content-Disposition",
    "Content-Encoding",
    "Content-Language",
    "Content-Length",
    "Content-Type",
    "ETag",
    "Last-Modified",
    "Link",
    "Retry-After",
    "X-Warning",
)
#: Seconds of silence before the scheduler counts as away; the second where it may have a tree to go through.
_SILENCE, _WORK = 30.0, 900.0


class SchedulerUnreachableError(Exception):
    """Nobody answered at the scheduler's address, or somebody else did (a proxy that stands before it)."""


class BodyPipe:
    """A request's body on its way: one piece at a time, so that a slow scheduler slows the sender down."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue(maxsize=1)
        self._dropped = False

    async def put(self, piece: bytes) -> None:
        """Hand a piece over; returns when there is room for the next."""
        if not self._dropped:
            await self._pieces.put(piece)

    async def end(self) -> None:
        """Say that the body is complete."""
        if not self._dropped:
            await self._pieces.put(None)

    def drop(self) -> None:
        """Say that nobody wants the rest: whoever waits in `put` goes on, later pieces are thrown away."""
        self._dropped = True
        while not self._pieces.empty():
            self._pieces.get_nowait()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (piece := await self._pieces.get()) is not None:
            yield piece


@dataclass(frozen=True, slots=True)
class SchedulerAnswer:
    """The scheduler's answer, whose body is still to come; close it in every case."""

    status: int
    headers: tuple[tuple[str, str], ...]
    _response: httpx.Response

    async def pieces(self) -> AsyncIterator[bytes]:
        """Return the body as it comes; SchedulerUnreachableError where it breaks off."""
        try:
            async for piece in self._response.aiter_raw():
                yield piece
        except httpx.TransportError as error:
            raise SchedulerUnreachableError(str(error)) from error

    async def close(self) -> None:
        """Let the connection go; what was not read is not waited for."""
        await self._response.aclose()


class Upstream:
    """The scheduler at `url` (without `/api/v1`, `/webhdfs/v1`), asked with the user's own `token`."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self.has_token = bool(token)
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
            # idle connections go before Node's proxy (5 s) would close them under a request of ours
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=10, keepalive_expiry=2.0),
            follow_redirects=False,
            trust_env=False,
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def send(
        self, method: str, target: RequestTarget, headers: Mapping[str, str], body: BodyPipe | None
    ) -> SchedulerAnswer:
        """Ask the scheduler; SchedulerUnreachableError where it does not answer."""
        request = self._http.build_request(
            method,
            f"{self.url}/{target.path}" + (f"?{target.query}" if target.query else ""),
            headers=_only(_REQUEST_HEADERS, headers.items()),
            content=body,
            timeout=_timeout(target),
        )
        try:
            response = await self._http.send(request, stream=True)
        except (httpx.TransportError, httpx.InvalidURL) as error:
            raise SchedulerUnreachableError(str(error) or type(error).__name__) from error
        if not response.is_success and not _is_of_the_api(response):
            await response.aclose()
            raise SchedulerUnreachableError(f"{response.status_code} {response.reason_phrase}")
        return SchedulerAnswer(
            response.status_code,
            tuple(_only(_RESPONSE_HEADERS, response.headers.items())),
            response,
        )


def _timeout(target: RequestTarget) -> httpx.Timeout:
    # nothing bounds the pause between two lines of a log that is followed
    read = None if target.follows else _WORK if target.slow else _SILENCE
    return httpx.Timeout(_SILENCE, connect=10.0, pool=None, read=read)


def _is_of_the_api(response: httpx.Response) -> bool:
    """Tell the API's refusals, which are JSON, from the pages and redirects of a proxy before it."""
    media_type = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
    return response.status_code == httpx.codes.NOT_MODIFIED or media_type == "application/json"


def _only(names: Iterable[str], headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    wanted = {name.lower() for name in names}
    return [(name, value) for name, value in headers if name.lower() in wanted]
