"""Job events over REST, as a list or server-sent events; changes of queues, waited for."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

from pai_scheduler.core.model import SubState
from pai_scheduler.i18n import msg
from pai_scheduler.rest.cluster import ClusterVersion
from pai_scheduler.rest.errors import invalid_parameters
from pai_scheduler.rest.models import JobEvent
from pai_scheduler.store.records import StoredJobEvent

from .base import PageRequest, Route, asked_page, bad_query, routes, whole_number
from .operations import (
    AFTER,
    FLAG,
    FOLLOW,
    LAST_EVENT_ID,
    LIMIT,
    NEXT_PAGE,
    NO_JOB,
    TOO_MANY_STREAMS,
    Answer,
    operation,
    query,
)
from .streaming import ListHandler, StreamHandler, stored

# Whether what is free, or a queue, has changed: waited for, so that nobody need ask again and again.

#: Seconds after which who waits is told that nothing has changed: below the idle limits of common proxies.
LONGEST_WAIT = 25.0


class ChangesHandler(StreamHandler):
    """`/changes`: answers when something has changed."""

    @operation(
        "GET /changes",
        "changes",
        "cluster",
        "Wait until what is free, or a queue, has changed",
        {200: Answer("The present version.", ClusterVersion)},
        description="Whoever shows what is free, or what would start, asks for that again when the version "
        "is another one. Without `after`, or where it is no longer the present version, the answer comes at "
        "once; else when something has changed, or unchanged after 25 seconds.",
        parameters=[query("after", str, "The version that the caller knows")],
        refusals=[TOO_MANY_STREAMS],
    )
    async def get(self) -> None:
        """Wait, and tell."""
        changes = self.service.changes
        known = self.query_text("after") or ""
        if changes.version == known:
            with self.counted():
                await self._wait(known)
        if not self.gone.is_set():
            self.answer({"version": changes.version})

    async def _wait(self, known: str) -> None:
        """Wait for a change, but not longer than the reader stays."""
        changed = asyncio.create_task(self.service.changes.other_than(known))
        gone = asyncio.create_task(self.gone.wait())
        try:
            await asyncio.wait({changed, gone}, timeout=LONGEST_WAIT, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
            gone.cancel()


# Job events over REST: as a list, or followed as server-sent events.

#: Seconds between signs of life, below the idle limits of common proxies.
HEARTBEAT_SECONDS = 15.0

_NEW = query(
    "new",
    FLAG,
    "With `follow`: only what happens from now on, unless `Last-Event-ID` says more. The first `id:`, which "
    "has no event, is that of the last one so far",
    "0",
)
_FOLLOWING = [FOLLOW, _NEW, LAST_EVENT_ID, LIMIT, AFTER]
_LISTED = Answer(
    "The events; followed, as server-sent events with `id:` and one event as JSON in `data:`.",
    list[JobEvent],
    {"text/event-stream": {}},
    NEXT_PAGE,
)


class EventsHandler(StreamHandler, ListHandler):
    """`/events` and `…/:j/events`; `follow=1`: as it happens, resumed by `Last-Event-ID`."""

    @operation(
        "GET /user/{user}/jobs/{job}/events",
        "jobEvents",
        "watching",
        "What has happened to a job, oldest first",
        {
            200: _LISTED,
            204: Answer("Followed from the last event on: the job has ended, there is no more."),
        },
        description="Followed, it goes on as it happens, until the job has ended.",
        parameters=_FOLLOWING,
        refusals=[NO_JOB, TOO_MANY_STREAMS],
    )
    @operation(
        "GET /events",
        "events",
        "watching",
        "What has happened to all jobs that one may see, oldest first",
        {200: _LISTED},
        description="Each event has `user` and `job`. Followed, it never ends.",
        parameters=[query("username", str, "Only those of this user's jobs"), *_FOLLOWING],
        refusals=[TOO_MANY_STREAMS],
    )
    async def get(self, user: str | None = None, name: str | None = None) -> None:
        """List, or follow."""
        if name is None:
            user = self.query_text("username") or None
        page = asked_page(self, whole_number)
        after = page.after if page.after is not None else self._last_seen()
        if self.query_flag("follow"):
            if page.limit is not None:
                raise bad_query("limit", msg("what is followed has no pages."))
            await self._follow(user, name, after)
            return

        async def read(after: int | None, count: int) -> list[StoredJobEvent]:
            return await self.service.job_events.read(
                self.principal, user, name, after=after or 0, limit=count
            )

        def present(stored: StoredJobEvent) -> tuple[int, JobEvent]:
            return stored.id, self.presenter.event(stored, with_job=name is None)

        await self.answer_list(PageRequest(page.limit, after), stored(read, present))

    async def _follow(self, user: str | None, name: str | None, after: int) -> None:
        # refusals come before the first byte
        if user is not None and name is not None:
            job = await self.service.jobs.get(self.principal, user, name)
            over = job.sub_state is SubState.ENDED
            if (
                over
                and after
                and not await self.service.job_events.read(self.principal, user, name, after=after, limit=1)
            ):
                # A browser that comes back for more is told that there is none, or it would ask for ever.
                self.set_status(204)
                self.finish()
                return
        with self.counted():
            self.set_header("Content-Type", "text/event-stream; charset=UTF-8")
            self.set_header("X-Accel-Buffering", "no")
            await self.send("retry: 1000\n\n")
            if not after and self.query_flag("new"):
                after = await self.service.job_events.last()
                await self.send(f"id: {after}\n\n")
            async for stored in self._with_heartbeats(
                self.service.job_events.follow(self.principal, user, name, after)
            ):
                event = self.presenter.event(stored, with_job=name is None)
                await self.send(f"id: {stored.id}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n")

    async def _with_heartbeats(self, events: AsyncIterator[StoredJobEvent]) -> AsyncIterator[StoredJobEvent]:
        """Return the events until the reader leaves; write a comment when nothing happened for a while."""
        gone = asyncio.create_task(self.gone.wait())
        upcoming: asyncio.Task[StoredJobEvent] | None = None
        try:
            while not self.gone.is_set():
                if upcoming is None:
                    upcoming = asyncio.create_task(_next(events))
                await asyncio.wait(
                    {upcoming, gone}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if upcoming.done():
                    try:
                        stored = upcoming.result()
                    except StopAsyncIteration:
                        return
                    upcoming = None
                    yield stored
                elif not gone.done():
                    await self.send(": still here\n\n")
        finally:
            gone.cancel()
            if upcoming is not None:
                upcoming.cancel()
                await asyncio.wait({upcoming})

    def _last_seen(self) -> int:
        text = self.request.headers.get("Last-Event-ID", "").strip() or "0"
        if not (text.isascii() and text.isdigit() and len(text) < 19):
            raise invalid_parameters(msg("Last-Event-ID must be the id of an event, a whole number."))
        return int(text)


async def _next(events: AsyncIterator[StoredJobEvent]) -> StoredJobEvent:
    return await anext(events)


ROUTES: list[Route] = routes(ChangesHandler, EventsHandler)
