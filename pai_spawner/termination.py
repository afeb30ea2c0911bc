"""The end of a server: its job stopped, and why it ended by itself."""

from __future__ import annotations

import asyncio
import html
import math
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from jupyterhub.spawner import SpawnException

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.i18n import LOCALES, Message
from pai_scheduler.job.exit_codes import NODE_LOST, OUT_OF_DISK, OUT_OF_MEMORY, STOPPED_BY_USER, SUCCEEDED
from pai_scheduler.rest.models import JobDetail, JobEvent

from .messages import msg
from .server_job import ROLE
from .startup import EXITED, STOPPED, ServerFailed, log_tail, patiently, wait_until_ended

# Why a server has ended: kept by its spawner until the next start, told on the Hub's pages.

#: The next larger memory that is proposed, as a multiple of what was too little.
_MORE = 2
_NO_STATUS = 0
#: What a scheduler keeps no answer for: one that was deleted.
_NOT_FOUND = 404
#: The Hub's service that ends servers by rules, and for administrators: as whom it stops jobs.
SESSIONS_SERVICE = "pai-sessions"
#: Seconds that a stop waits to hear whether somebody else was first.
_PATIENCE = 5.0


class End(StrEnum):
    """The kinds of ends that a person has to tell apart."""

    CANCELLED = "cancelled"
    STOPPED = "stopped"
    SESSION_ENDED = "session-ended"
    TIME_LIMIT = "time-limit"
    OUT_OF_MEMORY = "out-of-memory"
    OUT_OF_DISK = "out-of-disk"
    MACHINE_LOST = "machine-lost"
    EXITED = "exited"
    NOT_STARTED = "not-started"
    GONE = "gone"


_ENDS = {
    OUT_OF_MEMORY: End.OUT_OF_MEMORY,
    OUT_OF_DISK: End.OUT_OF_DISK,
    NODE_LOST: End.MACHINE_LOST,
    STOPPED_BY_USER: End.STOPPED,
}
#: ends that the server's log says nothing about
_ON_PURPOSE = (End.STOPPED, End.SESSION_ENDED, End.TIME_LIMIT)


@dataclass(frozen=True, slots=True)
class ServerEnd:
    """The end of a server. `time`: ms since the epoch; `memory_mb`: its memory, 0 where that is not known.

    `why`: what the scheduler says of it, a sentence for each language; `log`: the last lines of its log.
    """

    kind: End
    time: int
    exit_code: int | None = None
    memory_mb: int = 0
    why: Mapping[str, str] = field(default_factory=dict)
    log: str = ""

    @property
    def title(self) -> Message:
        """Say in a few words how it ended."""
        match self.kind:
            case End.CANCELLED:
                return msg("The start was cancelled.")
            case End.STOPPED:
                return msg("It was stopped.")
            case End.SESSION_ENDED:
                return msg("Its session was ended.")
            case End.TIME_LIMIT:
                return msg("Its time was over.")
            case End.OUT_OF_MEMORY:
                return msg("It was ended because its memory was not enough.")
            case End.OUT_OF_DISK:
                return msg("It was ended because its disk was full.")
            case End.MACHINE_LOST:
                return msg("The machine on which it ran was lost.")
            case End.NOT_STARTED:
                return msg("It did not start.")
            case End.GONE:
                return msg("Its job was deleted.")
        if self.exit_code == SUCCEEDED:
            return msg("It was shut down from inside.")
        return msg("It ended by itself, with exit code {code}.", code=self.exit_code)

    @property
    def expected(self) -> bool:
        """Return whether somebody wanted it to end."""
        wanted = self.kind in (End.CANCELLED, End.STOPPED)
        return wanted or (self.kind is End.EXITED and self.exit_code == SUCCEEDED)

    @property
    def advice(self) -> Message | None:
        """Say what to do about it; None where there is nothing special to do."""
        match self.kind:
            case End.OUT_OF_MEMORY if self.memory_mb:
                return msg(
                    "All its notebooks and terminals together had {memory} MB. Choose more at the next "
                    "start, for example {more} MB, or load less at once.",
                    memory=self.memory_mb,
                    more=self.memory_mb * _MORE,
                )
            case End.OUT_OF_DISK:
                return msg(
                    "Write large files into the storage or into your home, or remove what is not needed."
                )
            case End.TIME_LIMIT:
                return msg(
                    "Its files are where they were; what was only in its memory is lost. Where you need it "
                    "for longer, choose a longer time at the next start."
                )
            case End.MACHINE_LOST:
                return msg("Start it again: it gets another machine. What was only in its memory is lost.")
        return None

    def reason(self, locale: str) -> str:
        """Return what the scheduler says of it in a language, else in any; empty: it says nothing."""
        return self.why.get(locale) or next(iter(self.why.values()), "")

    def as_json(self) -> dict[str, Any]:
        """Write it as the Hub's database keeps it."""
        return {
            "kind": str(self.kind),
            "time": self.time,
            "exit_code": self.exit_code,
            "memory_mb": self.memory_mb,
            "why": dict(self.why),
            "log": self.log,
        }

    @classmethod
    def from_json(cls, kept: Mapping[str, Any] | None) -> ServerEnd | None:
        """Read what `as_json` wrote; None for what another version wrote."""
        try:
            return cls(**{**kept, "kind": End(kept["kind"])}) if kept else None
        except (KeyError, TypeError, ValueError):
            return None


