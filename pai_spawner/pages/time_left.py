"""How long a running server has left, and what ends it: its time limit, or a rule for sessions, whichever is
first."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx
import msgspec

from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail
from pai_scheduler.rest.sessions import SessionInfo

from ..ending import SESSIONS_SERVICE
from ..messages import msg
from ..sessions.words import duration

#: Seconds that a page waits for the service before it is shown without what that knows.
_PATIENCE = 2.0
#: where a server's job has its own token, which may ask about that server and nothing more
_OWN_TOKEN = "JUPYTERHUB_API_TOKEN"  # noqa: S105 - its name

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """When a server ends if nothing changes (ms since the epoch), and by what: a cause of `SessionInfo`."""

    end: int
    cause: str

    def in_words(self, now: int) -> Message:
        """Say how long that is from `now` on (ms since the epoch), and why."""
        time = duration(timedelta(milliseconds=max(0, self.end - now)))
        match self.cause:
            case "idle":
                return msg("{time} left if nobody uses it.", time=time)
            case "lifetime":
                return msg("{time} left of the time that such a server may run.", time=time)
            case "hours":
                return msg("{time} left: such a server may run only at certain hours.", time=time)
            case _:
                return msg("{time} left of its time limit.", time=time)


async def time_left(spawner: Any, detail: JobDetail, config: Mapping[str, Any] | None) -> TimeLeft | None:
    """Find what ends a running server first; None: nothing is known to."""
    session = await _session(spawner, config)
    ends = []
    if (limit := detail["jobStatus"]["latestEndTime"]) is not None:
        ends.append((limit, "limit"))
    if session is not None and session["endTime"] is not None and session["cause"] is not None:
        ends.append((session["endTime"], session["cause"]))
    return TimeLeft(*min(ends)) if ends else None


def own_token(config: Mapping[str, Any] | None) -> str:
    """Return a server's own token, by the configuration of its job; empty: that is not known."""
    return str(((config or {}).get("jobEnvs") or {}).get(_OWN_TOKEN, ""))


async def _session(spawner: Any, config: Mapping[str, Any] | None) -> SessionInfo | None:
    """Ask the service that watches over sessions; None: it does not tell."""
    address, token = _address(spawner), own_token(config)
    if not address or not token:
        return None
    server = f"servers/{quote(spawner.name, safe='')}" if spawner.name else "server"
    url = f"{address}/api/users/{quote(spawner.user.name, safe='')}/{server}"
    try:
        answer = await _client().get(url, headers={"Authorization": f"Bearer {token}"})
        session = msgspec.json.decode(answer.content, type=SessionInfo) if answer.is_success else None
    except (httpx.HTTPError, msgspec.DecodeError):
        return None
    # what it knows may be of the start before this one
    return session if session is not None and session["job"] == spawner.job_name else None


def _address(spawner: Any) -> str:
    """Return where the Hub reaches the service: where it started it, or else as servers do."""
    service = spawner.user.settings.get("services", {}).get(SESSIONS_SERVICE)
    if service is not None and service.url:
        return (str(service.url).rstrip("/") + str(service.prefix)).rstrip("/")
    return str(spawner.sessions_url).rstrip("/")


def _client() -> httpx.AsyncClient:
    loop = asyncio.get_running_loop()
    if loop not in _clients:
        _clients[loop] = httpx.AsyncClient(timeout=_PATIENCE, trust_env=False)
    return _clients[loop]
