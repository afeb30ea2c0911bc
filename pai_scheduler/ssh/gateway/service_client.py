"""Client of the scheduler's `/access/…`: who is that, which task is meant, what is to be noted."""

from __future__ import annotations

from typing import Any, cast

import httpx

from .protocol import (
    LoginAnswer,
    LoginRequest,
    Note,
    OpenLogin,
    OpenRequest,
    StillAnswer,
    StillRequest,
    TaskTarget,
)

#: Seconds for an answer: whose token it is may have to be asked at the Hub.
_SECONDS = 20.0
_MOST_AT_ONCE = 20
_UNAUTHORIZED = 401
_REFUSALS = range(400, 500)


class UnavailableError(Exception):
    """The service does not answer, or not as it should; the text says how, for the log."""


class ServiceRefusedError(Exception):
    """The service refuses; the text is a sentence for the person."""


class ServiceClient:
    """The questions, over HTTP. UnavailableError where there is no answer."""

    def __init__(self, url: str, token: str) -> None:
        self._http = httpx.AsyncClient(
            base_url=f"{url.rstrip('/')}/access/",
            headers={"Authorization": f"Bearer {token}"},
            timeout=_SECONDS,
            limits=httpx.Limits(max_connections=_MOST_AT_ONCE, keepalive_expiry=60),
            # whatever proxy the environment names leads elsewhere
            trust_env=False,
        )

    async def login(self, request: LoginRequest) -> LoginAnswer | None:
        """Ask who that is; None: nobody is let in with that."""
        answer = await self._ask("login", request)
        if answer.status_code == _UNAUTHORIZED:
            return None
        if answer.is_success:
            return cast(LoginAnswer, _read(answer))
        raise UnavailableError(f"login: HTTP {answer.status_code}")

    async def open(self, request: OpenRequest) -> TaskTarget:
        """Ask which task is meant, and how to reach it; ServiceRefusedError says why not."""
        answer = await self._ask("open", request)
        if answer.is_success:
            return cast(TaskTarget, _read(answer))
        if answer.status_code in _REFUSALS:
            raise ServiceRefusedError(str(_read(answer).get("message") or f"HTTP {answer.status_code}"))
        raise UnavailableError(f"open: HTTP {answer.status_code}")

    async def note(self, note: Note) -> None:
        """Have something noted. ServiceRefusedError: it never will be."""
        answer = await self._ask("note", note)
        if answer.status_code in _REFUSALS:
            raise ServiceRefusedError(f"note: HTTP {answer.status_code}")
        if not answer.is_success:
            raise UnavailableError(f"note: HTTP {answer.status_code}")

    async def still(self, held: list[OpenLogin]) -> list[int]:
        """Ask who may not stay; return their places in the list."""
        request: StillRequest = {"held": held}
        answer = await self._ask("still", request)
        if not answer.is_success:
            raise UnavailableError(f"still: HTTP {answer.status_code}")
        return cast(StillAnswer, _read(answer))["gone"]

    async def close(self) -> None:
        """Close the HTTP connections."""
        await self._http.aclose()

    async def _ask(self, what: str, body: Any) -> httpx.Response:
        try:
            answer = await self._http.post(what, json=body)
        except httpx.HTTPError as error:
            raise UnavailableError(f"{what}: {type(error).__name__} {error}") from error
        # a 401 without the challenge is about the person, one with it about us
        if answer.status_code == _UNAUTHORIZED and "WWW-Authenticate" in answer.headers:
            raise UnavailableError("another service than the one that started this gateway")
        return answer


def _read(answer: httpx.Response) -> dict[str, Any]:
    try:
        read = answer.json()
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise UnavailableError(f"HTTP {answer.status_code}, and no JSON object")
    return read