def now_ms() -> int:
    """Return the time in ms since the epoch."""
    return time.time_ns() // 1_000_000


async def read_ending(clients: Callable[[str], Client], user: str, job: str, now: int) -> ServerEnd:
    """Ask the scheduler how a job ended. What cannot be asked is left out: this never raises.

    `clients` gives the scheduler's client for a language; `now` is in ms since the epoch.
    """
    details: dict[str, JobDetail] = {}
    try:
        for locale in LOCALES:
            details[locale] = await clients(locale).job(user, job)
    except UnreachableError:
        pass
    except ApiError as error:
        if error.status == _NOT_FOUND:
            return ServerEnd(End.GONE, now)
    if not details:
        return ServerEnd(End.EXITED, now)
    status = next(iter(details.values()))["jobStatus"]
    spec = status["appExitSpec"]
    kind = _ENDS.get(spec["code"] if spec else _NO_STATUS, End.EXITED)
    client = clients(LOCALES[0])
    if kind is End.STOPPED:
        kind = _kind_of_stop(await _events(client, user, job))
    # that all its tasks have completed says nothing of a server
    told = {} if status["appExitCode"] == SUCCEEDED else details
    return ServerEnd(
        kind,
        status["completedTime"] or now,
        status["appExitCode"],
        await _memory_mb(client, user, job),
        {locale: detail["jobStatus"]["appExitDiagnostics"] for locale, detail in told.items()},
        "" if kind in _ON_PURPOSE else await log_tail(client, user, job),
    )


async def note_stop(ending: ServerEnd, clients: Callable[[str], Client], user: str, job: str) -> ServerEnd:
    """Return the end of a server that the Hub stops now, with who was first to stop it, and why.

    Where nobody was, or the scheduler does not say it in time, that is `ending` itself: this never raises.
    """
    try:
        async with asyncio.timeout(_PATIENCE):
            told = {locale: await _events(clients(locale), user, job) for locale in LOCALES}
    except TimeoutError:
        return ending
    stops = {
        locale: next((event["message"] for event in events if _is_stop(event)), "")
        for locale, events in told.items()
    }
    if not any(stops.values()):
        return ending
    return replace(ending, kind=_kind_of_stop(told[LOCALES[0]]), why=stops)


def _kind_of_stop(events: Iterable[JobEvent]) -> End:
    """Return who ended a job that was stopped: what it was warned of does not tell that."""
    first = next((event["data"] for event in events if _is_stop(event)), {})
    if first.get("cause") == "timeLimit":
        return End.TIME_LIMIT
    return End.SESSION_ENDED if first.get("by") == SESSIONS_SERVICE else End.STOPPED


def _is_stop(event: JobEvent) -> bool:
    return event["type"] == "stop-requested" or event["data"].get("cause") == "timeLimit"


async def _events(client: Client, user: str, job: str) -> list[JobEvent]:
    try:
        return await client.list_events(user, job)
    except (UnreachableError, ApiError):
        return []


async def _memory_mb(client: Client, user: str, job: str) -> int:
    try:
        config = await client.config(user, job)
    except (UnreachableError, ApiError):
        return 0
    roles = {role["name"]: role for role in config["taskRoles"]}
    return int(roles.get(ROLE, {}).get("memoryMB", 0))


# How a person learns why a server did not start.


