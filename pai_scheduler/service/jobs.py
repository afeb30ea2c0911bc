"""Jobs, as users see and change them: their own, and (administrators) everybody's."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from pai_scheduler.core.events import Reordered, StopRequested
from pai_scheduler.core.model import Attempt, Job, State
from pai_scheduler.core.queries import latest_end
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import forbidden, no_job
from pai_scheduler.store.records import JobPosition, SubmittedText
from pai_scheduler.store.store import Store

from .reader import Reader
from .writer import Writer


class Jobs:
    """Checks for each call what its caller may do; refusals are `errors.RequestError`.

    `clock` gives ms since the epoch.
    """

    def __init__(self, store: Store, reader: Reader, writer: Writer, clock: Callable[[], int]) -> None:
        self._store, self._reader, self._writer, self._now = store, reader, writer, clock

    async def page(
        self,
        principal: Principal,
        owner: str | None = None,
        *,
        states: Collection[State] | None = None,
        after: JobPosition | None = None,
        limit: int | None = None,
    ) -> list[Job]:
        """List jobs, newest first: the caller's own, or (admins) everybody's or `owner`'s.

        Those in one of `states` (None: in any); `limit` of them (None: all), those that come after a position
        in that order.
        """
        if owner is not None and not principal.may_read(owner):
            raise forbidden(msg("Only an administrator may list the jobs of user {user}.", user=owner))
        user = owner if principal.reads_all else principal.name
        return await self._reader.read(self._store.jobs, user, states=states, after=after, limit=limit)

    async def get(self, principal: Principal, owner: str, name: str) -> Job:
        """Return a job with its last attempt."""
        return await self._reader.find_readable(principal, owner, name)

    def latest_end(self, job: Job) -> int | None:
        """Return when its time limit ends a job (ms since the epoch); None: it has none, or does not run."""
        return latest_end(self._writer.core, job)

    async def config(self, principal: Principal, owner: str, name: str) -> dict[str, Any]:
        """Return the job JSON as submitted."""
        job = await self._reader.find_readable(principal, owner, name)
        try:
            return await self._reader.read(self._store.config, job.id)
        except KeyError:
            raise no_job(owner, name) from None

    async def submitted_text(self, principal: Principal, owner: str, name: str) -> SubmittedText | None:
        """Return the text that the job was read from; None: its JSON says all."""
        job = await self._reader.find_readable(principal, owner, name)
        return await self._reader.read(self._store.submitted_text, job.id)

    async def attempts(self, principal: Principal, owner: str, name: str) -> list[Attempt]:
        """Return all attempts, oldest first."""
        job = await self._reader.find_readable(principal, owner, name)
        return await self._reader.read(self._store.attempts, job.id)

    async def stop(
        self, principal: Principal, owner: str, name: str, reason: str = "", *, force: bool = False
    ) -> None:
        """Stop a job, and say why; no change where it has ended, or is being ended already.

        `force`: its tasks are killed at once, also where it is being ended.
        """
        job = await self._reader.find(principal, owner, name)
        event = StopRequested(self._now(), job.id, principal.name, reason=reason, force=force)
        await self._writer.request(event)

    async def delete(self, principal: Principal, owner: str, name: str) -> None:
        """Forget a job and its logs, stopping it first."""
        job = await self._reader.find(principal, owner, name)
        await self._writer.request(StopRequested(self._now(), job.id, principal.name, delete=True))

    async def reorder(
        self,
        principal: Principal,
        owner: str,
        name: str,
        *,
        priority: int | None = None,
        place: int | None = None,
    ) -> None:
        """Change the priority (0–100) of a job that has not ended, or move it while it waits.

        `place` counts from 1 among the jobs of its virtual cluster with its priority; its owner moves it
        among their own, so that nobody else's job moves back. Beyond the last: the last.
        """
        job = await self._reader.find(principal, owner, name)
        owner_only = not principal.admin
        await self._writer.request(
            Reordered(self._now(), job.id, principal.name, priority, place, owner_only)
        )
