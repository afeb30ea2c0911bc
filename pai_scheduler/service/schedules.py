"""Schedules: jobs that run again and again, in their owner's name and with the rights of then."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from pai_scheduler.i18n import Message, msg
from pai_scheduler.job.schedule import (
    LONGEST_NAME,
    LastRun,
    Overlap,
    RunOutcome,
    Schedule,
    ScheduleError,
    is_run_of,
    is_schedule_name,
    next_time,
    run_name,
)
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import SpecError
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import (
    RequestError,
    forbidden,
    invalid_parameters,
    no_schedule,
    too_many_schedules,
)
from pai_scheduler.storage.files import Files, home
from pai_scheduler.storage.paths import StorageError, StoragePath

from .admission import Admission
from .context import ServiceContext

# The files that JupyterLab uploads for a schedule: they go with it, unless somebody needs them.

#: Where they are, and how they are called: a name, and what makes it new (`client/storage/code.py`).
_CODE = re.compile(r"\$PAI_DEFAULT_FS_URI/\$PAI_USER_NAME/schedules/([A-Za-z0-9._~-]+_[0-9a-f]{8})/?")


def uploaded_folder(user: str, config: Mapping[str, Any]) -> StoragePath | None:
    """Return where the files of a schedule's job are that were uploaded for it alone; None: there are none.

    Only JupyterLab writes `extras.run` beside such a folder: what people have put somewhere themselves stays.
    """
    extras, code = config.get("extras"), config.get("codeDir")
    if not (isinstance(extras, Mapping) and "run" in extras and isinstance(code, str)):
        return None
    found = _CODE.fullmatch(code)
    return StoragePath((*home(user).parts, "schedules", found[1])) if found else None


def is_needed(folder: StoragePath, jobs: Iterable[JobSpec], schedules: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether a job that has not ended, or another schedule, has anything from a folder."""
    name = folder.parts[-1]
    for spec in jobs:
        places = (spec.code_dir, spec.data_dir, *(mount.source for mount in spec.mounts))
        if any(name in place for place in places):
            return True
    return any(name in str(config) for config in schedules)


# The schedules: jobs that run again and again, in their owner's name and with the rights of then.

_log = logging.getLogger(__name__)

#: Finds a user by name, with the groups of now; None where there is none (any more). It may refuse.
FindUser = Callable[[str], Awaitable[Principal | None]]

#: Seconds between two looks at most: the clock may be set, and what could not be submitted is tried again.
_LOOK_EVERY = 20.0


@dataclass(frozen=True, slots=True)
class WantedSchedule:
    """Requested schedule of a recurring job; the job's name does not count, each run has its own."""

    cron: str
    zone: str
    config: Mapping[str, Any]
    overlap: Overlap = Overlap.SKIP
    paused: bool = False


