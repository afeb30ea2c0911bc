"""Session of all calls of a program with one scheduler: connections, and one stream of job events."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.client.storage.client import FilesClient, FilesError
from pai_scheduler.i18n import msg
from pai_scheduler.rest.models import JobEvent

from .demand import Place
from .errors import CallError

Value = TypeVar("Value")

#: Seconds for which a scheduler that is being restarted is waited for, and between two tries.
PATIENCE, AGAIN = 120.0, 1.0
#: Jobs that are submitted at the same time, tasks whose files are read, and logs that are followed.
SUBMITTING, READING, FOLLOWING = 8, 8, 50
#: Seconds between two looks for jobs that are gone without a word: deleted ones have no events any more.
LOOK = 30.0
#: Answers that say: not now.
_PASSING = (429, 502, 503, 504)
_PROCESS_ENGINE = "process"


@dataclass(frozen=True, slots=True)
class Access:
    """Connection settings of the scheduler, as `Client` has them; None: as the environment says."""

    url: str | None = None
    token: str | None = None
    locale: str = "en"


class CallSession:
    """The connections of all calls with the same `Access`, and the events of their jobs.

    A user may follow so many logs and events at once, and have so many jobs: where such a limit is reached,
    a call waits. It belongs to one event loop.
    """

    def __init__(self, access: Access) -> None:
        self.locale = access.locale
        self.client = Client(access.url, access.token, locale=access.locale)
        self.files = FilesClient(self.client.url, self.client.token, locale=access.locale)
        self.submitting, self.reading = asyncio.Semaphore(SUBMITTING), asyncio.Semaphore(READING)
        self.following = asyncio.Semaphore(FOLLOWING)
        #: calls that use it; whether one has removed what nobody fetched
        self.users, self.tidied = 0, False
        self._asking, self._beginning = asyncio.Lock(), asyncio.Lock()
        self._place: Place | None = None
        self._valid: set[str] = set()
        #: what has happened to each job and nobody has taken yet; None: it is over
        self._events: dict[str, asyncio.Queue[JobEvent | Exception | None]] = {}
        self._submitted: set[str] = set()
        #: the last event that was seen of all jobs
        self._seen: int | None = None
        self._watching: list[asyncio.Task[None]] = []

    async def place(self) -> Place:
        """Return for whom, and where, calls run."""
        async with self._asking:
            if self._place is None:
                user = (await self.client.whoami())["username"]
                local = (await self.client.about()).get("engine") == _PROCESS_ENGINE
                own = await self._own_job(user)
                home = str((own.get("extras") or {}).get("home", ""))
                variable = str((own.get("jobEnvs") or {}).get("HOME", ""))
                self._place = Place(user, str(own.get("image", "")), local, home, variable)
        return self._place

    async def check(self, job: Mapping[str, Any]) -> None:
        """Raise CallError where a job is wrong, or can never run; once for jobs that differ in names only."""
        alike = repr({**job, "jobName": ""})
        if alike in self._valid:
            return
        checked = await self.client.validate(job)
        if checked["errors"]:
            first = checked["errors"][0]
            raise CallError(
                msg("Not submitted: {path}: {error}", path=first["path"], error=first["message"]), self.locale
            )
        if checked["fits"] == "never":
            raise CallError(msg("Not submitted: {reason}", reason=checked["reason"]), self.locale)
        self._valid.add(alike)

    async def submit(self, job: Mapping[str, Any], waiting: Callable[[str], None]) -> None:
        """Submit a job, and keep its events.

        Where the user has as many jobs as one may have, tell `waiting` so, and wait for some to end.
        """
        name = str(job["jobName"])
        self._events[name] = asyncio.Queue()
        try:
            # the first one shows from where on the others' events are read: they come after it
            async with self._beginning if self._seen is None else nullcontext():
                while True:
                    try:
                        await self.client.submit(job)
                        break
                    except ApiError as error:
                        if error.code != "TooManyJobsError":
                            raise
                        waiting(str(error))
                    await asyncio.sleep(AGAIN)
                self._submitted.add(name)
                if self._seen is None:
                    user = (await self.place()).user
                    own = await self.client.list_events(user, name)
                    self._seen = min((event["id"] for event in own), default=1) - 1
        except BaseException:
            self.forget(name)
            raise
        if all(task.done() for task in self._watching):
            self._watching = [asyncio.create_task(self._watch()), asyncio.create_task(self._look())]

    async def events(self, name: str) -> AsyncIterator[JobEvent]:
        """Return a job's events, until it has ended; UnreachableError where the scheduler stays away."""
        while (event := await self._events[name].get()) is not None:
            if isinstance(event, Exception):
                raise event
            yield event

    def forget(self, name: str) -> None:
        """Keep no more events of a job."""
        self._events.pop(name, None)
        self._submitted.discard(name)

    async def patiently(self, work: Callable[..., Awaitable[Value]], *arguments: Any) -> Value:
        """Do some work, again while the scheduler is being restarted, or is busy."""
        waited = 0.0
        while True:
            try:
                return await work(*arguments)
            except (UnreachableError, FilesError, ApiError) as error:
                if waited > PATIENCE or not may_pass(error):
                    raise
            waited += AGAIN
            await asyncio.sleep(AGAIN)

    async def close(self) -> None:
        """Follow nothing more, and close the connections."""
        for task in self._watching:
            task.cancel()
        await asyncio.gather(*self._watching, return_exceptions=True)
        await self.client.close()
        await self.files.close()

    async def _own_job(self, user: str) -> Mapping[str, Any]:
        """Return the job of the notebook server, or of the kernel, that this runs in; empty: it is none."""
        name = os.environ.get("PAI_JOB_NAME", "")
        if not name:
            return {}
        try:
            return await self.client.config(user, name)
        except ApiError:
            return {}

    async def _watch(self) -> None:
        """Take the events of all the user's jobs, as they happen."""
        user = (await self.place()).user
        waited = 0.0
        while True:
            try:
                try:
                    async for event in self.client.user_events(user, after=self._seen or 0):
                        waited = 0.0
                        self._take(event)
                except ApiError as error:
                    if error.status != 429:
                        raise
                    # the user follows as much as one may: they are asked for instead, now and then
                    for event in await self.client.list_user_events(user, after=self._seen or 0):
                        self._take(event)
            except (ApiError, UnreachableError) as error:
                if waited > PATIENCE or not may_pass(error):
                    for queue in self._events.values():
                        queue.put_nowait(error)
                    return
                waited += AGAIN
            await asyncio.sleep(AGAIN)

    def _take(self, event: JobEvent) -> None:
        self._seen = event["id"]
        name = event.get("job", "")
        if (queue := self._events.get(name)) is not None:
            queue.put_nowait(event)
            if event["type"] == "ended":
                self._over(name)

    async def _look(self) -> None:
        """End following jobs that are over, or gone, and of whose end no event tells."""
        user = (await self.place()).user
        while True:
            await asyncio.sleep(LOOK)
            known = set(self._submitted)
            with suppress(ApiError, UnreachableError):
                alive = await self.client.jobs(user, states=("WAITING", "RUNNING"), limit=10_000)
                for name in known - {job["name"] for job in alive}:
                    self._over(name)

    def _over(self, name: str) -> None:
        self._submitted.discard(name)
        if (queue := self._events.get(name)) is not None:
            queue.put_nowait(None)


def may_pass(error: UnreachableError | FilesError | ApiError) -> bool:
    """Return whether it may go better a little later."""
    return isinstance(error, UnreachableError) or error.status in _PASSING


_sessions: dict[tuple[asyncio.AbstractEventLoop, Access], CallSession] = {}


@asynccontextmanager
async def opened(access: Access) -> AsyncIterator[CallSession]:
    """Open the ways to the scheduler and the storage, which all calls share that need them now."""
    key = asyncio.get_running_loop(), access
    session = _sessions.get(key)
    if session is None:
        session = _sessions[key] = CallSession(access)
    session.users += 1
    try:
        yield session
    finally:
        session.users -= 1
        if not session.users:
            del _sessions[key]
            await session.close()
