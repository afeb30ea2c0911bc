"""Follows the job of a starting server until its server answers, telling a person what goes on meanwhile."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from pai_scheduler.client.rest import ApiError, Client, UnreachableError, starts_in
from pai_scheduler.i18n import Message
from pai_scheduler.rest.models import JobDetail, JobEvent

from .messages import msg
from .server_job import ROLE

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
class Address:
    """Where the Hub's proxy reaches a server. `tunnel`: something listens there on the server's behalf."""

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


def address_of(detail: JobDetail) -> Address | None:
    """Read where a job's server listens; None while that is not known."""
    role = detail["taskRoles"].get(ROLE)
    if role is None or not role["taskStatuses"]:
        return None
    task = role["taskStatuses"][0]
    port = task["containerPorts"].get("http", "").partition(",")[0]
    return Address(task["containerIp"], int(port)) if task["containerIp"] and port else None


async def reach(client: Client, user: str, job: str, address: Address) -> Address:
    """Return where this machine reaches a server whose own address may be another machine's; ApiError."""
    found = await client.task_port(user, job, ROLE, 0, address.port)
    return address if found["host"] is None else Address(found["host"], found["port"], tunnel=True)


def exit_code_if_over(detail: JobDetail) -> int | None:
    """Return the exit status of a job that has ended, or is ending for good; None for one that goes on.

    The scheduler tells it once it is decided, which is before the last task has ended.
    """
    return detail["jobStatus"]["appExitCode"]


async def wait_until_running(client: Client, user: str, job: str, tell: Tell, *, patience: float) -> Address:
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
    client: Client, user: str, job: str, address: Address, *, patience: float
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


async def look(client: Client, user: str, detail: JobDetail) -> Address | None:
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


async def _listens(address: Address) -> bool:
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
