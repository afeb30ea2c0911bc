"""The start of a server: its job followed until it runs, and a profile's program until it answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import re
import signal
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Literal, Protocol, TypeVar

import aiohttp
from yarl import URL

from pai_scheduler.client.rest import ApiError, Client, UnreachableError, starts_in
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail, JobEvent

from .messages import counted, msg
from .server_job import ROLE

# Follows the job of a starting server until its server answers, telling a person what goes on meanwhile.

T = TypeVar("T")


class Tell(Protocol):
    """Hears a sentence and how far the start is, 0–100, or None where that did not change."""

    def __call__(
        self,
        message: str | Message,
        percent: int | None,
        /,
        *,
        waiting: bool | None = None,
        place: int | None = None,
        starts: Message | None = None,
        again: bool = False,
    ) -> None:
        """Take it. `waiting`: whether it is in the queue, None where that did not change; `place` there, and
        when it `starts`, where that can be estimated.

        `again`: it is the sentence before with other numbers, where that had `again` too.
        """


#: Sub-states in which nothing is expected to happen soon.
_IN_QUEUE = ("QUEUED", "RETRY_WAIT")
ENDED = ("SUCCEEDED", "FAILED", "STOPPED")
#: Seconds between two looks at the job when no event comes in between.
LOOK_EVERY = 2.0
#: Seconds between two attempts to reach a server that does not listen yet: a share of the time that it has
#: taken so far, from the least to the most. So a start is seen at once and many slow ones cost little.
_KNOCK_LEAST, _KNOCK_SHARE, _KNOCK_MOST = 0.02, 0.04, 0.2
#: Seconds between two attempts to reach a scheduler that is away, or looks at what is being ended.
_ASK_EVERY = 0.2
#: seconds within which a tunnel hangs up where nobody is at its other end
_HANG_UP = 0.5
_LOG_TAIL_BYTES = 4000
LOG_LINES = 12
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")

# `ServerFailed.reason` where the job itself has ended
EXITED, STOPPED = "exited", "stopped"

# where the bar stands when …
QUEUED, PLACED, PULLED, RUNNING, SERVING, LISTENING = 5, 15, 60, 70, 80, 95


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The server address for the Hub's proxy. `tunnel`: something listens there on the server's behalf."""

    ip: str
    port: int
    tunnel: bool = False


class ServerFailed(Exception):
    """The job of a starting server ended, or nothing was heard of it for too long; `message` says why."""

    def __init__(self, message: Message, reason: str, log: str = "") -> None:
        super().__init__(str(message))
        self.message = message
        self.reason = reason
        #: the last lines of the server's log
        self.log = log


def address_of(detail: JobDetail) -> ServerAddress | None:
    """Read where a job's server listens; None while that is not known."""
    role = detail["taskRoles"].get(ROLE)
    if role is None or not role["taskStatuses"]:
        return None
    task = role["taskStatuses"][0]
    port = task["containerPorts"].get("http", "").partition(",")[0]
    return ServerAddress(task["containerIp"], int(port)) if task["containerIp"] and port else None


async def reach(client: Client, user: str, job: str, address: ServerAddress) -> ServerAddress:
    """Return where this machine reaches a server whose own address may be another machine's; ApiError."""
    found = await client.task_port(user, job, ROLE, 0, address.port)
    return address if found["host"] is None else ServerAddress(found["host"], found["port"], tunnel=True)


def exit_code_if_over(detail: JobDetail) -> int | None:
    """Return the exit status of a job that has ended, or is ending for good; None for one that goes on.

    The scheduler tells it once it is decided, which is before the last task has ended.
    """
    return detail["jobStatus"]["appExitCode"]


