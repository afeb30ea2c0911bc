from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.events import EndCause, Ended, Event, Started, StopRequested, Submitted, Tick
from pai_scheduler.core.instructions import LaunchAttempt, Outcome, ReleaseAttempt
from pai_scheduler.core.model import Job, State, SubState
from pai_scheduler.core.state_machine import Core
from pai_scheduler.job.task import TaskRef
from pai_scheduler.job.validation import parse_job
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.writer import Committed, Writer
from pai_scheduler.ssh.keys import KeyPair
from pai_scheduler.ssh.public_key import PublicKey
from pai_scheduler.store.database import StoreError, Trouble
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config, make_node, make_role
from tests.testbed.empty_store import put_empty_store

REF = TaskRef("j", 0, "main", 0)


class FaultyStore(Store):
    """A real database that can be told to fail, or to wait, as a full or a slow disk does."""

    full = False
    unreadable = False
    commits = 0

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.begun = threading.Event()

    def commit(self, outcome: Outcome, *of_jobs: Any) -> list[TaskRef]:
        self.begun.set()
        assert self.may_go_on.wait(10)
        if self.full:
            raise StoreError("database or disk is full", Trouble.FULL)
        self.commits += 1
        return super().commit(outcome, *of_jobs)

    def live_jobs(self) -> list[Job]:
        if self.unreadable:
            raise StoreError("disk I/O error")
        return super().live_jobs()


class FaultyCore(Core):
    """A core with a bug: it cannot stand the time 13."""

    def handle(self, event: Event, outcome: Outcome, *, more: bool = False) -> None:
        if event.time == 13:
            raise ZeroDivisionError
        super().handle(event, outcome, more=more)


class Harness:
    """A writer over a real database, and everything it says was committed."""

    def __init__(self, folder: Path) -> None:
        self.store = FaultyStore.in_folder(put_empty_store(folder))
        self.committed: list[Committed] = []
        self.on_commit_fails = False
        self.writer = Writer(self.store, lambda: FaultyCore(Cluster([make_node()])), self._on_commit)
        self.orders = 0

    def _on_commit(self, committed: Committed) -> None:
        for job in committed.outcome.jobs.values():
            if job.id not in committed.outcome.deleted:
                assert self.store.job(job.user, job.name) is not None, "not durable yet"
        self.committed.append(committed)
        if self.on_commit_fails:
            raise RuntimeError

    async def submit(self, job_id: str, *, name: str | None = None, time: int = 1) -> None:
        self.orders += 1
        config = make_config(name=name or job_id)
        await self.writer.request(Submitted(time, job_id, "alice", parse_job(config), self.orders), config)

    def instructions(self) -> list[object]:
        return [step for committed in self.committed for step in committed.outcome.instructions]

    async def until(self, state: State, job_id: str = "j") -> None:
        """Wait for a job's state in the database, and until all that was committed has been told."""
        for _ in range(3000):
            job = self.store.job("alice", job_id)
            # (the writer's start commits too, and tells nobody)
            told = len(self.committed) + 1 == self.store.commits
            if job is not None and job.state is state and told:
                return
            await asyncio.sleep(0.01)
        pytest.fail(f"{job_id} never was {state}")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pai_scheduler.service.writer._RETRY_SECONDS", 0.02)


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[Harness]:
    opened = Harness(tmp_path)
    await opened.writer.start()
    yield opened
    await opened.writer.close()
    opened.store.close()


async def test_a_request_returns_when_it_is_durable_and_is_acted_on_after_that(harness: Harness) -> None:
    await harness.submit("j")
    assert harness.store.job("alice", "j") is not None
    assert harness.instructions() == [LaunchAttempt("j", 0)]


async def test_requests_that_come_together_are_written_together(harness: Harness) -> None:
    harness.store.may_go_on.clear()
    before = harness.store.commits
    requests = [asyncio.create_task(harness.submit(f"j{number}")) for number in range(100)]
    await asyncio.sleep(0)
    harness.store.may_go_on.set()
    await asyncio.gather(*requests)
    assert harness.store.commits - before <= 2
    assert len(harness.store.jobs()) == 100


