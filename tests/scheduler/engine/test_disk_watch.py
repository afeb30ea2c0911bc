"""Which task is ended for a disk that becomes full, and when. Real disks: `tests/faults`."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from pai_scheduler.engine.disk_usage import DiskWatch
from pai_scheduler.engine.protocol import EndCause, Ended
from pai_scheduler.job.task import TaskRef
from tests.testbed.agents import StandInEngine

MB = 2**20
LARGE, SLOW, FAST = (TaskRef("job", 0, "main", index) for index in range(3))


class Disk(DiskWatch):
    """A disk with as much room as is said, of which 100 MB are to stay free."""

    def __init__(self, engine: StandInEngine) -> None:
        super().__init__(engine, lambda: self.free / (100 * MB), 100 * MB)
        self.free = 1000 * MB


@pytest.fixture
async def engine(tmp_path: Path) -> StandInEngine:
    engine = StandInEngine(["node"], 4, tmp_path)
    await engine.adopt(dict.fromkeys((LARGE, SLOW, FAST), "127.0.0.1"))
    engine.sizes = {LARGE: 5000 * MB, SLOW: 10 * MB, FAST: MB}
    return engine


@pytest.fixture
def disk(engine: StandInEngine) -> Disk:
    return Disk(engine)


async def ended(engine: StandInEngine) -> list[TaskRef]:
    """Return which tasks were ended for the disk, in order."""
    await engine.close()
    events = [event async for event in engine.events()]
    return [event.task for event in events if isinstance(event, Ended) and event.cause is EndCause.DISK]


async def test_a_look_tells_how_much_of_what_is_to_stay_free_is_free(disk: Disk) -> None:
    assert await disk.look() == 10
    disk.free = 70 * MB
    assert await disk.look() == 0.7


async def test_the_task_that_has_grown_most_since_there_was_room_is_ended(
    engine: StandInEngine, disk: Disk
) -> None:
    await disk.look()
    engine.sizes |= {SLOW: 20 * MB, FAST: 300 * MB}
    disk.free = 60 * MB
    await disk.look()
    assert FAST in await engine.disk_use()
    disk.free = 40 * MB
    await disk.look()
    assert await ended(engine) == [FAST]


async def test_the_next_one_is_ended_only_where_there_is_still_no_room_after_a_while(
    engine: StandInEngine, disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await disk.look()
    engine.sizes |= {SLOW: 30 * MB, FAST: 300 * MB}
    disk.free = 0
    await disk.look()
    await disk.look()
    assert SLOW in await engine.disk_use()
    monkeypatch.setattr(time, "monotonic", lambda: float("inf"))
    engine.sizes[SLOW] += 2 * MB
    await disk.look()
    assert await ended(engine) == [FAST, SLOW]


async def test_where_a_disk_is_full_at_the_start_only_what_grows_from_then_on_is_ended(
    engine: StandInEngine, disk: Disk
) -> None:
    disk.free = 0
    await disk.look()
    await disk.look()
    assert LARGE in await engine.disk_use()
    engine.sizes[FAST] += 2 * MB
    await disk.look()
    assert await ended(engine) == [FAST]


async def test_a_task_that_does_not_grow_is_never_ended(engine: StandInEngine, disk: Disk) -> None:
    await disk.look()
    disk.free = 0
    engine.sizes[LARGE] += MB - 1
    await disk.look()
    assert await ended(engine) == []
