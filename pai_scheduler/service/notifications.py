"""Notifications of jobs' ends: ways out that an administrator opened; a sender that empties the outbox."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

from pai_scheduler.core.instructions import MAIL, WEBHOOK, Announcement
from pai_scheduler.core.model import JobEvent
from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import SpecError
from pai_scheduler.rest.address import job_page
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.store.records import WaitingAnnouncement
from pai_scheduler.store.store import Store, StoreError

from .writer import Committed, Writer

# What a way out has, and how one says that something could not be told.


class UndeliveredError(Exception):
    """It was not told. `final`: it would not be the next time either."""

    def __init__(self, message: Message, *, final: bool = False) -> None:
        super().__init__(str(message))
        self.message, self.final = message, final


class Channel(Protocol):
    """A way on which announcements go out."""

    def refusal(self, user: str, target: str) -> Message | None:
        """Return why a user's job may not be told of at a target; None where it may."""

    def where(self, announcement: Announcement) -> str:
        """Name the target for people, without what may be secret in it."""

    async def send(self, announcement: Announcement) -> None:
        """Tell it; UndeliveredError. The receiver may get it twice, with the same id."""


def delivery_id(announcement: Announcement) -> str:
    """Return the id of an announcement: the same however often it is sent, and of no other."""
    return f"{announcement.job_id}-{announcement.channel}"


# Which ways out an administrator has opened, and what jobs may ask of them.


@dataclass(frozen=True, slots=True)
class Notifications:
    """The ways out by their names (`webhook`, `mail`); what is not there is not opened.

    `console_url`: where jobs have pages that are linked to, a slash at its end; empty: there are none.
    """

    channels: Mapping[str, Channel] = field(default_factory=dict)
    console_url: str = ""

    def linked(self, announcement: Announcement) -> Announcement:
        """Return it with the address of the job's page, where that is known."""
        if not self.console_url:
            return announcement
        job = announcement.document
        page = job_page(self.console_url, announcement.user, str(job["name"]))
        return replace(announcement, document={**job, "consoleUrl": page})

    def errors(self, spec: JobSpec, user: str) -> Iterator[SpecError]:
        """Find what a user's job asks for that it cannot have."""
        wanted = spec.notify
        if wanted is None:
            return
        if wanted.webhook and (refusal := self._refusal(WEBHOOK, user, wanted.webhook)) is not None:
            yield SpecError("$.extras.notify.webhook", refusal)
        if wanted.mail:
            target = wanted.mail if isinstance(wanted.mail, str) else ""
            if (refusal := self._refusal(MAIL, user, target)) is not None:
                yield SpecError("$.extras.notify.mail", refusal)

    def _refusal(self, name: str, user: str, target: str) -> Message | None:
        channel = self.channels.get(name)
        if channel is not None:
            return channel.refusal(user, target)
        if name == WEBHOOK:
            return msg("This scheduler calls no webhooks. Leave it out, or ask your administrator for it.")
        return msg("This scheduler sends no mail. Leave it out, or ask your administrator for it.")


# Tells what is in the outbox: tries again with growing pauses, and gives up after a day with a sentence.

_log = logging.getLogger(__name__)

#: ms before the second try, the factor for each further one, and at most.
FIRST_PAUSE, PAUSE_GROWS, LONGEST_PAUSE = 10_000, 3, 3_600_000
#: ms after a job's end from which on it is no longer tried to tell it.
GIVE_UP = 24 * 3_600_000
#: Of the type of the job event that says so.
GIVEN_UP = "not-told"
#: How many are told at once, and of one user's: a receiver that hangs holds up few others.
AT_ONCE, AT_ONCE_PER_USER = 16, 4
_PAGE = 1000
#: Seconds before the database is asked again that has failed.
_DATABASE_PAUSE = 5.0
#: Seconds that what is under way has at the end.
_LAST_SECONDS = 3.0


