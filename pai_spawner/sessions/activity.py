"""Asks a notebook server what its kernels and terminals do, without that counting as use of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp

#: Seconds that a server may take. A busy machine answers late; one that does not answer is asked again.
_PATIENCE = aiohttp.ClientTimeout(total=20)
#: Bytes of an answer that are read: those of thousands of kernels.
_MOST_BYTES = 4 * 1024 * 1024
#: jupyter_server then leaves its own time of last activity as it is
_UNTRACKED = {"no_track_activity": "1"}


@dataclass(frozen=True, slots=True)
class Activity:
    """What a server's kernels and terminals do; `connections`: browsers that are connected to kernels."""

    kernels_busy: bool = False
    connections: int = 0
    kernel_used: datetime | None = None
    terminal_used: datetime | None = None


async def ask_activity(http: aiohttp.ClientSession, address: str, token: str) -> Activity | None:
    """Ask the server at an address (with its base path); None where it does not answer as Jupyter does.

    `token`: the server's own. One that opens more must not be sent to a program that its user may change.
    """
    headers = {"Authorization": f"token {token}"}
    kernels = await _list(http, f"{address}api/kernels", headers)
    terminals = await _list(http, f"{address}api/terminals", headers)
    if kernels is None:
        return None
    try:
        return Activity(
            any(kernel["execution_state"] == "busy" for kernel in kernels),
            sum(int(kernel.get("connections") or 0) for kernel in kernels),
            _latest(kernels),
            # a server may have no terminals
            _latest(terminals or []),
        )
    except (KeyError, ValueError, TypeError, OverflowError):
        return None


async def _list(
    http: aiohttp.ClientSession, url: str, headers: Mapping[str, str]
) -> list[dict[str, Any]] | None:
    try:
        async with http.get(
            url, params=_UNTRACKED, headers=headers, timeout=_PATIENCE, allow_redirects=False
        ) as answer:
            found = json.loads(await _read(answer)) if answer.status == 200 else None
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
    return found if isinstance(found, list) else None


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
