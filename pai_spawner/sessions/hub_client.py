"""Clients of the Hub, of servers' activity and of the scheduler's usage, for the culler."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.models import TaskMetrics
from pai_scheduler.rest.sessions import SessionUse

from ..server_job import ROLE
from .policy import SessionSettings

# What the service asks the Hub over its REST API: whose servers run, who is an administrator.

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


# Asks a notebook server what its kernels and terminals do, without that counting as use of it.

#: Seconds that a server may take. A busy machine answers late; one that does not answer is asked again.
_ACTIVITY_PATIENCE = aiohttp.ClientTimeout(total=20)
#: Bytes of an answer that are read: those of thousands of kernels.
_MOST_BYTES = 4 * 1024 * 1024
#: jupyter_server then leaves its own time of last activity as it is
_UNTRACKED = {"no_track_activity": "1"}


@dataclass(frozen=True, slots=True)
class ServerActivity:
    """Activity of a server's kernels and terminals; `connections`: browsers that are connected to kernels.

    `service_used`: when the service was that opens in the server instead of JupyterLab.
    """

    kernels_busy: bool = False
    connections: int = 0
    kernel_used: datetime | None = None
    terminal_used: datetime | None = None
    service_used: datetime | None = None


async def ask_activity(
    http: aiohttp.ClientSession, address: str, token: str, *, is_service: bool = False
) -> ServerActivity | None:
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
        return ServerActivity(
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
            timeout=_ACTIVITY_PATIENCE,
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


# Asks the scheduler what a session's task uses, and remembers when it was used last.

_SERIES = ("cpuPercent", "memoryMB", "gpuPercent", "gpuMemoryMB")


@dataclass(slots=True)
class JobUsage:
    """The resource usage of one job; `seen`: the time of the last point read (ms since the epoch)."""

    seen: int = 0
    gpu_used: datetime | None = None
    cpu_used: datetime | None = None
    _latest: dict[str, float | None] = field(default_factory=lambda: dict.fromkeys(_SERIES))

    @property
    def latest(self) -> SessionUse:
        """Return what was used last."""
        cpu, memory, gpu, gpu_memory = (self._latest[name] for name in _SERIES)
        return {"cpuPercent": cpu, "memoryMB": memory, "gpuPercent": gpu, "gpuMemoryMB": gpu_memory}

    def take(self, metrics: TaskMetrics, settings: SessionSettings) -> None:
        """Read new points: what is used now, and when that was last as much as the settings ask for."""
        for name in _SERIES:
            points = metrics["series"].get(name) or []
            if points:
                self._latest[name] = points[-1][1]
                self.seen = max(self.seen, points[-1][0])
        self.gpu_used = _last_use(metrics, "gpuPercent", settings.gpu_below) or self.gpu_used
        self.cpu_used = _last_use(metrics, "cpuPercent", settings.cpu_below) or self.cpu_used


class UsageReader:
    """Reads what jobs use; each point once."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._jobs: dict[tuple[str, str], JobUsage] = {}

    def known(self, user: str, job: str) -> JobUsage:
        """Return what was read of a job so far."""
        return self._jobs.setdefault((user, job), JobUsage())

    async def read(self, user: str, job: str, settings: SessionSettings) -> JobUsage | None:
        """Read on; None where the scheduler does not tell."""
        usage = self.known(user, job)
        try:
            usage.take(await self._client.task_metrics(user, job, ROLE, 0, after=usage.seen), settings)
        except (UnreachableError, ApiError):
            return None
        return usage

    def forget_others(self, running: set[tuple[str, str]]) -> None:
        """Forget the jobs that do not run any more; each is given with its user."""
        for gone in self._jobs.keys() - running:
            del self._jobs[gone]


def _last_use(metrics: TaskMetrics, name: str, at_least: float | None) -> datetime | None:
    if at_least is None:
        return None
    times = [time for time, value in metrics["series"].get(name) or [] if value >= at_least]
    return datetime.fromtimestamp(max(times) / 1000, UTC) if times else None