async def test_nothing_is_decided_before_all_that_came_together_is_known(harness: Harness) -> None:
    low = make_config(make_role(cpus=8), extras={"priority": 1}, name="low")
    high = make_config(make_role(cpus=8), extras={"priority": 9}, name="high")
    events = [
        (Submitted(1, name, "alice", parse_job(config), order), config)
        for order, (name, config) in enumerate((("low", low), ("high", high)), 1)
    ]
    requests = [asyncio.create_task(harness.writer.request(*event)) for event in events]
    await asyncio.gather(*requests)
    states = {job.name: job.sub_state for job in harness.store.jobs()}
    assert states == {"low": SubState.QUEUED, "high": SubState.STARTING}


async def test_events_are_taken_in_the_order_in_which_they_came(harness: Harness) -> None:
    await harness.submit("j")
    harness.writer.report(Started(REF, 2, "127.0.0.1", "1"))
    harness.writer.report(Ended(REF, 3, EndCause.EXITED, 4))
    await harness.writer.request(StopRequested(4, "j", "alice"))
    job = harness.store.job("alice", "j")
    assert job is not None
    assert (job.state, job.verdict and job.verdict.exit_code) == (State.FAILED, 4)


async def test_on_a_full_disk_a_request_is_refused_and_never_happened(harness: Harness) -> None:
    harness.store.full = True
    with pytest.raises(RequestError) as caught:
        await harness.submit("j")
    assert (caught.value.status, caught.value.code) == (507, "InsufficientStorageError")
    assert "disk is full" in str(caught.value)
    harness.store.full = False
    await harness.submit("k")
    assert [job.id for job in harness.store.jobs()] == ["k"]
    assert set(harness.writer.core.jobs) == {"k"}
    assert harness.instructions() == [LaunchAttempt("k", 0)]


async def test_on_a_full_disk_what_the_engine_says_is_kept_until_it_can_be_written(harness: Harness) -> None:
    await harness.submit("j")
    harness.store.full = True
    harness.writer.report(Started(REF, 2, "127.0.0.1", "1"))
    harness.writer.report(Ended(REF, 3, EndCause.EXITED, 7))
    for _ in range(3):
        with pytest.raises(RequestError):
            await harness.submit("other")
    harness.store.full = False
    await harness.until(State.FAILED)
    (job,) = harness.store.jobs()
    assert job.verdict is not None
    assert job.verdict.exit_code == 7
    assert harness.instructions() == [LaunchAttempt("j", 0), ReleaseAttempt("j", 0)]


async def test_a_database_that_cannot_be_read_for_a_while_is_waited_for(harness: Harness) -> None:
    await harness.submit("j")
    harness.store.full = harness.store.unreadable = True
    with pytest.raises(RequestError):
        await harness.submit("refused")
    waiting = asyncio.create_task(harness.submit("late"))
    await asyncio.sleep(0.1)
    assert not waiting.done()
    harness.store.full = harness.store.unreadable = False
    await waiting
    assert {job.id for job in harness.store.jobs()} == {"j", "late"}


async def test_a_fault_of_ours_in_one_event_costs_neither_the_scheduler_nor_the_events_beside_it(
    harness: Harness,
) -> None:
    await harness.submit("j")
    harness.store.may_go_on.clear()
    requests = [asyncio.create_task(harness.submit("first"))]
    await asyncio.sleep(0)
    requests += [asyncio.create_task(harness.submit(f"at-{time}", time=time)) for time in (2, 13, 3)]
    harness.writer.report(Tick(13))
    harness.writer.report(Started(REF, 4, "127.0.0.1", "1"))
    harness.store.may_go_on.set()
    results = await asyncio.gather(*requests, return_exceptions=True)
    assert [type(result) for result in results] == [type(None), type(None), ZeroDivisionError, type(None)]
    await harness.until(State.RUNNING)
    assert {job.id for job in harness.store.jobs()} == {"j", "first", "at-2", "at-3"}
    assert harness.instructions().count(LaunchAttempt("at-2", 0)) == 1


async def test_what_the_database_refuses_for_good_is_refused_alone(harness: Harness) -> None:
    results = await asyncio.gather(
        harness.submit("a", name="same"),
        harness.submit("b", name="same"),
        harness.submit("c"),
        return_exceptions=True,
    )
    assert [type(result) for result in results] == [type(None), IntegrityError, type(None)]
    assert set(harness.writer.core.jobs) == {"a", "c"}


