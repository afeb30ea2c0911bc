"""A real service over a folder, with processes as its tasks, and what tests do with it again and again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.clock import Clock
from pai_scheduler.cluster.definition import Definition, parse_definition
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job, State, SubState
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.store.database import StoreError, Trouble
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config, make_role
from tests.testbed.empty_store import put_empty_store

ALICE, BOB, ROOT = Principal("alice", groups=("vision",)), Principal("bob"), Principal("root", admin=True)
CLUSTER = parse_definition(
    {
        "nodes": [{"name": "a", "cpus": 8, "memoryMB": 8000, "storageGB": 1000, "gpus": {"P100": 2}}],
        "virtualClusters": {"default": {"capacity": 60}, "vision": {"capacity": 40, "groups": ["vision"]}},
    }
)
FOREVER = "echo begun; exec sleep 1000"

MakeService = Callable[[], Awaitable["OpenService"]]


class FullStore(Store):
    """A real database on a disk that can be full."""

    full = False

    def commit(self, outcome: Outcome, *of_jobs: Any) -> list[TaskRef]:
        if self.full:
            raise StoreError("database or disk is full", Trouble.FULL)
        return super().commit(outcome, *of_jobs)


class OpenService(Service):
    """A service with what tests do again and again."""

    def __init__(self, folder: Path, cluster: Definition, clock: Clock | None = None) -> None:
        self.engine = ProcessEngine(folder, rescan_seconds=0.2)
        self.database = FullStore.in_folder(put_empty_store(folder))
        self.users = {user.name: user for user in (ALICE, BOB, ROOT)}
        super().__init__(
            self.engine,
            self.database,
            ServiceSettings(cluster, default_fs_uri="file:///fs"),
            clock=clock,
            find_user=self._find_user,
        )

    async def _find_user(self, name: str) -> Principal | None:
        return self.users.get(name)

    async def run(self, name: str, command: str = "true", **fields: Any) -> Job:
        """Submit a job of alice's and wait for its end."""
        await self.admission.submit(
            ALICE, "alice", make_config(make_role(command=command), name=name, **fields)
        )
        return await self.until(name)

    async def begin(self, name: str, command: str = FOREVER, **fields: Any) -> Job:
        """Submit a job of alice's and wait until it runs."""
        await self.admission.submit(
            ALICE, "alice", make_config(make_role(command=command), name=name, **fields)
        )
        return await self.until(name, lambda job: job.state is State.RUNNING)

    async def until(
        self,
        name: str,
        condition: Callable[[Job], bool] = lambda job: job.sub_state is SubState.ENDED,
        user: str = "alice",
    ) -> Job:
        async for _ in self.job_events.follow(ROOT, user, name):
            job = await self.jobs.get(ROOT, user, name)
            if condition(job):
                return job
        return await self.jobs.get(ROOT, user, name)

    async def log_of(self, name: str, index: int = 0) -> bytes:
        return self.tasks.log(await self.tasks.find(ALICE, "alice", name, "main", index)).read("all")


@contextmanager
def refused(status: int, code: str) -> Iterator[pytest.ExceptionInfo[RequestError]]:
    """Expect a refusal."""
    with pytest.raises(RequestError) as caught:
        yield caught
    assert (caught.value.status, caught.value.code) == (status, code)
