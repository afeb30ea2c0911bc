"""The machine's clock is set forward and back while jobs run: they end as ever, and none waits for a day."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from pai_scheduler.clock import Clock
from pai_scheduler.core import completion
from pai_scheduler.core.model import Job, State, SubState
from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.settings import DockerSettings
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.protocol import Engine, EngineEvent
from pai_scheduler.principal import Principal
from pai_scheduler.service.service import Service, ServiceSettings
from pai_scheduler.store.store import Store
from tests.testbed.fixtures import provide
from tests.testbed.images import TINY, tiny_image

ALICE = Principal("alice")
HOUR_MS = 60 * 60 * 1000
DAY_MS = 24 * HOUR_MS


class Machine:
    """The machine's clock, off by what a test says (ms)."""

    offset = 0

    def clock(self) -> Clock:
        """Return the clock of a scheduler on this machine."""
        return Clock(lambda: time.time_ns() + self.offset * 10**6)


@pytest.fixture
def machine() -> Machine:
    """Return the machine's clock."""
    return Machine()


#: Begins the next life of the service.
Begin = Callable[[], Awaitable[Service]]


@pytest.fixture(params=["process", "docker"])
async def begin(
    request: pytest.FixtureRequest, tmp_path: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Begin]:
    """Run services on each engine, one after the other; a second try comes after a moment."""
    monkeypatch.setattr(completion, "AT_ONCE", 0)
    monkeypatch.setattr(completion, "FIRST_DELAY_MS", 300)
    host = request.getfixturevalue("docker_host") if request.param == "docker" else None
    if host is not None:
        await asyncio.to_thread(provide, tiny_image, host)
    made: list[Service] = []

    async def begin() -> Service:
        if made:
            await made[-1].close()
        data = tmp_path / "data"
        docker = DockerSettings(host=host)
        engine: Engine = ProcessEngine(data) if host is None else DockerEngine(data, docker)
        told = engine.events

        async def events() -> AsyncIterator[EngineEvent]:
            """Return what the engine tells, by the clock of the same machine."""
            async for event in told():
                yield replace(event, time=event.time + machine.offset)

        engine.events = events  # type: ignore[method-assign]
        made.append(Service(engine, Store.in_folder(data), ServiceSettings(), clock=machine.clock()))
        await made[-1].start()
        return made[-1]

    yield begin
    for job in await made[-1].jobs.page(ALICE):
        await made[-1].jobs.stop(ALICE, "alice", job.name)
        await ended(made[-1], job.name)
    await made[-1].close()


@pytest.fixture
async def service(begin: Begin) -> Service:
    """Run one service."""
    return await begin()


def config(name: str, command: str, **fields: object) -> dict[str, object]:
    role = {"name": "main", "command": command}
    return {"jobName": name, "image": TINY, "taskRoles": [role], **fields}


async def until(service: Service, name: str, sub_state: SubState) -> Job:
    for _ in range(6000):
        job = await service.jobs.get(ALICE, "alice", name)
        if job.sub_state is sub_state:
            return job
        await asyncio.sleep(0.01)
    pytest.fail(f"{name} never is {sub_state} but {job.sub_state}")


async def ended(service: Service, name: str) -> Job:
    return await until(service, name, SubState.ENDED)


@pytest.mark.daemon
@pytest.mark.parametrize(
    "steps",
    [
        # (the first step of the last)
        pytest.param((DAY_MS,), id="forward", marks=pytest.mark.long),
        pytest.param((-DAY_MS,), id="back"),
        pytest.param((DAY_MS, -DAY_MS, DAY_MS), id="to-and-fro"),
    ],
)
async def test_a_clock_that_is_set_costs_no_job_anything(
    service: Service, machine: Machine, steps: tuple[int, ...]
) -> None:
    await service.admission.submit(ALICE, "alice", config("long", "sleep 1; exit 7"))
    await service.admission.submit(ALICE, "alice", config("tried-again", "exit 3", retryCount=len(steps) + 1))
    await until(service, "long", SubState.RUNNING)
    for number, step in enumerate(steps):
        await until(service, "tried-again", SubState.RETRY_WAIT)
        machine.offset += step
        await service.admission.submit(ALICE, "alice", config(f"after-{number}", "exit 5"))
    jobs = {job.name: await ended(service, job.name) for job in await service.jobs.page(ALICE)}
    codes = {name: job.verdict and job.verdict.exit_code for name, job in jobs.items()}
    assert codes.pop("long") == 7
    assert codes.pop("tried-again") == 3
    assert list(codes.values()) == [5] * len(steps)
    attempts = await service.jobs.attempts(ALICE, "alice", "tried-again")
    assert len(attempts) == len(steps) + 2
    assert len(await service.jobs.attempts(ALICE, "alice", "long")) == 1
    ids = [entry.id for entry in await service.job_events.read(ALICE, None, None)]
    assert ids == sorted(set(ids))
    for job in await service.jobs.page(ALICE):
        await check_times(service, job.name)


@pytest.mark.daemon
@pytest.mark.parametrize("step", [HOUR_MS, -HOUR_MS], ids=["forward", "back"])
async def test_a_time_limit_is_as_long_as_it_says_whatever_the_clock_is_set_to(
    begin: Begin, machine: Machine, step: int
) -> None:
    service = await begin()
    await service.admission.submit(
        ALICE, "alice", config("short", "exec sleep 1000", extras={"maxRunSeconds": 3})
    )
    await service.admission.submit(
        ALICE, "alice", config("long", "exec sleep 1000", extras={"maxRunSeconds": 1800})
    )
    await until(service, "short", SubState.RUNNING)
    await until(service, "long", SubState.RUNNING)
    machine.offset += step
    # over a restart too
    service = await begin()
    short = await ended(service, "short")
    assert short.verdict is not None
    assert (short.state, short.verdict.exit_code) == (State.STOPPED, -7351)
    assert short.completed is not None
    assert short.attempt is not None
    assert short.attempt.launched is not None
    # (a hundredth is what the clock may be slow or fast by, until it is again what the machine's is)
    assert 2_950 < short.completed - short.attempt.launched < HOUR_MS / 2
    await service.admission.submit(ALICE, "alice", config("other", "exit 0"))
    await ended(service, "other")
    assert (await service.jobs.get(ALICE, "alice", "long")).state is State.RUNNING
    for name in ("short", "long", "other"):
        await check_times(service, name)


async def check_times(service: Service, name: str) -> None:
    """See that what is told of a job is told in the order in which it happened, and when it did."""
    times = [entry.entry.time for entry in await service.job_events.read(ALICE, "alice", name)]
    assert times == sorted(times)
    job = await service.jobs.get(ALICE, "alice", name)
    times = [job.created]
    for attempt in await service.jobs.attempts(ALICE, "alice", name):
        times += known(attempt.created, attempt.launched, attempt.completed)
        for task in attempt.tasks.values():
            of_task = known(attempt.created, task.started, task.ended, attempt.completed)
            assert of_task == sorted(of_task)
    times += known(job.completed)
    assert times == sorted(times)
    assert times[-1] - times[0] < HOUR_MS / 2


def known(*times: int | None) -> list[int]:
    return [time for time in times if time is not None]
