"""Virtual clusters over a real database: what was not kept never happened, and nothing slips through."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.cluster.config_fields import DefinitionError
from pai_scheduler.cluster.definition import parse_definition
from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.job.task import TaskRef
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.service.virtual_clusters import WantedShare
from pai_scheduler.store.database import StoreError, Trouble
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config, make_role
from tests.testbed.empty_store import put_empty_store

ALICE, ROOT = Principal("alice"), Principal("root", admin=True)
CLUSTER = {
    "nodes": [{"name": "a", "cpus": 8, "memoryMB": 8000, "storageGB": 1000}],
    "virtualClusters": {"default": {"capacity": 60}, "vision": {"capacity": 40}},
}


class FullStore(Store):
    """A real database on a disk that can be full, and slow to read."""

    full = False
    slow: threading.Event | None = None

    def job(self, user: str, name: str) -> Job | None:
        found = super().job(user, name)
        if self.slow is not None:
            assert self.slow.wait(30)
        return found

    def commit(self, outcome: Outcome, *of_jobs: Any) -> list[TaskRef]:
        if self.full:
            raise StoreError("database or disk is full", Trouble.FULL)
        return super().commit(outcome, *of_jobs)


class Opened:
    """A scheduler over a folder, and its database."""

    def __init__(self, folder: Path, cluster: object = CLUSTER) -> None:
        self.disk = FullStore.in_folder(put_empty_store(folder))
        settings = ServiceSettings(parse_definition(cluster))
        self.service = Service(ProcessEngine(folder), self.disk, settings)

    async def capacities(self) -> dict[str, float]:
        return {use.name: use.capacity for use in await self.service.virtual_clusters.uses()}


@pytest.fixture
async def opened(tmp_path: Path) -> AsyncIterator[Opened]:
    opened = Opened(tmp_path)
    await opened.service.start()
    yield opened
    await opened.service.close()


async def test_what_could_not_be_written_down_did_not_happen(opened: Opened) -> None:
    opened.disk.full = True
    with pytest.raises(RequestError) as refusal:
        await opened.service.virtual_clusters.set(ROOT, "speech", WantedShare(20))
    assert (refusal.value.status, refusal.value.code) == (507, "InsufficientStorageError")
    assert await opened.capacities() == {"default": 60, "vision": 40}
    opened.disk.full = False
    assert await opened.service.virtual_clusters.set(ROOT, "speech", WantedShare(20))
    assert await opened.capacities() == {"default": 40, "vision": 40, "speech": 20}


async def test_what_changes_nothing_is_not_written(opened: Opened) -> None:
    await opened.service.virtual_clusters.set(ROOT, "vision", WantedShare(40))
    await opened.service.virtual_clusters.set_stopped(ROOT, "vision", False)
    assert opened.disk.virtual_clusters() == {}


async def test_no_job_comes_to_a_cluster_that_goes(opened: Opened) -> None:
    """Either the job is there first and the cluster stays, or the cluster goes and the job is refused."""
    waits = make_role(cpus=100)
    for number in range(10):
        submit = opened.service.admission.submit(
            ALICE, "alice", make_config(waits, name=f"job-{number}", virtualCluster="vision")
        )
        delete = opened.service.virtual_clusters.delete(ROOT, "vision")
        # one begins a little before the other, in each order
        both = (submit, delete) if number % 2 else (delete, submit)
        outcomes = await asyncio.gather(*both, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, RequestError)]
        assert [refusal.code for refusal in refused] in (["RemoveRunningVcError"], ["NoVirtualClusterError"])
        alive = [job for job in await opened.service.jobs.page(ROOT) if not job.state.ended]
        assert ("vision" in await opened.capacities()) == bool(alive)
        for job in alive:
            await opened.service.jobs.stop(ROOT, job.user, job.name)
        if not alive:
            await opened.service.virtual_clusters.set(ROOT, "vision", WantedShare(40))


async def test_a_cluster_that_went_while_a_name_was_looked_up_takes_no_job(opened: Opened) -> None:
    opened.disk.slow = threading.Event()
    delete = asyncio.create_task(opened.service.virtual_clusters.delete(ROOT, "vision"))
    # it still finds the cluster, which is gone when the name is known to be free
    config = make_config(name="late", virtualCluster="vision")
    submit = asyncio.create_task(opened.service.admission.submit(ALICE, "alice", config))
    await delete
    opened.disk.slow.set()
    with pytest.raises(RequestError) as refusal:
        await submit
    assert (refusal.value.status, refusal.value.code) == (404, "NoVirtualClusterError")


async def test_only_administrators_change_anything(opened: Opened) -> None:
    for attempt in (
        opened.service.virtual_clusters.set(ALICE, "speech", WantedShare(1)),
        opened.service.virtual_clusters.delete(ALICE, "vision"),
        opened.service.virtual_clusters.set_stopped(ALICE, "vision", True),
    ):
        with pytest.raises(RequestError) as refusal:
            await attempt
        assert (refusal.value.status, refusal.value.code) == (403, "ForbiddenUserError")


async def test_a_cluster_file_that_does_not_go_with_what_was_changed_is_refused(
    opened: Opened, tmp_path: Path
) -> None:
    await opened.service.virtual_clusters.set(ROOT, "vision", WantedShare(100))
    await opened.service.close()
    file = {"virtualClusters": {"default": {"capacity": 50}, "speech": {"capacity": 50}}}
    other = Opened(tmp_path, file)
    with pytest.raises(DefinitionError, match="add up to 150 per cent"):
        await other.service.start()
    other.disk.close()
