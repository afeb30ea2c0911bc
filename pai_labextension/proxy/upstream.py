"""The way from the notebook server to the scheduler, asked with the user's own token."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from http import HTTPStatus

import aiohttp
from yarl import URL

from .resources import RequestTarget
from .streaming_proxy import BodyPipe, raw_headers

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
    "X-Log-Notice",
    "X-Log-Offset",
    "X-Log-Removed",
    "X-Warning",
)
#: Seconds of silence before the scheduler counts as away; the second where it may have a tree to go through.
_SILENCE, _WORK = 30.0, 900.0


class SchedulerUnreachableError(Exception):
    """Nobody answered at the scheduler's address, or somebody else did (a proxy that stands before it)."""


class Upstream:
    """The scheduler at `url` (without `/api/v1`, `/webhdfs/v1`), asked with the user's own `token`."""

    def __init__(self, url: str, token: str) -> None:
        self.url = url.rstrip("/")
        self.has_token = bool(token)
        self._http = aiohttp.ClientSession(
            # idle connections go before Node's proxy (5 s) would close them under a request of ours
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=2.0),
            headers={"Authorization": f"Bearer {token}", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
            skip_auto_headers=("Content-Type", "User-Agent"),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def ask(
        self, method: str, target: RequestTarget, headers: Mapping[str, str], body: BodyPipe | None
    ) -> aiohttp.ClientResponse:
        """Ask the scheduler; SchedulerUnreachableError where it does not answer."""
        try:
            answer = await self._http.request(
                method,
                URL(f"{self.url}/{target.path}" + (f"?{target.query}" if target.query else ""), encoded=True),
                headers=_only(_REQUEST_HEADERS, headers.items()),
                data=body,
                allow_redirects=False,
                timeout=_timeout(target),
            )
        except (aiohttp.ClientError, OSError) as error:
            raise SchedulerUnreachableError(str(error) or type(error).__name__) from error
        if not (200 <= answer.status < 300 or _is_of_the_api(answer)):
            answer.close()
            raise SchedulerUnreachableError(f"{answer.status} {answer.reason}")
        return answer


def answer_headers(answer: aiohttp.ClientResponse) -> list[tuple[str, str]]:
    """Return the headers of the scheduler's answer that come back."""
    return _only(_RESPONSE_HEADERS, raw_headers(answer))


def _timeout(target: RequestTarget) -> aiohttp.ClientTimeout:
    # nothing bounds the pause between two lines of a log that is followed
    read = None if target.follows else _WORK if target.slow else _SILENCE
    return aiohttp.ClientTimeout(total=None, sock_connect=10.0, sock_read=read)


def _is_of_the_api(answer: aiohttp.ClientResponse) -> bool:
    """Return whether an answer is the API's refusal, which is JSON, not a page or redirect of a proxy."""
    return answer.status == HTTPStatus.NOT_MODIFIED or answer.content_type == "application/json"


def _only(names: Iterable[str], headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    wanted = {name.lower() for name in names}
    return [(name, value) for name, value in headers if name.lower() in wanted]
