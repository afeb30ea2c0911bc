"""Events of jobs, read from the store and followed as they become durable; changes of queues."""

from __future__ import annotations

import asyncio
import secrets
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from typing import Literal

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, JobEvent
from pai_scheduler.core.state_machine import Core
from pai_scheduler.principal import Principal
from pai_scheduler.store.records import StoredJobEvent
from pai_scheduler.store.store import Store

from .reader import Reader
from .writer import Committed

# Tells those who wait for it that what is free, or a queue, has changed, once that is durable.


class Changes:
    """Knows by a version how the cluster and the queues stand. A version is compared with others only.

    `core` gives the core of the moment: after a failed write it is another one.
    """

    def __init__(self, core: Callable[[], Core]) -> None:
        self._core = core
        # a version of a scheduler that ran before is none of this one
        self._run, self._number = secrets.token_hex(4), 0
        self._seen: tuple[Core, int] | None = None
        self._changed = asyncio.Event()

    @property
    def version(self) -> str:
        """Return the present version."""
        return f"{self._run}-{self._number}"

    async def other_than(self, version: str) -> str:
        """Return the present version, as soon as it is another one."""
        while self.version == version:
            await self._changed.wait()
        return self.version

    def committed(self, committed: Committed) -> None:  # noqa: ARG002
        """Notice it."""
        self.look()

    def look(self) -> None:
        """Notice what has become durable, and wake those who wait."""
        core = self._core()
        seen, now = self._seen, (core, core.state.version)
        if seen is not None and seen[0] is core and seen[1] == now[1]:
            return
        self._seen = now
        self._number += 1
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()


# What happened to jobs: read from the store, and followed as it becomes durable.

_PAGE = 1000

#: What is followed: a job by its id, a user's jobs by the user's name; None: all jobs.
_Followed = tuple[Literal["job", "user"], str] | None


class JobEvents:
    """Reads for each caller the events of the jobs that they may see, and knows who follows which.

    `find` returns a job by its id, where it has not ended.
    """

    def __init__(self, store: Store, reader: Reader, find: Callable[[str], Job | None]) -> None:
        self._store = store
        self._reader = reader
        self._find = find
        #: what wakes those who follow something
        self._followers: dict[_Followed, set[asyncio.Event]] = defaultdict(set)

    @property
    def followed(self) -> bool:
        """Return whether anybody follows anything."""
        return bool(self._followers)

    async def read(
        self, principal: Principal, owner: str | None, name: str | None, after: int = 0, limit: int = 10_000
    ) -> list[StoredJobEvent]:
        """Return what happened after event id `after`: to a job, to the jobs of `owner` (without a `name`),
        or to all jobs that the caller may see."""
        return await self._read(await self._followed(principal, owner, name), after, limit)

    async def last(self) -> int:
        """Return the id of the newest event, whosever it is; 0 where there is none."""
        return await self._reader.read(self._store.last_job_event)

    async def follow(
        self, principal: Principal, owner: str | None, name: str | None, after: int = 0
    ) -> AsyncGenerator[StoredJobEvent, None]:
        """Return events later than `after`, and go on as they happen; of one job: until that has ended."""
        followed = await self._followed(principal, owner, name)
        job_id = followed[1] if followed is not None and followed[0] == "job" else None
        news = asyncio.Event()
        with self._waking(followed, news):
            while True:
                news.clear()
                # asked before reading, and of what is durable: nothing is missed at the end
                over = job_id is not None and await self._reader.read(self._store.is_over, job_id)
                last = await self.last() if job_id is None else after
                entries = await self._read(followed, after, _PAGE)
                for entry in entries:
                    after = entry.id
                    yield entry
                if over and not entries:
                    return
                if not entries:
                    # others' events so far need not be looked through again each time
                    after = max(after, last)
                    await news.wait()

    @contextmanager
    def waking(self, job_id: str, news: asyncio.Event) -> Iterator[None]:
        """Have `news` set whenever something of a job has become durable."""
        with self._waking(("job", job_id), news):
            yield

    @contextmanager
    def _waking(self, followed: _Followed, news: asyncio.Event) -> Iterator[None]:
        self._followers[followed].add(news)
        try:
            yield
        finally:
            self._followers[followed].discard(news)
            if not self._followers[followed]:
                del self._followers[followed]

    def tell(self, entry: JobEvent) -> None:
        """Wake those who follow what has just been told of a job beside the core."""
        self.wake(Outcome(job_events=[entry]))

    def committed(self, committed: Committed) -> None:
        """Wake those who follow what is in it."""
        self.wake(committed.outcome)

    def wake(self, outcome: Outcome) -> None:
        """Wake those who follow what has just become durable."""
        if not self._followers:
            return
        changed: dict[str, Job | None] = {entry.job_id: None for entry in outcome.job_events}
        changed |= outcome.jobs
        users = {job.user if (job := known or self._find(id_)) else None for id_, known in changed.items()}
        woken: set[_Followed] = {None, *(("job", job_id) for job_id in changed)}
        if None in users:
            # of a job that has ended: whose it is, the store alone knows
            woken.update(followed for followed in self._followers if followed and followed[0] == "user")
        woken.update(("user", user) for user in users if user)
        for followed in woken:
            for news in self._followers.get(followed, ()):
                news.set()

    async def _followed(self, principal: Principal, owner: str | None, name: str | None) -> _Followed:
        if owner is not None and name is not None:
            return "job", (await self._reader.find(principal, owner, name)).id
        if owner is None:
            return None if principal.admin else ("user", principal.name)
        # another user's jobs are not found, whether there are any or not
        return "user", owner if principal.may_act_for(owner) else ""

    async def _read(self, followed: _Followed, after: int, limit: int) -> list[StoredJobEvent]:
        kind, value = followed or (None, None)
        return await self._reader.read(
            self._store.job_events,
            job_id=value if kind == "job" else None,
            user=value if kind == "user" else None,
            after=after,
            limit=limit,
        )
