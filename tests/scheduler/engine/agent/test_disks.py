"""What the agent says and does of a real disk that becomes full."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pai_scheduler.engine.agent import host as disks_module
from pai_scheduler.engine.agent.host import NodeDisks
from pai_scheduler.job.task import TaskRef
from tests.testbed.agents import StandInEngine

MB = 2**20
CALM, FLOOD = (TaskRef("job", 0, "main", index) for index in range(2))


@pytest.fixture
async def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StandInEngine:
    monkeypatch.setattr(disks_module, "_LOOK_SECONDS", 0.01)
    engine = StandInEngine(["node-b"], 4, tmp_path / "logs")
    await engine.adopt(dict.fromkeys((CALM, FLOOD), "127.0.0.1"))
    engine.sizes = {CALM: 10 * MB}
    return engine


async def test_a_full_disk_and_room_again_are_told_and_what_filled_it_is_ended(
    engine: StandInEngine, small_disk: Path, tmp_path: Path
) -> None:
    disks = NodeDisks([tmp_path, small_disk], 8, engine)
    assert not disks.is_full
    told: asyncio.Queue[bool] = asyncio.Queue()

    async def note() -> None:
        told.put_nowait(disks.is_full)

    watching = asyncio.create_task(disks.watch(note))
    async with asyncio.timeout(30):
        while disks._watch._looks == 0:  # noqa: ASYNC110 (nobody is told of a look at a disk with room)
            await asyncio.sleep(0.001)
        engine.sizes[FLOOD] = 39 * MB
        (small_disk / "data").write_bytes(bytes(39 * MB + MB // 2))
        assert await told.get()
        while FLOOD in await engine.disk_use():  # noqa: ASYNC110 (the events' queue is the session's)
            await asyncio.sleep(0.001)
        assert CALM in await engine.disk_use()
        (small_disk / "data").unlink()
        assert not await told.get()
    watching.cancel()


async def test_a_disk_that_is_full_at_the_start_is_known_at_once(
    engine: StandInEngine, small_disk: Path
) -> None:
    (small_disk / "data").write_bytes(bytes(39 * MB))
    assert NodeDisks([small_disk], 8, engine).is_full
    # nothing is to stay free: it is not watched
    unwatched = NodeDisks([small_disk], 0, engine)
    assert not unwatched.is_full
    await unwatched.watch(_never)


async def test_what_goes_wrong_once_does_not_end_the_watch(engine: StandInEngine, small_disk: Path) -> None:
    calls: asyncio.Queue[bool] = asyncio.Queue()
    disks = NodeDisks([small_disk], 8, engine)

    async def fail() -> None:
        calls.put_nowait(disks.is_full)
        raise OSError("no answer")

    watching = asyncio.create_task(disks.watch(fail))
    async with asyncio.timeout(30):
        (small_disk / "data").write_bytes(bytes(39 * MB))
        assert await calls.get()
        (small_disk / "data").unlink()
        assert not await calls.get()
    watching.cancel()


async def _never() -> None:
    raise AssertionError("nothing has changed")
