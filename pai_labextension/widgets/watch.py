"""Watches one job: tells its present state at each of its events, until it has ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.models import AttemptInfo, JobDetail, JobEvent

ENDED = frozenset({"SUCCEEDED", "FAILED", "STOPPED"})


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds: between two looks at a busy job, before trying again (doubling up to the longest), and at the
    latest between two looks at a quiet one (the events tell before that) and at a waiting one (its place in
    the queue changes without an event of its own)."""

    gap: float = 0.25
    first_retry: float = 1.0
    longest_retry: float = 30.0
    poll: float = 30.0
    waiting: float = 5.0


class JobWatch:
    """Looks at a job of `user` whenever something happened to it.

    `on_job` gets the job and its attempts, `on_event` each of its events, `on_trouble` a sentence
    while the scheduler does not answer and None when it does again. `run` ends when the job has, and
    raises `ApiError` where the scheduler refuses (no such job).
    """

    def __init__(
        self,
        client: Client,
        user: str,
        name: str,
        *,
        on_job: Callable[[JobDetail, list[AttemptInfo]], None],
        on_event: Callable[[JobEvent], None],
        on_trouble: Callable[[str | None], None],
        pace: Pace | None = None,
    ) -> None:
        self._client, self._user, self._name = client, user, name
        self._on_job, self._on_event, self._on_trouble = on_job, on_event, on_trouble
        self._pace = pace or Pace()
        self._happened = asyncio.Event()
        self._last_event = 0
        self._ended = False
        self._waiting = False

    def look(self) -> None:
        """Ask for the job again at once."""
        self._happened.set()

    async def run(self) -> None:
        """Watch until the job has ended."""
        listener = asyncio.create_task(self._listen(), name="pai-job-events")
        try:
            delay = self._pace.first_retry
            while not self._ended:
                if listener.done():
                    listener.result()  # a refusal, or a fault of ours: not to be lost
                self._happened.clear()
                try:
                    await self._refresh()
                    delay = self._pace.first_retry
                except (UnreachableError, ApiError) as error:
                    if not _may_pass(error):
                        raise
                    self._on_trouble(str(error))
                    await asyncio.sleep(delay)
                    delay = min(2 * delay, self._pace.longest_retry)
                    continue
                if not self._ended:
                    await self._until_something_happens()
        finally:
            listener.cancel()
            await asyncio.gather(listener, return_exceptions=True)

    async def _refresh(self) -> None:
        detail, attempts = await asyncio.gather(
            self._client.job(self._user, self._name), self._client.attempts(self._user, self._name)
        )
        self._on_trouble(None)
        status = detail["jobStatus"]
        self._waiting = status["state"] == "WAITING"
        self._ended = status["state"] in ENDED
        self._on_job(detail, attempts)

    async def _until_something_happens(self) -> None:
        await asyncio.sleep(self._pace.gap)
        try:
            async with asyncio.timeout(self._pace.waiting if self._waiting else self._pace.poll):
                await self._happened.wait()
        except TimeoutError:
            return

    async def _listen(self) -> None:
        """Follow the job's events; after a break, from where it broke off."""
        delay = self._pace.first_retry
        while not self._ended:
            try:
                async for event in self._client.events(self._user, self._name, after=self._last_event):
                    delay = self._pace.first_retry
                    self._last_event = max(self._last_event, event["id"])
                    self._on_event(event)
                    self._happened.set()
            except (UnreachableError, ApiError) as error:
                if not _may_pass(error):
                    raise
            self._happened.set()
            await asyncio.sleep(delay)
            delay = min(2 * delay, self._pace.longest_retry)


def _may_pass(error: Exception) -> bool:
    """Return whether trying again may help: nobody answered, or the scheduler itself is in trouble."""
    return isinstance(error, UnreachableError) or (isinstance(error, ApiError) and error.status >= 500)
