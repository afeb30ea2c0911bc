"""Which task is ended where the disk runs out, and what is said of it. Real disks: `tests/faults`."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import cast

import pytest

from pai_scheduler.engine import disk_usage
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.job.task import TaskRef
from pai_scheduler.service import health
from pai_scheduler.service.health import DiskRoom
from pai_scheduler.service.writer import Writer
from pai_scheduler.store.store import Store
from tests.testbed.empty_store import put_empty_store

MB = 2**20
CALM, SLOW, FAST = (TaskRef("job", 0, "main", index) for index in range(3))


class Tasks(ProcessEngine):
    """Tasks that take what they are said to take."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.sizes: dict[TaskRef, int] = {}
        self.ended: asyncio.Queue[TaskRef] = asyncio.Queue()
        self.looks = 0

    async def disk_use(self) -> Mapping[TaskRef, int]:
        self.looks += 1
        return dict(self.sizes)

    async def end_for_room(self, task: TaskRef) -> None:
        self.ended.put_nowait(task)
        self.sizes.pop(task)


class Room(DiskRoom):
    """A disk with as much room as is said, of which 100 MB are to stay free."""

    def __init__(self, folder: Path, engine: Tasks) -> None:
        self.store = Store.in_folder(put_empty_store(folder))
        super().__init__(folder, 100, engine, self.store, cast("Writer", self))
        self.least_free, self.free, self.reserved = 100 * MB, 1000 * MB, 0

    async def keep(self, function: Callable[[int], None], least_free: int) -> None:
        """As a writer does."""
        assert function == self.store.keep_reserve
        assert least_free == self.least_free
        self.reserved += 1

    def _free(self) -> int:
        return self.free


@pytest.fixture
def engine(tmp_path: Path) -> Tasks:
    return Tasks(tmp_path)


@pytest.fixture
async def room(tmp_path: Path, engine: Tasks, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Room]:
    monkeypatch.setattr(health, "_LOOK_SECONDS", 0.001)
    monkeypatch.setattr(disk_usage, "_PATIENCE_SECONDS", 0.001)
    room = Room(tmp_path, engine)
    yield room
    await room.close()
    room.store.close()


async def looked(engine: Tasks) -> None:
    """Wait until it was looked twice more."""
    looks = engine.looks + 2
    async with asyncio.timeout(30):
        while engine.looks < looks:  # noqa: ASYNC110 (it looks by itself, and tells nobody)
            await asyncio.sleep(0.001)


async def test_there_is_no_shortage_where_enough_is_free(room: Room) -> None:
    assert room.shortage() is None


async def test_a_shortage_says_how_much_is_free_and_what_to_do(room: Room) -> None:
    room.free = 99 * MB
    said = str(room.shortage())
    assert "99 MB are free, and below 100 MB it takes no new jobs" in said
    assert "Delete jobs" in said


async def test_the_task_that_grew_most_is_ended_however_large_others_are(room: Room, engine: Tasks) -> None:
    engine.sizes = {CALM: 5000 * MB, SLOW: 10 * MB, FAST: 1 * MB}
    await room.start()
    await looked(engine)
    engine.sizes.update({SLOW: 20 * MB, FAST: 300 * MB})
    room.free = 10 * MB
    async with asyncio.timeout(30):
        assert await engine.ended.get() == FAST
    await looked(engine)
    assert engine.ended.empty()


async def test_nobody_is_ended_as_long_as_half_of_what_is_to_stay_free_is_free(
    room: Room, engine: Tasks
) -> None:
    engine.sizes = {FAST: 1 * MB}
    await room.start()
    await looked(engine)
    room.free, engine.sizes[FAST] = 60 * MB, 500 * MB
    await asyncio.sleep(0.05)
    assert engine.ended.empty()
    room.free = 40 * MB
    async with asyncio.timeout(30):
        assert await engine.ended.get() == FAST


async def test_where_no_task_fills_the_disk_none_is_ended(room: Room, engine: Tasks) -> None:
    engine.sizes = {CALM: 5000 * MB}
    await room.start()
    await looked(engine)
    room.free = 0
    await looked(engine)
    assert engine.ended.empty()


async def test_the_reserve_is_kept_from_the_start(room: Room) -> None:
    await room.start()
    assert room.reserved >= 1


async def test_no_more_than_a_twentieth_of_a_small_disk_is_kept_free(
    tmp_path: Path, engine: Tasks, room: Room
) -> None:
    writer = cast("Writer", room)
    large = DiskRoom(tmp_path, 10**12, engine, room.store, writer)
    assert 0 < large.least_free < 10**12
    unwatched = DiskRoom(tmp_path, 0, engine, room.store, writer)
    await unwatched.start()
    assert unwatched.shortage() is None
    assert room.reserved == 0
