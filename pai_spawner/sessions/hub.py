"""What the service asks the Hub over its REST API: whose servers run, who is an administrator."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import aiohttp

#: How long it is believed who is an administrator, and who a user at all (seconds).
_BELIEVED = 20.0
_PAGE = 200
#: Seconds that the Hub may take; its answer to a stop comes after ten at the latest.
_PATIENCE = aiohttp.ClientTimeout(total=60)


class HubError(Exception):
    """The Hub does not answer, or refuses."""


@dataclass(frozen=True, slots=True)
class HubServer:
    """A running server as the Hub knows it. `path`: below which it answers; `locale`: its user's language."""

    user: str
    name: str
    groups: frozenset[str]
    job: str
    path: str
    started: datetime
    last_activity: datetime | None
    ready: bool
    locale: str
    options: Mapping[str, Any]

    @property
    def key(self) -> tuple[str, str]:
        """Return by what it is known."""
        return self.user, self.name


class HubClient:
    """Asks the Hub with the service's own token."""

    def __init__(self, api_url: str, token: str, http: aiohttp.ClientSession) -> None:
        self._url, self._http = api_url.rstrip("/"), http
        self._headers = {"Authorization": f"token {token}"}
        self._administrators: dict[str, tuple[float, bool]] = {}
        self._strangers: dict[str, tuple[float, bool]] = {}

    async def servers(self) -> list[HubServer]:
        """List the servers that run; HubError."""
        found: list[HubServer] = []
        offset: int | None = 0
        while offset is not None:
            page = await self._ask(
                "GET",
                f"/users?state=active&include_stopped_servers=0&offset={offset}&limit={_PAGE}",
                {"Accept": "application/jupyterhub-pagination+json"},
            )
            for user in page["items"]:
                found += [_server(user, server) for server in user["servers"].values() if server["started"]]
            following = page["_pagination"]["next"]
            offset = following and following["offset"]
        return found

    async def is_administrator(self, user: str) -> bool:
        """Return whether a user is an administrator of the Hub; HubError."""
        until, known = self._administrators.get(user, (0.0, False))
        if until < time.monotonic():
            model = await self._ask("GET", f"/users/{quote(user, safe='')}")
            known = bool(model["admin"])
            self._administrators[user] = (time.monotonic() + _BELIEVED, known)
        return known

    async def strangers(self, names: Iterable[str]) -> set[str]:
        """Return which of these are no users of the Hub, as whoever has been deleted; HubError."""
        wanted, now = set(names), time.monotonic()
        self._strangers = {name: known for name, known in self._strangers.items() if known[0] > now}
        for name in sorted(wanted - self._strangers.keys()):
            model = await self._ask("GET", f"/users/{quote(name, safe='')}", gone_is_fine=True)
            self._strangers[name] = now + _BELIEVED, model is None
        return {name for name in wanted if self._strangers[name][1]}

    async def stop(self, user: str, server: str) -> None:
        """Stop a server; it may take a moment longer than this call. One that is gone is stopped."""
        place = f"servers/{quote(server, safe='')}" if server else "server"
        await self._ask("DELETE", f"/users/{quote(user, safe='')}/{place}", gone_is_fine=True)

    async def _ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str] | None = None,
        *,
        gone_is_fine: bool = False,
    ) -> Any:
        try:
            async with self._http.request(
                method, self._url + path, headers={**self._headers, **(headers or {})}, timeout=_PATIENCE
            ) as answer:
                if answer.status == 404 and gone_is_fine:
                    return None
                if answer.status >= 400:
                    raise HubError(f"the Hub refuses {method} {path}: {answer.status} {answer.reason}")
                return await answer.json() if answer.content_type == "application/json" else None
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            raise HubError(f"the Hub does not answer: {error or type(error).__name__}") from error


def _server(user: Mapping[str, Any], server: Mapping[str, Any]) -> HubServer:
    state = server.get("state") or {}
    return HubServer(
        user=user["name"],
        name=server["name"],
        groups=frozenset(user.get("groups") or ()),
        job=str(state.get("job_name") or ""),
        path=server["url"] or f"/user/{quote(user['name'])}/",
        started=_time(server["started"]),
        last_activity=_time(server["last_activity"]) if server["last_activity"] else None,
        ready=bool(server["ready"]),
        locale=str(state.get("locale") or "en"),
        options=server.get("user_options") or {},
    )


def _time(text: str) -> datetime:
    """Read a time as the Hub writes it (UTC)."""
    time_ = datetime.fromisoformat(text)
    return time_ if time_.tzinfo else time_.replace(tzinfo=UTC)