async def wait_until_running(
    client: Client, user: str, job: str, tell: Tell, *, patience: float
) -> ServerAddress:
    """Wait until the job runs. Its time in the queue is free; apart from that, `patience` seconds of
    silence are too long. Raises `ServerFailed`, and `ApiError` when the job is not there."""
    clock = asyncio.get_running_loop().time
    news = asyncio.Event()
    events = asyncio.create_task(_report_events(client, user, job, tell, news))
    heard, reason_told, starts_told, waited = clock(), "", None, False
    try:
        while True:
            try:
                detail: JobDetail | None = await client.job(user, job)
            except UnreachableError:
                detail = None
            if detail is None or detail["jobStatus"]["subState"] in _IN_QUEUE or news.is_set():
                heard = clock()
            news.clear()
            if detail is not None:
                if (address := await look(client, user, detail)) is not None:
                    return address
                status = detail["jobStatus"]
                reason, seconds = status["waitingReason"], status["startsWithin"]
                starts = None if seconds is None else starts_in(seconds)
                in_queue = status["subState"] in _IN_QUEUE
                if in_queue and reason and (reason, starts) != (reason_told, starts_told):
                    tell(reason, QUEUED, waiting=True, place=status["queuePlace"], starts=starts)
                elif reason and waited and not in_queue:
                    # from here on its events tell what goes on; this look may have been behind them
                    tell(reason, None, waiting=False)
                waited = in_queue
                reason_told, starts_told = reason, starts
            elif reason_told != "unreachable":
                tell(
                    msg("The scheduler does not answer; the start goes on when it is back."),
                    None,
                )
                reason_told = "unreachable"
            if clock() - heard > patience:
                raise ServerFailed(
                    msg(
                        "The start was given up after {seconds:.0f} s of silence.",
                        seconds=patience,
                    ),
                    "timeout",
                )
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), LOOK_EVERY)
    finally:
        events.cancel()


async def wait_until_listening(
    client: Client, user: str, job: str, address: ServerAddress, *, patience: float
) -> None:
    """Wait until something accepts connections at the address; raises `ServerFailed` when the job ends
    instead, or when `patience` seconds have passed."""
    clock = asyncio.get_running_loop().time
    started = looked = clock()
    while not await _listens(address):
        if clock() - looked > LOOK_EVERY:
            looked = clock()
            with contextlib.suppress(UnreachableError):
                await look(client, user, await client.job(user, job))
        if clock() - started > patience:
            raise ServerFailed(
                msg("The server runs, but did not answer within {seconds:.0f} s.", seconds=patience),
                "timeout",
                await log_tail(client, user, job),
            )
        await asyncio.sleep(min(max(_KNOCK_LEAST, _KNOCK_SHARE * (clock() - started)), _KNOCK_MOST))


async def wait_until_ended(client: Client, user: str, job: str, *, patience: float) -> None:
    """Wait until nothing of the job runs any more; raises `TimeoutError` after `patience` seconds."""
    async with asyncio.timeout(patience):
        while True:
            with contextlib.suppress(UnreachableError):
                try:
                    detail = await client.job(user, job)
                except ApiError as error:
                    if error.status == 404:
                        return
                    raise
                if detail["jobStatus"]["state"] in ENDED:
                    return
            await asyncio.sleep(_ASK_EVERY)


async def patiently(call: Callable[[], Awaitable[T]], *, patience: float) -> T:
    """Repeat a call to the scheduler while nobody answers; raises the last `UnreachableError` in the end."""
    clock = asyncio.get_running_loop().time
    deadline = clock() + patience
    while True:
        try:
            return await call()
        except UnreachableError:
            if clock() > deadline:
                raise
        await asyncio.sleep(_ASK_EVERY)


async def look(client: Client, user: str, detail: JobDetail) -> ServerAddress | None:
    """Return the address of a running job, None for a waiting one; `ServerFailed` for one that is over."""
    status = detail["jobStatus"]
    if status["state"] in ENDED:
        raise await _failure(client, user, detail)
    return address_of(detail) if status["state"] == "RUNNING" and status["subState"] != "ENDING" else None


