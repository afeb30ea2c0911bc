"""What the Hub's pages show of a person's servers: what each has, what it does, why it has ended."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import Any, Literal
from weakref import WeakKeyDictionary

from pai_scheduler.client.rest import ApiError, Client, UnreachableError, starts_in
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail

from ..ending import Ending, now_ms
from ..messages import msg
from ..resources import describe
from ..server_job import ROLE
from .service_health import service_trouble
from .time_left import time_left

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
    """How a server ended, in one language. `time`: ms since the epoch."""

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
            else Ending.from_json((orm_spawner.state or {}).get("ending"))
        )
        ending = None if kept is None else ending_view(kept, locale)
        state: State = "off" if ending is None else "ended"
        return ServerView(name, title, state, _LABELS[state].in_locale(locale), url, ending=ending)
    return await _active(spawner, title, url, locale)


def ending_view(ending: Ending, locale: str) -> EndingView:
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