class Sender:
    """Sends what `store` has to tell by `ways`. Only the service that leads may have one.

    `tell` gets the job events that say of what was given up, when they are durable; `clock` gives ms.
    """

    def __init__(
        self,
        store: Store,
        writer: Writer,
        ways: Notifications,
        tell: Callable[[JobEvent], None],
        clock: Callable[[], int],
    ) -> None:
        self._store, self._writer, self._ways = store, writer, ways
        self._tell, self._now = tell, clock
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._closing = False
        #: what was told, and the database has not taken that yet: only this is left to do
        self._told: set[tuple[str, str]] = set()

    async def start(self) -> None:
        """Begin with all that was left of the last time; StoreError."""
        await asyncio.to_thread(self._store.announce_all, self._now())
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop; what was not told is told after the next start.

        What is under way may come to its end for a moment: it would be told twice otherwise.
        """
        if self._task is not None:
            self._closing = True
            self.wake()
            await asyncio.wait([self._task], timeout=_LAST_SECONDS)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def committed(self, committed: Committed) -> None:
        """Look into the outbox where there is more in it."""
        if committed.outcome.announcements:
            self.wake()

    def wake(self) -> None:
        """Look into the outbox."""
        self._news.set()

    async def look(self) -> int | None:
        """Try what is due; return when the next is (ms). StoreError, RequestError: the database fails."""
        due = await asyncio.to_thread(self._store.due_announcements, self._now(), _PAGE)
        if due:
            # who was overtaken by another service, while it was frozen, must not tell what that one tells
            await self._writer.check()
        await asyncio.gather(*(self._send(waiting) for waiting in fair(due)))
        return await asyncio.to_thread(self._store.next_announcement)

    async def _run(self) -> None:
        while not self._closing:
            self._news.clear()
            pause: float | None
            try:
                due = await self.look()
                pause = None if due is None else max(due - self._now(), 0) / 1000
            except (StoreError, RequestError) as error:
                _log.error("the ends of jobs cannot be told, trying again: %s", error)
                pause = _DATABASE_PAUSE
            except Exception:
                _log.exception("the ends of jobs cannot be told, trying again")
                pause = _DATABASE_PAUSE
            if self._closing:
                return
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), pause)

    async def _send(self, waiting: WaitingAnnouncement) -> None:
        announcement = waiting.announcement
        key = announcement.job_id, announcement.channel
        try:
            if key not in self._told:
                await self._try(announcement)
                self._told.add(key)
        except UndeliveredError as error:
            pause = min(FIRST_PAUSE * PAUSE_GROWS**waiting.tries, LONGEST_PAUSE)
            if error.final or self._now() + pause > announcement.time + GIVE_UP:
                await self._give_up(announcement, error)
            else:
                if waiting.tries == 0:
                    _log.warning(
                        "the end of job %s is not told yet by %s, trying again for a day: %s",
                        announcement.job_id,
                        announcement.channel,
                        error.message,
                    )
                await self._writer.keep(
                    self._store.put_off, announcement, waiting.tries + 1, self._now() + pause
                )
        else:
            await self._writer.keep(self._store.settle, announcement)
            self._told.discard(key)

    async def _try(self, announcement: Announcement) -> None:
        channel = self._ways.channels.get(announcement.channel)
        if channel is None:
            raise UndeliveredError(msg("the administrator has closed this way."), final=True)
        try:
            await channel.send(self._ways.linked(announcement))
        except UndeliveredError:
            raise
        except Exception as error:
            _log.exception("the end of job %s cannot be told", announcement.job_id)
            raise UndeliveredError(msg("a fault of the scheduler; see its log.")) from error

    async def _give_up(self, announcement: Announcement, error: UndeliveredError) -> None:
        channel = self._ways.channels.get(announcement.channel)
        where = channel.where(announcement) if channel is not None else announcement.channel
        message = msg(
            "The end of this job could not be told to {where}: {reason}", where=where, reason=error.message
        )
        _log.warning("job %s: %s", announcement.job_id, message)
        # never before the end that it speaks of, whatever clocks say
        entry = JobEvent(announcement.job_id, max(self._now(), announcement.time), GIVEN_UP, message)
        await self._writer.keep(self._store.settle, announcement, entry)
        self._tell(entry)


def fair(due: Sequence[WaitingAnnouncement]) -> list[WaitingAnnouncement]:
    """Choose what is told now, in this order, so many of each user at most."""
    count: Counter[str] = Counter()
    chosen: list[WaitingAnnouncement] = []
    for waiting in due:
        user = waiting.announcement.user
        if count[user] < AT_ONCE_PER_USER and len(chosen) < AT_ONCE:
            count[user] += 1
            chosen.append(waiting)
    return chosen
