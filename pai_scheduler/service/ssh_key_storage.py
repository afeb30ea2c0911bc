"""Keeps the keys of running jobs in the storage, where their users read them, and removes them at the end.

Beside everything else, one after the other: no start waits for it; a job that ends before its turn gets none.
Its turn comes a moment after its start, so that a job that is over at once costs the storage nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from pai_scheduler.core.model import Job
from pai_scheduler.ssh.keys import JobKeys, job_folder, key_folder, key_name
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath

from .writer import Committed

#: whose key it is: the names of a user and a job
_Place = tuple[str, str]

_log = logging.getLogger(__name__)

#: Seconds until a storage that does not answer is tried again: doubled each time, up to the longest.
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0
#: Seconds after which a job's keys are put there.
_FIRST_PUT = 0.5


class KeyFiles:
    """Knows which jobs' keys are in the storage."""

    def __init__(self, keys: JobKeys, files: Files) -> None:
        self._keys = keys
        self._files = files
        #: what is to be done, by job id, in this order: put (True), or remove
        self._pending: dict[str, tuple[_Place, bool]] = {}
        #: of jobs that have just begun: what makes their keys pending
        self._young: dict[str, asyncio.TimerHandle] = {}
        #: the jobs whose keys are there, or may be
        self._there: dict[str, _Place] = {}
        self._news = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, jobs: Iterable[Job]) -> None:
        """Begin, with the jobs that there are: the keys of all others are removed.

        Only those that have begun have keys; of the others there may be a million.
        """
        known = [job for job in jobs if job.attempt is not None]
        for job in known:
            if self._is_wanted(job):
                # at once: they may be there since before the start
                self._pending[job.id] = ((job.user, job.name), True)
        live = {job_folder(job.user, job.name) for job in known if not job.is_decided}
        self._task = asyncio.create_task(self._work(live))

    async def close(self) -> None:
        """Stop; what is not done is done after the next start."""
        for timer in self._young.values():
            timer.cancel()
        self._young.clear()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def committed(self, committed: Committed) -> None:
        """Take note of the jobs that have changed."""
        for job in committed.outcome.jobs.values():
            if job.is_decided:
                self._end(job.id)
            elif self._is_wanted(job):
                place = (job.user, job.name)
                loop = asyncio.get_running_loop()
                self._young[job.id] = loop.call_later(_FIRST_PUT, self._come_of_age, job.id, place)

    def _is_wanted(self, job: Job) -> bool:
        known = job.id in self._young or job.id in self._pending or job.id in self._there
        return not job.is_decided and job.attempt is not None and not known

    def _come_of_age(self, job_id: str, place: _Place) -> None:
        del self._young[job_id]
        self._pending[job_id] = (place, True)
        self._news.set()

    def _end(self, job_id: str) -> None:
        if (timer := self._young.pop(job_id, None)) is not None:
            timer.cancel()
        self._pending.pop(job_id, None)
        if (place := self._there.get(job_id)) is not None:
            self._pending[job_id] = (place, False)
            self._news.set()

    async def _work(self, live: set[tuple[str, ...]]) -> None:
        await _insist(partial(self._sweep, live))
        while True:
            while self._pending:
                job_id, (place, put) = next(iter(self._pending.items()))
                del self._pending[job_id]
                if put:
                    self._there[job_id] = place
                    await _insist(partial(self._put, job_id, place))
                else:
                    await _insist(partial(self._remove, place))
                    self._there.pop(job_id, None)
            self._news.clear()
            await self._news.wait()

    async def _put(self, job_id: str, place: _Place) -> None:
        # it may have ended while the storage did not answer
        if self._pending.get(job_id, (place, True))[1]:
            pair = self._keys.identity(job_id)
            folder, name = StoragePath(key_folder(*place)), key_name(*place)
            await self._files.deliver(place[0], folder / name, pair.private)
            await self._files.deliver(place[0], folder / f"{name}.pub", f"{pair.public}\n".encode())

    async def _remove(self, place: _Place) -> None:
        await self._files.withdraw(StoragePath(job_folder(*place)))

    async def _sweep(self, live: set[tuple[str, ...]]) -> None:
        """Remove what an earlier service left behind."""
        for path in await self._files.delivered():
            if path.parts not in live:
                await self._files.withdraw(path)


async def _insist(step: Callable[[], Awaitable[None]]) -> None:
    """Do a thing as soon as the storage answers; what it refuses is left undone."""
    pause = _FIRST_PAUSE
    while True:
        try:
            return await step()
        except StorageError as error:
            if error.problem is not Problem.UNAVAILABLE:
                _log.warning("the key of a job cannot be kept in the storage: %s", error)
                return None
            _log.warning("the keys of jobs wait for the storage: %s", error)
        except Exception:
            _log.exception("the key of a job cannot be kept in the storage")
            return None
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)