class ServerNotStarted(SpawnException):  # type: ignore[misc]  # jupyterhub has no types
    """The reason that a server does not start, in the user's language, with the last lines of its log."""

    def __init__(self, message: str, *, reason: str, log: str = "", status_code: int = 400) -> None:
        super().__init__(
            message, reason=reason, log_message=f"{message}\n{log}".strip(), status_code=status_code
        )
        # these two are what the Hub's pages show
        self.jupyterhub_message = f"{message}\n{log}".strip()
        if log:
            self.jupyterhub_html_message = (
                f"<p>{html.escape(message)}</p><pre class='text-start'>{html.escape(log)}</pre>"
            )


Problem = ServerFailed | ServerNotStarted | ApiError | UnreachableError


def ending_of_start(error: Problem, locale: str) -> ServerEnd | None:
    """Return how a start came to its end; None where its job knows that better.

    `locale`: in which it was begun. Who reads it may read another language, in which all is kept that is
    known in it: what the scheduler has refused is known in this one.
    """
    if isinstance(error, ServerFailed) and error.reason in (EXITED, STOPPED):
        return None
    log = error.log if isinstance(error, ServerFailed) else ""
    known = (locale,) if isinstance(error, ServerNotStarted | ApiError) else LOCALES
    why = {one: not_started(error, one).message for one in known}
    return ServerEnd(End.NOT_STARTED, now_ms(), why=why, log=log)


def not_started(error: Problem, locale: str) -> ServerNotStarted:
    """Put what went wrong into the words, and the status, that the Hub shows."""
    if isinstance(error, ServerNotStarted):
        return error
    if isinstance(error, ServerFailed):
        message = error.message.in_locale(locale)
        return ServerNotStarted(message, reason=error.reason, log=error.log, status_code=500)
    if isinstance(error, ApiError):
        return ServerNotStarted(error.message, reason=error.code, status_code=error.status)
    message = msg(
        "The scheduler does not answer. Try again in a minute, or tell your administrator."
    ).in_locale(locale)
    return ServerNotStarted(message, reason="unreachable", status_code=503)


# Jobs of servers that must be stopped: remembered until they are, whoever is away or is killed meanwhile.


class PendingStops:
    """The jobs of one server, this one or former ones, that are to be stopped.

    `client` gives the scheduler's client; `store` writes `jobs` down, so that another Hub takes them up.
    """

    def __init__(
        self,
        client: Callable[[], Client],
        user: Callable[[], str],
        store: Callable[[], None],
        log: Any,
    ) -> None:
        self._client, self._user, self._store, self._log = client, user, store, log
        self.jobs: list[str] = []
        #: stops what could not be stopped at once; None: there was never anything
        self.task: asyncio.Future[None] | None = None

    def __contains__(self, job: str) -> bool:
        return job in self.jobs

    def restore(self, jobs: Iterable[str]) -> None:
        """Take up what an earlier Hub has left."""
        self.jobs = list(jobs)
        if self.jobs:
            asyncio.get_running_loop().call_soon(self.later)

    async def stop(self, job: str, *, wait: bool, patience: float) -> None:
        """Stop a job, and `wait` for its end; what takes longer than `patience` seconds goes on beside."""
        self.add(job)
        client, user = self._client(), self._user()
        try:
            await patiently(partial(_stop, client, user, job), patience=patience)
            if wait:
                await wait_until_ended(client, user, job, patience=patience)
        except (UnreachableError, TimeoutError) as error:
            self._log.warning("%s is not stopped yet (%s); it will be stopped later", job, error)
            self.later()
        else:
            self._remove(job)

    def add(self, job: str) -> None:
        """Note that a job is to be stopped, before anybody is told."""
        if job not in self.jobs:
            self.jobs.append(job)
            self._store()

    def later(self) -> None:
        """Stop what is noted in the background, however long that takes."""
        if self.jobs and (self.task is None or self.task.done()):
            self.task = asyncio.ensure_future(self._stop_all())

    async def _stop_all(self) -> None:
        while self.jobs:
            job = self.jobs[0]
            await patiently(partial(_stop, self._client(), self._user(), job), patience=math.inf)
            self._remove(job)
            self._log.info("%s is stopped now", job)
        self._store()

    def _remove(self, job: str) -> None:
        if job in self.jobs:
            self.jobs.remove(job)


async def _stop(client: Client, user: str, job: str) -> None:
    """Stop a job; one that is gone is stopped."""
    try:
        await client.stop(user, job)
    except ApiError as error:
        if error.status != 404:
            raise