class Schedules:
    """Keeps schedules and submits what is due; refusals are `errors.RequestError`.

    `find_user` says who somebody is now, `most` how many schedules a user may have, `files` where the
    users' are; None: there is no storage.
    """

    def __init__(
        self,
        context: ServiceContext,
        admission: Admission,
        find_user: FindUser,
        most: int,
        files: Files | None = None,
    ) -> None:
        self._store, self._reader, self._writer = context.store, context.reader, context.writer
        self._now, self._admission, self._files = context.clock, admission, files
        self._find_user, self._most = find_user, most
        #: who changes a schedule finds it as whoever came before has left it
        self._one_at_a_time = asyncio.Lock()
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Submit from now on what is due; what has become due while nobody looked, once."""
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Submit no more; a submission that is under way is finished first."""
        if self._task is not None:
            async with self._one_at_a_time:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def list(self, principal: Principal, owner: str) -> list[Schedule]:
        """List somebody's schedules by name: one's own, or as administrator anybody's."""
        _check_may(principal, owner)
        return await self._reader.read(self._store.schedules, owner)

    async def get(self, principal: Principal, owner: str, name: str) -> tuple[Schedule, dict[str, Any]]:
        """Return a schedule and its job JSON."""
        found = None
        if principal.may_act_for(owner):
            found = await self._reader.read(self._store.schedule, owner, name)
        if found is None:
            raise no_schedule(owner, name)
        return found

    def next_times(self, cron: str, zone: str, count: int) -> Sequence[int]:
        """Return the next times that would be due, at most `count`, in ms since the epoch."""
        return [*islice(_times(cron, zone, self._now()), count)]

    async def put(self, principal: Principal, owner: str, name: str, wanted: WantedSchedule) -> Schedule:
        """Make a schedule, or change it: durable on return. What came of it last stays known."""
        _check_may(principal, owner)
        if not is_schedule_name(name):
            raise _wrong(
                "schedule",
                msg(
                    "A schedule may be called by letters, digits and . _ ~ - ({most} at most), not {name}.",
                    most=LONGEST_NAME,
                    name=name,
                ),
            )
        now = self._now()
        due = _next_time(wanted.cron, wanted.zone, now)
        user = await self._user(principal, owner)
        try:
            config = _named(wanted.config, run_name(name, now, wanted.zone))
            await self._admission.check(user, config, is_scheduled=True)
        except RequestError as refusal:
            errors = [SpecError(f"$.job{error.path[1:]}", error.message) for error in refusal.errors]
            raise RequestError(refusal.status, refusal.code, refusal.message, errors) from None
        async with self._one_at_a_time:
            known = await self._reader.read(self._store.schedule, owner, name)
            schedule = Schedule(
                owner,
                name,
                " ".join(wanted.cron.split()),
                wanted.zone,
                wanted.overlap,
                wanted.paused,
                known[0].created if known else now,
                None if wanted.paused else due,
                known[0].last if known else None,
            )
            if not await self._writer.keep(self._store.put_schedule, schedule, wanted.config, self._most):
                raise too_many_schedules(owner, self._most)
        self._changed.set()
        return schedule

    async def set_paused(self, principal: Principal, owner: str, name: str, *, paused: bool) -> Schedule:
        """Let a schedule rest, or go on; what was due meanwhile is not made up for."""
        async with self._one_at_a_time:
            schedule, _ = await self.get(principal, owner, name)
            if schedule.paused != paused:
                due = None if paused else next_time(schedule.cron, schedule.zone, self._now())
                schedule = replace(schedule, paused=paused, next=due)
                await self._writer.keep(self._store.change_schedule, schedule)
        self._changed.set()
        return schedule

    async def delete(self, principal: Principal, owner: str, name: str) -> None:
        """Forget a schedule, and the files that were uploaded for it alone; its jobs stay as they are."""
        async with self._one_at_a_time:
            _, config = await self.get(principal, owner, name)
            await self._writer.keep(self._store.remove_schedule, owner, name)
            folder = await self._unneeded(owner, config)
        if folder is None or self._files is None:
            return
        try:
            await self._files.delete(principal, folder, recursive=True)
        except StorageError as error:
            # the schedule is gone all the same, and what is left over does no harm
            _log.warning("the files of schedule %s of %s stay: %s", name, owner, error)

    async def _unneeded(self, owner: str, config: Mapping[str, Any]) -> StoragePath | None:
        """Return the folder of a schedule that is gone, where nothing else needs what is in it."""
        folder = uploaded_folder(owner, config)
        if folder is None:
            return None
        others = []
        for schedule in await self._reader.read(self._store.schedules, owner):
            found = await self._reader.read(self._store.schedule, owner, schedule.name)
            others += [found[1]] if found else []
        jobs = [job.spec for job in self._writer.core.unended(owner)]
        return None if is_needed(folder, jobs, others) else folder

    async def run(self, principal: Principal, owner: str, name: str) -> str:
        """Submit a job of a schedule now, whether or not another runs; return the job's name."""
        await self.get(principal, owner, name)
        user = await self._user(principal, owner)
        async with self._one_at_a_time:
            schedule, config = await self.get(principal, owner, name)
            now = self._now()
            job = run_name(name, now, schedule.zone, seconds=True)
            await self._admission.submit(user, owner, _named(config, job), is_scheduled=True)
            await self._note(replace(schedule, last=LastRun(job, now, RunOutcome.SUBMITTED)))
        return job

    async def look(self) -> bool:
        """Submit what is due; return whether all of it is done with, else it is to be tried again."""
        done = True
        try:
            for owner, name in await self._reader.read(self._store.due_schedules, self._now()):
                done &= await self._try(owner, name)
        except RequestError as error:
            _log.warning("it cannot be read which schedules are due: %s", error.message)
            return False
        return done

    async def _try(self, owner: str, name: str) -> bool:
        try:
            user = await self._find_user(owner)
            async with self._one_at_a_time:
                await self._fire(user, owner, name)
        except RequestError as error:
            _log.warning("schedule %s of %s is tried again: %s", name, owner, error.message)
            return False
        except Exception:
            # a fault of ours with one schedule must not keep the others from running
            _log.exception("schedule %s of %s cannot be carried out", name, owner)
            return False
        return True

    async def _fire(self, user: Principal | None, owner: str, name: str) -> None:
        now = self._now()
        found = await self._reader.read(self._store.schedule, owner, name)
        if found is None or found[0].next is None or found[0].next > now:
            return
        schedule, config = found
        due = found[0].next
        job = run_name(name, due, schedule.zone)
        outcome, why = await self._submit(schedule, user, _named(config, job), job, due)
        last = LastRun(job, now, outcome, why)
        following = next_time(schedule.cron, schedule.zone, max(due, now))
        await self._note(replace(schedule, next=following, last=last))
        _log.info(
            "a schedule was due",
            extra={"schedule": name, "user": owner, "job": job, "outcome": outcome.value},
        )

    async def _submit(
        self, schedule: Schedule, user: Principal | None, config: Mapping[str, Any], job: str, due: int
    ) -> tuple[RunOutcome, Message | None]:
        """Submit a run that is due, and say what came of it; RequestError where it is to be tried again."""
        owner = schedule.user
        there = await self._reader.read(self._store.job, owner, job)
        if there is not None and there.created >= due:
            # submitted before the scheduler was ended, which then could not note it
            return RunOutcome.SUBMITTED, None
        if user is None:
            return RunOutcome.REFUSED, msg("User {name} is not known.", name=owner)
        if schedule.overlap is Overlap.SKIP and (running := self._running(schedule)) is not None:
            return RunOutcome.SKIPPED, msg("Job {name} of this schedule has not ended yet.", name=running)
        try:
            await self._admission.submit(user, owner, config, is_scheduled=True)
        except RequestError as refusal:
            if refusal.status >= 500:
                raise
            return RunOutcome.REFUSED, refusal.message
        return RunOutcome.SUBMITTED, None

    def _running(self, schedule: Schedule) -> str | None:
        jobs = self._writer.core.unended(schedule.user)
        return next((job.name for job in jobs if is_run_of(schedule.name, job.name)), None)

    async def _note(self, schedule: Schedule) -> None:
        """Keep what came of a run."""
        await self._writer.keep(self._store.change_schedule, schedule)

    async def _user(self, principal: Principal, owner: str) -> Principal:
        """Return who owns a schedule: with no more rights than the owner has, whoever asks."""
        user = principal if principal.name == owner else await self._find_user(owner)
        if user is None:
            raise RequestError(400, "NoUserError", msg("User {name} is not known.", name=owner))
        return user

    async def _keep(self) -> None:
        while True:
            self._changed.clear()
            done = await self.look()
            seconds = _LOOK_EVERY
            if done:
                with suppress(RequestError):
                    due = await self._reader.read(self._store.next_due)
                    if due is not None:
                        seconds = min(max(0.0, (due - self._now()) / 1000), _LOOK_EVERY)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), seconds)


def _times(cron: str, zone: str, after: int) -> Iterator[int]:
    due = _next_time(cron, zone, after)
    while due is not None:
        yield due
        due = _next_time(cron, zone, due)


def _next_time(cron: str, zone: str, after: int) -> int | None:
    try:
        return next_time(cron, zone, after)
    except ScheduleError as error:
        raise _wrong(f"$.{error.field}", error.message) from None


def _check_may(principal: Principal, owner: str) -> None:
    if not principal.may_act_for(owner):
        raise forbidden(msg("Only an administrator may act for user {user}.", user=owner))


def _named(config: Mapping[str, Any], job: str) -> dict[str, Any]:
    return {**config, "jobName": job}


def _wrong(place: str, message: Message) -> RequestError:
    return invalid_parameters(message, [SpecError(place, message)])
