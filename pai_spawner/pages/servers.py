"""The Hub's home page: a person's servers, whether their programs answer, and the time left."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx
import msgspec

from pai_scheduler.client.rest import ApiError, Client, UnreachableError, starts_in
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail
from pai_scheduler.rest.sessions import SessionInfo
from pai_spawner.start_preview import describe
from pai_spawner.startup import ServiceState, ask, asking
from pai_spawner.termination import SESSIONS_SERVICE, ServerEnd, now_ms

from ..messages import msg
from ..server_job import ROLE
from ..sessions.words import duration

# How long a running server has left, and what ends it: its time limit, or a rule for sessions, whichever is
# first.

#: Seconds that a page waits for the service before it is shown without what that knows.
_SESSIONS_PATIENCE = 2.0
#: where a server's job has its own token, which may ask about that server and nothing more
_OWN_TOKEN = "JUPYTERHUB_API_TOKEN"  # noqa: S105 - its name

_clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx.AsyncClient] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """The stop time of a server if nothing changes (ms since the epoch), with a cause of `SessionInfo`."""

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
        _clients[loop] = httpx.AsyncClient(timeout=_SESSIONS_PATIENCE, trust_env=False)
    return _clients[loop]


# Whether the service of a running server answers, for the Hub's home: the server runs on without it.

#: Seconds that a page waits for a server, which is a user's own program, before it is shown without this.
_SERVICE_PATIENCE = 2.0
#: Seconds for which an answer holds: as many pages as people open, a server is asked no more often.
_KEPT = 5.0


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question to a server. `at`: when, by the loop's clock; `answer`: for all who ask meanwhile."""

    job: str
    at: float
    answer: asyncio.Task[ServiceState | None]


_asked: WeakKeyDictionary[Any, _Asked] = WeakKeyDictionary()


async def service_trouble(spawner: Any, config: Mapping[str, Any] | None) -> Message | None:
    """Say what keeps a running server's service from being used; None: nothing, or that is not known."""
    if not spawner.service_title or spawner.server is None or not (token := own_token(config)):
        return None
    now = asyncio.get_running_loop().time()
    asked = _asked.get(spawner)
    if asked is None or asked.job != spawner.job_name or now - asked.at > _KEPT:
        answer = asyncio.create_task(_ask(str(spawner.server.url), token))
        _asked[spawner] = asked = _Asked(spawner.job_name, now, answer)
    # a page that is given up must not take the answer from another
    found = await asyncio.shield(asked.answer)
    return None if found is None else _in_words(found, spawner.service_title)


async def _ask(server_url: str, token: str) -> ServiceState | None:
    async with asking(token, _SERVICE_PATIENCE) as http:
        return await ask(http, server_url)


def _in_words(found: ServiceState, title: Message) -> Message | None:
    match found.state:
        case "starting":
            return msg("The server runs, and {title} is starting in it.", title=title)
        case "failed":
            return msg("The server runs, but {title} did not start: open it to read why.", title=title)
        case "ended" if found.exit_code is not None and found.exit_code < 0:
            return msg(
                "The server runs, but {title} has ended (signal {number}): open it to read why.",
                title=title,
                number=-found.exit_code,
            )
        case "ended":
            return msg(
                "The server runs, but {title} has ended (exit code {code}): open it to read why.",
                title=title,
                code=found.exit_code,
            )
        case _:
            return None


# What the Hub's pages show of a person's servers: what each has, what it does, why it has ended.

#: Seconds that a page waits for the scheduler before it is shown without what that knows.
_PATIENCE = 5.0

State = Literal["running", "waiting", "starting", "checking", "stopping", "ended", "off"]
_LABELS: dict[State, Message] = {
    "running": msg("running"),
    "waiting": msg("waiting"),
    "starting": msg("starting"),
    "checking": msg("being looked for"),
    "stopping": msg("stopping"),
    "ended": msg("ended"),
    "off": msg("not running"),
}
#: What of a job stays as it was submitted, by spawner: the job's name, and its configuration.
_configs: WeakKeyDictionary[Any, tuple[str, dict[str, Any]]] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class EndingView:
    """The end of a server, in one language. `time`: ms since the epoch."""

    kind: str
    title: str
    reason: str
    advice: str
    log: str
    time: int
    #: whether somebody wanted it
    expected: bool


@dataclass(frozen=True, slots=True)
class ServerView:
    """One server, in one language. Times in ms since the epoch, None where they are not known."""

    name: str
    #: what its person called it; empty for the default server
    title: str
    state: State
    label: str
    url: str
    #: CPUs, memory and GPUs, in words; empty where that is not known
    has: str = ""
    #: since when it is in this state
    since: int | None = None
    #: when it ends if nothing changes; how long that is, and why, in words
    ends: int | None = None
    left: str = ""
    place: int | None = None
    #: when it starts, in words; empty where that cannot be estimated
    starts: str = ""
    #: why it waits, or what is to be said besides
    note: str = ""
    #: what opens in it instead of JupyterLab; empty: nothing does
    service: str = ""
    #: what keeps the service from being used while the server runs; empty: nothing
    trouble: str = ""
    ending: EndingView | None = None

    @property
    def active(self) -> bool:
        """Return whether there is something to stop."""
        return self.state not in ("ended", "off")


