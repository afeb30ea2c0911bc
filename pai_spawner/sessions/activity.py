"""Asks a notebook server what its kernels and terminals do, without that counting as use of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

#: Seconds that a server may take. A busy machine answers late; one that does not answer is asked again.
_PATIENCE = aiohttp.ClientTimeout(total=20)
#: Bytes of an answer that are read: those of thousands of kernels.
_MOST_BYTES = 4 * 1024 * 1024
#: jupyter_server then leaves its own time of last activity as it is
_UNTRACKED = {"no_track_activity": "1"}


@dataclass(frozen=True, slots=True)
class Activity:
    """What a server's kernels and terminals do; `connections`: browsers that are connected to kernels.

    `service_used`: when the service was that opens in the server instead of JupyterLab.
    """

    kernels_busy: bool = False
    connections: int = 0
    kernel_used: datetime | None = None
    terminal_used: datetime | None = None
    service_used: datetime | None = None


async def ask_activity(
    http: aiohttp.ClientSession, address: str, token: str, *, is_service: bool = False
) -> Activity | None:
    """Ask the server at an address (with its base path); None where it does not answer as Jupyter does.

    `token`: the server's own. One that opens more must not be sent to a program that its user may change.
    `is_service`: ask too when the service was used that opens in it.
    """
    headers = {"Authorization": f"token {token}"}
    kernels = await _ask(http, f"{address}api/kernels", headers)
    terminals = await _ask(http, f"{address}api/terminals", headers)
    status = await _ask(http, f"{address}api/status", headers) if is_service else None
    if not isinstance(kernels, list) or (is_service and not isinstance(status, dict)):
        return None
    try:
        return Activity(
            any(kernel["execution_state"] == "busy" for kernel in kernels),
            sum(int(kernel.get("connections") or 0) for kernel in kernels),
            _latest(kernels),
            # a server may have no terminals
            _latest(terminals if isinstance(terminals, list) else []),
            # what passes through the server to the service counts there, and what is asked here does not
            _latest([status]) if status is not None else None,
        )
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


async def _ask(http: aiohttp.ClientSession, url: str, headers: Mapping[str, str]) -> Any:
    try:
        async with http.get(
            # as it is: aiohttp would write plainly what the Hub encodes in a name ("a:b" is "a%3Ab" there)
            URL(f"{url}?{urlencode(_UNTRACKED)}", encoded=True),
            headers=headers,
            timeout=_PATIENCE,
            allow_redirects=False,
        ) as answer:
            return json.loads(await _read(answer)) if answer.status == 200 else None
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None


async def _read(answer: aiohttp.ClientResponse) -> bytes:
    """Read an answer; ValueError where it does not end: it is a user's program that answers."""
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > _MOST_BYTES:
            raise ValueError("too long")
    return bytes(body)


def _latest(models: list[dict[str, Any]]) -> datetime | None:
    times = [datetime.fromisoformat(model["last_activity"]) for model in models]
    return max((time if time.tzinfo else time.replace(tzinfo=UTC) for time in times), default=None)
