"""Jobs and their tasks, as users see and change them: their own, and (administrators) everybody's."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from pai_scheduler.cluster.definition import LogKeeping
from pai_scheduler.core.events import Reordered, StopRequested
from pai_scheduler.core.model import Attempt, Job, State
from pai_scheduler.core.queries import gpu_memory_mb, latest_end
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.logs.watcher import Follower, LogGrowth
from pai_scheduler.engine.protocol import Engine
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.monitoring.recorder import Recorder, Recording
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import forbidden, no_attempt, no_job, no_task
from pai_scheduler.store.records import JobPosition, SubmittedText

from .context import ServiceContext
from .event_stream import JobEvents

# Jobs, as users see and change them: their own, and (administrators) everybody's.


class Jobs:
    """Checks for each call what its caller may do; refusals are `errors.RequestError`."""

    def __init__(self, context: ServiceContext) -> None:
        self._store, self._reader, self._writer = context.store, context.reader, context.writer
        self._now = context.clock

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


# The tasks of jobs: which of them a caller may see, their logs, and what they use.


class Tasks:
    """Finds tasks for those who may see them; everything else is asked with what `find` gave.

    `log_keeping` is how much of a log is kept, and for how long.
    """

    def __init__(
        self,
        context: ServiceContext,
        engine: Engine,
        recorder: Recorder,
        job_events: JobEvents,
        log_keeping: LogKeeping,
    ) -> None:
        self._store, self._reader, self._writer = context.store, context.reader, context.writer
        self._engine, self._recorder, self._job_events = engine, recorder, job_events
        self.log_keeping = log_keeping
        self._growth = LogGrowth()

    async def start(self) -> None:
        """Begin to hear when logs grow."""
        await self._growth.start()

    def close(self) -> None:
        """Hear no more of logs."""
        self._growth.close()

    async def find(
        self, principal: Principal, owner: str, name: str, role: str, index: int, attempt: int | None = None
    ) -> TaskRef:
        """Find a task of a job (attempt None: the last)."""
        job = await self._reader.find(principal, owner, name)
        last = job.attempt.number if job.attempt else 0
        known = any(r.name == role and 0 <= index < r.task_number for r in job.spec.task_roles)
        if not known:
            raise no_task(job.spec, f"{role}-{index}")
        if attempt is not None and not 0 <= attempt <= last:
            raise no_attempt(name, attempt, last)
        return TaskRef(job.id, last if attempt is None else attempt, role, index)

    def has_ended(self, task: TaskRef) -> bool:
        """Return whether a task will write no more; cheap, as every follower of a log asks often."""
        job = self._writer.core.jobs.get(task.job_id)
        if job is None:
            return True
        if job.attempt is None:
            return False
        return job.attempt.number != task.attempt or job.attempt.tasks[task.role, task.index].state.ended

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int] | None:
        """Return where this machine reaches a port of a task; None: at the task's own address."""
        return await self._engine.reach(task, port)

    def log(self, task: TaskRef) -> TaskLog:
        """Return the log of a task."""
        return self._engine.log(task)

    @contextmanager
    def following(self, task: TaskRef, log: TaskLog) -> Iterator[Follower]:
        """Have somebody told when a task's log may have grown, and when something happened to its job."""
        with (
            self._growth.following(log, asyncio.Event()) as follower,
            self._job_events.waking(task.job_id, follower.news),
        ):
            yield follower

    async def is_log_expired(self, task: TaskRef, log: TaskLog) -> bool:
        """Return whether a task had a log which was removed; one that never ran has had none."""
        if await asyncio.to_thread(lambda: log.exists):
            return False
        for attempt in await self._reader.read(self._store.attempts, task.job_id):
            ran = attempt.tasks.get((task.role, task.index))
            if attempt.number == task.attempt and ran is not None:
                return ran.started is not None and ran.state.ended
        return False

    def gpu_memory_mb(self, task: TaskRef) -> int | None:
        """Return how much memory a task's GPUs have together; None: it holds none, or that is not known."""
        return gpu_memory_mb(self._writer.core, task)

    async def usage(self, task: TaskRef, after: int = 0) -> Recording:
        """Return what a task has used, later than `after` (ms since the epoch)."""
        return await self._recorder.recording(task, after)
