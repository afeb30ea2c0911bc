"""What happened to jobs: read from the store, and followed as it becomes durable."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import JobEvent
from pai_scheduler.execution.reader import Reader
from pai_scheduler.security.principal import Principal
from pai_scheduler.store.records import StoredJobEvent
from pai_scheduler.store.store import Store

_PAGE = 1000


class JobEvents:
    """Reads for each caller the events of the jobs that they may see, and knows who follows which."""

    def __init__(self, store: Store, reader: Reader) -> None:
        self._store = store
        self._reader = reader
        #: what wakes those who follow a job, by its id; None: all jobs
        self._followers: dict[str | None, set[asyncio.Event]] = defaultdict(set)

    @property
    def followed(self) -> bool:
        """Return whether anybody follows anything."""
        return bool(self._followers)

    async def read(
        self, principal: Principal, owner: str | None, name: str | None, after: int = 0, limit: int = 10_000
    ) -> list[StoredJobEvent]:
        """Return what happened to a job (or to all jobs the caller may see) after event id `after`."""
        return await self._read(principal, await self._job_id(principal, owner, name), after, limit)

    async def follow(
        self, principal: Principal, owner: str | None, name: str | None, after: int = 0
    ) -> AsyncGenerator[StoredJobEvent, None]:
        """Return events later than `after`, and go on as they happen; of one job: until that has ended."""
        job_id = await self._job_id(principal, owner, name)
        news = asyncio.Event()
        with self.waking(job_id, news):
            while True:
                news.clear()
                # asked before reading, and of what is durable: nothing is missed at the end
                over = job_id is not None and await self._reader.read(self._store.is_over, job_id)
                entries = await self._read(principal, job_id, after, _PAGE)
                for entry in entries:
                    after = entry.id
                    yield entry
                if over and not entries:
                    return
                if not entries:
                    await news.wait()

    @contextmanager
    def waking(self, job_id: str | None, news: asyncio.Event) -> Iterator[None]:
        """Have `news` set whenever something of a job (None: of any) has become durable."""
        self._followers[job_id].add(news)
        try:
            yield
        finally:
            self._followers[job_id].discard(news)
            if not self._followers[job_id]:
                del self._followers[job_id]

    def tell(self, entry: JobEvent) -> None:
        """Wake those who follow what has just been told of a job beside the core."""
        self.wake(Outcome(job_events=[entry]))

    def wake(self, outcome: Outcome) -> None:
        """Wake those who follow what has just become durable."""
        changed = {entry.job_id for entry in outcome.job_events} | set(outcome.jobs)
        for job_id in (*changed, None):
            for news in self._followers.get(job_id, ()):
                news.set()

    async def _job_id(self, principal: Principal, owner: str | None, name: str | None) -> str | None:
        if owner is None or name is None:
            return None
        return (await self._reader.find(principal, owner, name)).id

    async def _read(
        self, principal: Principal, job_id: str | None, after: int, limit: int
    ) -> list[StoredJobEvent]:
        user = None if principal.admin or job_id is not None else principal.name
        return await self._reader.read(
            self._store.job_events, job_id=job_id, user=user, after=after, limit=limit
        )
