"""Where the scheduler's clock is stands in its database, so that it goes on over a restart."""

from __future__ import annotations

from pathlib import Path

from pai_scheduler.clock import ClockMark
from pai_scheduler.service.service import Timekeeper
from pai_scheduler.service.writer import Writer
from pai_scheduler.store.store import Store
from tests.scheduler.core.world import World
from tests.scheduler.machine import HOUR, NOON, Machine
from tests.scheduler.making import make_role


async def test_it_is_written_down_at_the_start_when_it_has_drifted_and_at_the_end(tmp_path: Path) -> None:
    machine, store, world = Machine(), Store.in_folder(tmp_path), World()
    writer = Writer(store, lambda: world.core, lambda _: None)
    world.submit(make_role())  # its times must not move
    keeper = Timekeeper(machine.clock(), store, writer)
    await keeper.start()
    first = ClockMark("first", 5 * HOUR, NOON)
    assert store.clock_mark() == (first, None)
    machine.is_set(HOUR)
    machine.passes(10_000)  # of which a hundredth is added
    await keeper.look()
    assert store.clock_mark() == (first, None)
    machine.passes(50_000)
    await keeper.look()
    mark, _ = store.clock_mark()
    assert mark is not None
    assert mark.offset == first.offset + 600
    world.core.jobs.clear()
    await keeper.close()
    mark, _ = store.clock_mark()
    assert mark is not None
    assert mark.offset == first.offset + HOUR
    await writer.close()
    store.close()
