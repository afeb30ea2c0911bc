"""A real scheduler for the tests of the API, the client and the command line; its jobs have unique names."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import Client
from tests.scheduler.open_service import CLUSTER, ROOT, MakeService, OpenService
from tests.testbed.answers import check_answer
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler


@pytest.fixture(scope="session")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run one scheduler for the whole session."""
    running = WarmScheduler(tmp_path_factory.mktemp("scheduler"))
    yield running
    running.close()


@pytest.fixture(scope="session")
def entered(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run one with an SSH gateway; alice's jobs `one` and `two` run there, with so many tasks."""
    running = WarmScheduler(tmp_path_factory.mktemp("entered"), ssh=True)
    for name, tasks in (("one", 1), ("two", 2)):
        run_job(running, name, taskNumber=tasks)
    yield running
    running.close()


def run_job(scheduler: RunningScheduler, name: str, command: str = "sleep 100000", **role: object) -> None:
    """Submit a job of alice's with the role `main`; returns when all of its tasks run."""
    roles = [{"name": "main", "command": command, "memoryMB": 500, **role}]
    headers = {"Authorization": "Bearer token-of-alice"}
    with httpx.Client(
        base_url=f"{scheduler.url}/api/v1", headers=headers, trust_env=False, timeout=30
    ) as alice:
        alice.post("/jobs", json=hello_job(name, taskRoles=roles)).raise_for_status()
        for _ in range(300):
            status = alice.get(f"/user/alice/jobs/{name}").json()["jobStatus"]
            if status["subState"] == "RUNNING":
                return
            time.sleep(0.1)
    raise RuntimeError(f"job {name} does not start: {status}")


def checked(client: Client) -> Client:
    """Hold every answer that a client gets against the API's document."""
    client._http.event_hooks = {"response": [check_answer]}
    return client


@pytest.fixture
async def alice(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    """Be alice, an ordinary user."""
    async with checked(Client(scheduler.url, "token-of-alice")) as client:
        yield client


@pytest.fixture
async def bob(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    """Be bob, another user."""
    async with checked(Client(scheduler.url, "token-of-bob")) as client:
        yield client


@pytest.fixture
async def root(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    """Be an administrator."""
    async with checked(Client(scheduler.url, "token-of-root")) as client:
        yield client


@pytest.fixture
async def http(scheduler: RunningScheduler) -> AsyncIterator[httpx.AsyncClient]:
    """Talk plain HTTP, as alice."""
    async with httpx.AsyncClient(
        base_url=f"{scheduler.url}/api/v1",
        headers={"Authorization": "Bearer token-of-alice"},
        trust_env=False,
        timeout=30,
        event_hooks={"response": [check_answer]},
    ) as client:
        yield client


@pytest.fixture
async def make_service(tmp_path: Path) -> AsyncIterator[MakeService]:
    """Return services over one folder, one after the other; in the end all jobs are stopped."""
    services: list[OpenService] = []

    async def make() -> OpenService:
        if services:
            await services[-1].close()
        services.append(OpenService(tmp_path, CLUSTER))
        await services[-1].start()
        return services[-1]

    yield make
    for job in await services[-1].jobs.page(ROOT):
        await services[-1].jobs.stop(ROOT, job.user, job.name)
        await services[-1].until(job.name, user=job.user)
    await services[-1].close()


@pytest.fixture
async def service(make_service: MakeService) -> OpenService:
    return await make_service()
