"""Reading beside the loop, from a real database that can be slow or broken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_scheduler.core.instructions import Outcome
from pai_scheduler.core.model import Job
from pai_scheduler.service.reader import Reader
from pai_scheduler.store.store import Store
from tests.scheduler.making import make_config, make_spec
from tests.scheduler.open_service import ALICE, BOB, ROOT, refused


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Return a database in which alice has the job `job`."""
    store = Store.in_folder(tmp_path)
    store.commit(Outcome(jobs={"id": Job("id", "alice", make_spec(), 0)}), {"id": make_config()})
    yield store
    store.close()


@pytest.fixture
def reader(store: Store) -> Iterator[Reader]:
    reader = Reader(store)
    yield reader
    reader.close()


async def test_a_job_is_found_by_its_owner_and_by_admins(reader: Reader) -> None:
    for principal in (ALICE, ROOT):
        assert (await reader.find(principal, "alice", "job")).id == "id"


async def test_another_users_job_is_answered_like_one_that_is_not_there(reader: Reader) -> None:
    answers = []
    for principal, name in ((BOB, "job"), (BOB, "nothing"), (ALICE, "nothing"), (ROOT, "nothing")):
        with refused(404, "NoJobError") as refusal:
            await reader.find(principal, "alice", name)
        answers.append(str(refusal.value).replace("nothing", "job"))
    assert len(set(answers)) == 1


async def test_a_slow_database_holds_nobody_up_who_does_not_read(reader: Reader) -> None:
    gate = threading.Event()
    reading = asyncio.create_task(reader.read(gate.wait, timeout=30))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not reading.done()
    gate.set()
    assert await reading


async def test_a_database_that_cannot_be_read_is_said_and_read_again_when_it_can(
    reader: Reader, tmp_path: Path
) -> None:
    (tmp_path / "scheduler.sqlite").rename(tmp_path / "away")
    with refused(503, "StorageUnavailableError") as refusal:
        await reader.find(ALICE, "alice", "job")
    assert "What runs goes on." in str(refusal.value)
    (tmp_path / "away").rename(tmp_path / "scheduler.sqlite")
    assert (await reader.find(ALICE, "alice", "job")).id == "id"


async def test_a_mistake_of_ours_is_not_called_a_database_that_cannot_be_read(
    reader: Reader, store: Store
) -> None:
    with pytest.raises(KeyError):
        await reader.read(store.config, "nothing")