async def views_of(user: Any, locale: str) -> list[ServerView]:
    """Look at all servers of one of the Hub's users, the default server first."""
    names = sorted(user.orm_user.orm_spawners) if user.allow_named_servers else [""]
    views = await asyncio.gather(*(view_of(user, name, locale) for name in names))
    return [view for view in views if view is not None]


async def view_of(user: Any, name: str, locale: str) -> ServerView | None:
    """Look at one server; None where there is none of that name."""
    orm_spawner = user.orm_user.orm_spawners.get(name)
    if orm_spawner is None:
        return None
    spawner = user.spawners.get(name)
    if spawner is not None and spawner.ready:
        # one that has died is noticed now, not at the Hub's next look
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(spawner.poll_and_notify(), _PATIENCE)
        spawner = user.spawners.get(name)
    url = user.server_url(name)
    title = orm_spawner.display_name or name
    if spawner is None or not (spawner.active or spawner.job_name):
        kept = (
            spawner.ending
            if spawner is not None
            else ServerEnd.from_json((orm_spawner.state or {}).get("ending"))
        )
        ending = None if kept is None else ending_view(kept, locale)
        state: State = "off" if ending is None else "ended"
        return ServerView(name, title, state, _LABELS[state].in_locale(locale), url, ending=ending)
    return await _active(spawner, title, url, locale)


def ending_view(ending: ServerEnd, locale: str) -> EndingView:
    """Put how a server ended into a language."""
    return EndingView(
        str(ending.kind),
        ending.title.in_locale(locale),
        ending.reason(locale),
        ending.advice.in_locale(locale) if ending.advice else "",
        ending.log,
        ending.time,
        ending.expected,
    )


async def _active(spawner: Any, title: str, url: str, locale: str) -> ServerView:
    pending = {"stop": "stopping", "check": "checking", "spawn": "starting"}
    state: State = pending.get(spawner.pending, "running")  # type: ignore[assignment]
    if not spawner.active:
        # its start was cancelled, and the Hub stops it in a second
        state = "stopping"
    client: Client = spawner.scheduler(locale)
    detail, config, note = None, None, ""
    try:
        async with asyncio.timeout(_PATIENCE):
            detail = await client.job(spawner.user.name, spawner.job_name)
            config = await _config(client, spawner)
    except (UnreachableError, TimeoutError):
        note = msg(
            "The scheduler does not answer at the moment; the server is not touched by that."
        ).in_locale(locale)
    except ApiError:
        # the job is not there yet, or not any more
        pass
    if detail is not None:
        state = _state(state, detail)
        note = detail["jobStatus"]["waitingReason"]
    launched = detail["jobStatus"]["appLaunchedTime"] if detail else None
    starts = detail["jobStatus"]["startsWithin"] if detail and state == "waiting" else None
    left, trouble = None, None
    if detail and state == "running":
        left, trouble = await asyncio.gather(
            time_left(spawner, detail, config), service_trouble(spawner, config)
        )
    return ServerView(
        spawner.name,
        title,
        state,
        _LABELS[state].in_locale(locale),
        url,
        has=_has(config).in_locale(locale) if config else "",
        since=launched if state == "running" else detail["jobStatus"]["createdTime"] if detail else None,
        ends=left.end if left else None,
        left=left.in_words(now_ms()).in_locale(locale) if left else "",
        place=detail["jobStatus"]["queuePlace"] if detail else None,
        starts="" if starts is None else starts_in(starts).in_locale(locale),
        note=note,
        service=spawner.service_title.in_locale(locale) if spawner.service_title else "",
        trouble=trouble.in_locale(locale) if trouble else "",
    )


def _state(state: State, detail: JobDetail) -> State:
    """Return what a server does: one in the queue waits, also when its machine was lost."""
    waits = detail["jobStatus"]["subState"] in ("QUEUED", "RETRY_WAIT")
    return "waiting" if waits and state in ("starting", "running", "checking") else state


async def _config(client: Client, spawner: Any) -> dict[str, Any]:
    name, config = _configs.get(spawner, ("", {}))
    if name != spawner.job_name:
        name, config = spawner.job_name, await client.config(spawner.user.name, spawner.job_name)
        _configs[spawner] = (name, config)
    return config


def _has(config: dict[str, Any]) -> Message:
    role = next(role for role in config["taskRoles"] if role["name"] == ROLE)
    return describe(
        cpus=role["cpuNumber"],
        memory_mb=role["memoryMB"],
        gpus=role["gpuNumber"],
        gpu_type=config.get("gpuType", ""),
    )