async def _failure(client: Client, user: str, detail: JobDetail) -> ServerFailed:
    status = detail["jobStatus"]
    if status["state"] == "STOPPED":
        return ServerFailed(msg("The server was stopped before it was ready."), STOPPED)
    spec = status["appExitSpec"]
    why = status["appExitDiagnostics"] or (spec["phrase"] if spec else "")
    message = msg(
        "The server ended with exit code {code} before it was ready. {why}",
        code=status["appExitCode"],
        why=why,
    )
    return ServerFailed(message, EXITED, await log_tail(client, user, detail["name"]))


async def log_tail(client: Client, user: str, job: str) -> str:
    """Return the last lines of a server's log; empty where there is none to be had."""
    try:
        tail = await client.log(user, job, ROLE, 0, "all", offset=-_LOG_TAIL_BYTES)
    except (ApiError, UnreachableError):
        return ""
    lines = _ANSI.sub("", tail.decode(errors="replace")).splitlines()
    return "\n".join(lines[-LOG_LINES:]).strip()


async def _report_events(client: Client, user: str, job: str, tell: Tell, news: asyncio.Event) -> None:
    """Pass a job's events on as they happen, and take up again after a break."""
    last = 0
    while True:
        try:
            async for event in client.events(user, job, after=last):
                last = event["id"]
                # that it was submitted, the person knows; why it waits must not be hidden by it
                if event["message"] and event["type"] != "submitted":
                    bar = _bar(event)
                    again = "percent" in event["data"]
                    tell(event["message"], bar, waiting=None if bar is None else False, again=again)
                news.set()
            return
        except (UnreachableError, ApiError):
            await asyncio.sleep(LOOK_EVERY)


def _bar(event: JobEvent) -> int | None:
    """Return where the bar stands after an event; None where that did not change."""
    if event["type"] == "placed":
        return PLACED
    percent = event["data"].get("percent")
    return PLACED + int(percent * (PULLED - PLACED) / 100) if isinstance(percent, int | float) else None


async def _listens(address: ServerAddress) -> bool:
    try:
        async with asyncio.timeout(LOOK_EVERY):
            reader, writer = await asyncio.open_connection(address.ip, address.port)
    except (OSError, TimeoutError):
        return False
    if address.tunnel:
        # it accepts in any case, and hangs up where nobody is at its other end
        try:
            async with asyncio.timeout(_HANG_UP):
                await reader.read(1)
            return False
        except TimeoutError:
            pass
        except OSError:
            return False
        finally:
            writer.close()
        return True
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


# What the service does that opens in a server, as the server tells: asked with the server's own token.

