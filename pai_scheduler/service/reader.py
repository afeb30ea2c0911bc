"""Reads the store beside the loop, and finds there only what the caller may see."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from pai_scheduler.core.model import Job
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import no_job
from pai_scheduler.store.database import not_read
from pai_scheduler.store.store import Store, StoreError

Asked = ParamSpec("Asked")
Result = TypeVar("Result")

_THREADS = 4


class Reader:
    """Has the threads in which requests read a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._threads = ThreadPoolExecutor(_THREADS, "store-reader")

    def close(self) -> None:
        """Wait for what is being read, and read no more."""
        self._threads.shutdown()

    async def read(
        self, function: Callable[Asked, Result], *args: Asked.args, **options: Asked.kwargs
    ) -> Result:
        """Call a reading method of the store; where it cannot read, the request is refused."""
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._threads, partial(function, *args, **options))
        except StoreError as error:
            raise not_read(error) from error

    async def find(self, principal: Principal, owner: str, name: str) -> Job:
        """Return a job that the caller may change; another user's is not found, whether it exists or not."""
        return await self._find(owner, name, principal.may_act_for(owner))

    async def find_readable(self, principal: Principal, owner: str, name: str) -> Job:
        """Return a job that the caller may read."""
        return await self._find(owner, name, principal.may_read(owner))

    async def _find(self, owner: str, name: str, allowed: bool) -> Job:
        job = None
        if allowed:
            job = await self.read(self._store.job, owner, name)
        if job is None:
            raise no_job(owner, name)
        return job
