"""Jobs of servers that must be stopped: remembered until they are, whoever is away or is killed meanwhile."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from pai_scheduler.client.rest import ApiError, Client, UnreachableError

from .following import patiently, wait_until_ended


class PendingStops:
    """The jobs of one server, this one or former ones, that are to be stopped.

    `client` gives the scheduler's client; `store` writes `jobs` down, so that another Hub takes them up.
    """

    def __init__(
        self,
        client: Callable[[], Client],
        user: Callable[[], str],
        store: Callable[[], None],
        log: Any,
    ) -> None:
        self._client, self._user, self._store, self._log = client, user, store, log
        self.jobs: list[str] = []
        #: stops what could not be stopped at once; None: there was never anything
        self.task: asyncio.Future[None] | None = None

    def __contains__(self, job: str) -> bool:
        return job in self.jobs

    def restore(self, jobs: Iterable[str]) -> None:
        """Take up what an earlier Hub has left."""
        self.jobs = list(jobs)
        if self.jobs:
            asyncio.get_running_loop().call_soon(self.later)

    async def stop(self, job: str, *, wait: bool, patience: float) -> None:
        """Stop a job, and `wait` for its end; what takes longer than `patience` seconds goes on beside."""
        self.add(job)
        client, user = self._client(), self._user()
        try:
            await patiently(partial(_stop, client, user, job), patience=patience)
            if wait:
                await wait_until_ended(client, user, job, patience=patience)
        except (UnreachableError, TimeoutError) as error:
            self._log.warning("%s is not stopped yet (%s); it will be stopped later", job, error)
            self.later()
        else:
            self._remove(job)

    def add(self, job: str) -> None:
        """Note that a job is to be stopped, before anybody is told."""
        if job not in self.jobs:
            self.jobs.append(job)
            self._store()

    def later(self) -> None:
        """Stop what is noted in the background, however long that takes."""
        if self.jobs and (self.task is None or self.task.done()):
            self.task = asyncio.ensure_future(self._stop_all())

    async def _stop_all(self) -> None:
        while self.jobs:
            job = self.jobs[0]
            await patiently(partial(_stop, self._client(), self._user(), job), patience=math.inf)
            self._remove(job)
            self._log.info("%s is stopped now", job)
        self._store()

    def _remove(self, job: str) -> None:
        if job in self.jobs:
            self.jobs.remove(job)


async def _stop(client: Client, user: str, job: str) -> None:
    """Stop a job; one that is gone is stopped."""
    try:
        await client.stop(user, job)
    except ApiError as error:
        if error.status != 404:
            raise