async def test_what_is_durable_does_not_happen_twice_when_it_cannot_be_acted_on(harness: Harness) -> None:
    harness.on_commit_fails = True
    await harness.submit("j")
    harness.on_commit_fails = False
    await harness.submit("k")
    assert harness.instructions() == [LaunchAttempt("j", 0), LaunchAttempt("k", 0)]


async def test_a_new_writer_takes_up_what_the_old_one_wrote(tmp_path: Path) -> None:
    for life in range(3):
        harness = Harness(tmp_path)
        outcome = await harness.writer.start()
        assert outcome.instructions == [LaunchAttempt("j0", 0), LaunchAttempt("j1", 0)][:life]
        assert set(harness.writer.core.jobs) == {"j0", "j1"} - {f"j{later}" for later in range(life, 2)}
        harness.orders = life
        await harness.submit(f"j{life}")
        await harness.writer.close()
        harness.store.close()


async def test_closing_finishes_the_commit_that_is_under_way_and_cancels_the_rest(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    await harness.writer.start()
    harness.store.may_go_on.clear()
    first = asyncio.create_task(harness.submit("first"))
    await asyncio.sleep(0.05)
    closing = asyncio.create_task(harness.writer.close())
    await asyncio.sleep(0)
    late = asyncio.create_task(harness.submit("late"))
    await asyncio.sleep(0.05)
    assert not closing.done()
    harness.store.may_go_on.set()
    await closing
    await first
    assert harness.instructions() == [LaunchAttempt("first", 0)]
    with pytest.raises(asyncio.CancelledError):
        await late
    assert [job.id for job in harness.store.jobs()] == ["first"]
    harness.store.close()


async def test_closing_does_not_wait_for_a_full_disk(tmp_path: Path) -> None:
    harness = Harness(tmp_path)
    await harness.writer.start()
    await harness.submit("j")
    harness.store.full = harness.store.unreadable = True
    harness.writer.report(Started(REF, 2, "127.0.0.1", "1"))
    await asyncio.sleep(0.05)
    await harness.writer.close()
    harness.store.close()


async def test_what_became_durable_says_which_events_it_came_from_and_how_long_they_took(
    harness: Harness,
) -> None:
    await harness.submit("j", time=7)
    committed = harness.committed[-1]
    (event,) = committed.events
    assert isinstance(event, Submitted)
    assert (event.job_id, event.time) == ("j", 7)
    assert committed.handled_seconds > 0
    assert committed.commit_seconds > 0


async def test_each_group_that_the_database_does_not_take_is_counted(harness: Harness) -> None:
    assert harness.writer.failures == 0
    harness.store.full = True
    for number in range(2):
        with pytest.raises(RequestError):
            await harness.submit(f"j{number}")
    assert harness.writer.failures == 2
    harness.store.full = False
    await harness.submit("j")
    assert harness.writer.failures == 2


async def test_whether_the_database_takes_writes_is_asked_between_two_commits(harness: Harness) -> None:
    await harness.writer.check()
    harness.store.may_go_on.clear()
    harness.store.begun.clear()
    submission = asyncio.create_task(harness.submit("j"))
    assert await asyncio.to_thread(harness.store.begun.wait, 10)
    check = asyncio.create_task(harness.writer.check())
    await asyncio.sleep(0.05)
    assert not check.done()
    harness.store.may_go_on.set()
    await asyncio.gather(submission, check)


async def test_what_the_core_need_not_know_is_kept_or_refused_in_words(harness: Harness) -> None:
    key = PublicKey.parse(KeyPair.from_seed(b"a" * 32).public)
    assert await harness.writer.keep(harness.store.add_public_key, "alice", key, 5, 50) == 5
    assert harness.store.has_public_key("alice", key.fingerprint)

    def full() -> None:
        raise StoreError("database or disk is full", Trouble.FULL)

    with pytest.raises(RequestError, match="Nothing was accepted") as refused:
        await harness.writer.keep(full)
    assert refused.value.status == 507
