"""The machine's clock is set forward and back while jobs run: they end as ever, and none waits for a day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from pai_scheduler.core import retry
from pai_scheduler.core.model import Job, SubState
from pai_scheduler.engine.docker import DockerEngine
from pai_scheduler.engine.process import ProcessEngine
from pai_scheduler.engine.protocol import Engine, EngineEvent
from pai_scheduler.service import Caller, Service
from pai_scheduler.store.store import Store
from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image

ALICE = Caller("alice")
DAY_MS = 24 * 60 * 60 * 1000


class Clock:
    """The time of day, off by what a test says."""

    offset = 0

    def __call__(self) -> int:
        return time.time_ns() // 10**6 + self.offset


@pytest.fixture
def clock() -> Clock:
    """Give the service's clock."""
    return Clock()


@pytest.fixture(params=["process", "docker"])
async def service(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Service]:
    """Run a service on each engine; a second try comes after a moment."""
    monkeypatch.setattr(retry, "AT_ONCE", 0)
    monkeypatch.setattr(retry, "FIRST_DELAY_MS", 300)
    engine: Engine
    if request.param == "docker":
        host = request.getfixturevalue("docker_host")
        await asyncio.to_thread(provide, tiny_image, host)
        engine = DockerEngine(tmp_path / "data", host=host)
    else:
        engine = ProcessEngine(tmp_path / "data")
    told = engine.events

    async def events() -> AsyncIterator[EngineEvent]:
        """Tell what the engine tells, by the clock of the same machine."""
        async for event in told():
            yield replace(event, time=event.time + clock.offset)

    engine.events = events  # type: ignore[method-assign]
    made = Service(engine, Store.in_folder(tmp_path / "data"), clock=clock)
    await made.start()
    yield made
    for job in await made.jobs(ALICE):
        await made.stop_job(ALICE, "alice", job.name)
        await ended(made, job.name)
    await made.close()


def config(name: str, command: str, **fields: object) -> dict[str, object]:
    role = {"name": "main", "command": command}
    return {"jobName": name, "image": TINY, "taskRoles": [role], **fields}


async def until(service: Service, name: str, sub_state: SubState) -> Job:
    for _ in range(6000):
        job = await service.job(ALICE, "alice", name)
        if job.sub_state is sub_state:
            return job
        await asyncio.sleep(0.01)
    pytest.fail(f"{name} never is {sub_state} but {job.sub_state}")


async def ended(service: Service, name: str) -> Job:
    return await until(service, name, SubState.ENDED)


@pytest.mark.parametrize(
    "steps", [(DAY_MS,), (-DAY_MS,), (DAY_MS, -DAY_MS, DAY_MS)], ids=["forward", "back", "to-and-fro"]
)
async def test_a_clock_that_is_set_costs_no_job_anything(
    service: Service, clock: Clock, steps: tuple[int, ...]
) -> None:
    await service.submit(ALICE, "alice", config("long", "sleep 1; exit 7"))
    await service.submit(ALICE, "alice", config("tried-again", "exit 3", retryCount=len(steps) + 1))
    await until(service, "long", SubState.RUNNING)
    for number, step in enumerate(steps):
        await until(service, "tried-again", SubState.RETRY_WAIT)
        clock.offset += step
        await service.submit(ALICE, "alice", config(f"after-{number}", "exit 5"))
    jobs = {job.name: await ended(service, job.name) for job in await service.jobs(ALICE)}
    codes = {name: job.verdict and job.verdict.exit_code for name, job in jobs.items()}
    assert codes.pop("long") == 7
    assert codes.pop("tried-again") == 3
    assert list(codes.values()) == [5] * len(steps)
    attempts = await service.attempts(ALICE, "alice", "tried-again")
    assert len(attempts) == len(steps) + 2
    assert len(await service.attempts(ALICE, "alice", "long")) == 1
    ids = [entry.id for entry in await service.story(ALICE, None, None)]
    assert ids == sorted(set(ids))