#: Below a server's address: where it tells what its service does.
PATH = "pai/service"
#: Seconds that one answer may take.
_PATIENCE = 10.0
#: What is read of an answer, and kept of the last lines in it: it is a user's program that answers.
_MOST_BYTES, _MOST_CHARACTERS = 64 * 1024, 8000


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state of a service, as reported by its server; `lacking`: the server knows of no service.

    `exit_code`: negative for a signal; None: it has none. `reason`: why it could not be started at all;
    `log`: the last lines that it wrote.
    """

    state: Literal["starting", "answers", "failed", "ended", "lacking"]
    exit_code: int | None = None
    seconds: int = 0
    reason: str = ""
    log: str = ""

    @classmethod
    def read(cls, raw: Mapping[str, Any]) -> ServiceState | None:
        """Read an answer; None where it has not the form of one."""
        code, seconds = raw.get("exitCode"), raw.get("startSeconds")
        texts = [raw.get(name) for name in ("reason", "log")]
        if raw.get("state") not in ("starting", "answers", "failed", "ended"):
            return None
        if not (code is None or isinstance(code, int)) or not isinstance(seconds, int):
            return None
        reason, log = (text if isinstance(text, str) else "" for text in texts)
        lines = log[-_MOST_CHARACTERS:].splitlines()[-LOG_LINES:]
        return cls(raw["state"], code, seconds, reason[:_MOST_CHARACTERS], "\n".join(lines))

    def failure(self, title: Message) -> Message:
        """Say why it does not answer."""
        if self.state == "lacking":
            return msg(
                "The image of the server has no pai-for-jupyter that can open {title}. Take one that has "
                "pai-for-jupyter[services] of the Hub's version.",
                title=title,
            )
        if self.reason:
            return msg("{title} cannot be started: {reason}", title=title, reason=self.reason)
        if self.exit_code is None:
            return counted(
                "{title} did not answer within {count} second.",
                "{title} did not answer within {count} seconds.",
                title=title,
                count=self.seconds,
            )
        if self.exit_code == -signal.SIGKILL:
            return msg(
                "{title} was ended by signal 9 before it answered. Where nobody sent that, the memory was "
                "not enough: choose more at the next start.",
                title=title,
            )
        if self.exit_code < 0:
            return msg(
                "{title} was ended by signal {number} before it answered.",
                title=title,
                number=-self.exit_code,
            )
        return msg(
            "{title} ended with exit code {code} before it answered.", title=title, code=self.exit_code
        )


def asking(token: str, patience: float = _PATIENCE) -> aiohttp.ClientSession:
    """Return what asks a server; `token`: its own, for one that opens more must not be sent to a program that
    its user may change. `patience`: seconds that an answer may take.
    """
    timeout = aiohttp.ClientTimeout(total=patience)
    return aiohttp.ClientSession(headers={"Authorization": f"token {token}"}, timeout=timeout)


async def ask(http: aiohttp.ClientSession, server_url: str) -> ServiceState | None:
    """Return what a server says of its service; None: it does not say. `server_url`: ends with `/`."""
    # as it is: aiohttp would write plainly what the Hub encodes in a name ("a:b" is "a%3Ab" there)
    url = URL(server_url + PATH, encoded=True)
    try:
        async with http.get(url, allow_redirects=False) as answer:
            if answer.status == HTTPStatus.NOT_FOUND:
                return ServiceState("lacking")
            if answer.status != HTTPStatus.OK:
                return None
            body = bytearray()
            async for piece in answer.content.iter_any():
                body += piece
                if len(body) > _MOST_BYTES:
                    return None
            raw = json.loads(body)
    except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
        return None
    return ServiceState.read(raw) if isinstance(raw, dict) else None


# Waits until the service answers that opens in a starting server, and says why it does not.

#: Seconds between two questions.
_ASK_SERVICE_EVERY = 0.3
#: `ServerFailed.reason` where the service did not start
FAILED = "service"


async def wait_until_serving(
    client: Client,
    user: str,
    job: str,
    address: ServerAddress,
    *,
    base_url: str,
    title: Message,
    tell: Tell,
    patience: float,
) -> None:
    """Wait until the service of a server that listens answers.

    Raises `ServerFailed` when it does not start, when the job ends instead, or when its server says nothing
    for `patience` seconds. How long the service itself may take, its server decides.
    """
    tell(msg("The server answers; {title} is starting in it.", title=title), SERVING)
    clock = asyncio.get_running_loop().time
    heard, looked = clock(), -math.inf
    token = str((await client.config(user, job))["jobEnvs"]["JUPYTERHUB_API_TOKEN"])
    async with asking(token) as http:
        while True:
            found = await ask(http, f"http://{address.ip}:{address.port}{base_url}")
            if found is not None:
                heard = clock()
                if found.state == "answers":
                    return
                if found.state != "starting":
                    raise ServerFailed(found.failure(title), FAILED, found.log)
            if clock() - looked > LOOK_EVERY:
                looked = clock()
                with contextlib.suppress(UnreachableError):
                    await look(client, user, await client.job(user, job))
            if clock() - heard > patience:
                raise ServerFailed(
                    msg(
                        "The server did not say within {seconds:.0f} s what {title} does.",
                        seconds=patience,
                        title=title,
                    ),
                    "timeout",
                    await log_tail(client, user, job),
                )
            await asyncio.sleep(_ASK_SERVICE_EVERY)
