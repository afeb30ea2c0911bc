"""Who waits for a change hears of it when it is durable, and of nothing else."""

from __future__ import annotations

import asyncio

from pai_scheduler.service.event_stream import Changes
from tests.scheduler.core.world import World, make_node, make_role


class Watched:
    """A world, and what is said of its changes."""

    def __init__(self) -> None:
        self.world = World(make_node(gpus={"P100": 2}))
        self.changes = Changes(lambda: self.world.core)
        self.changes.look()

    def changed(self) -> bool:
        before = self.changes.version
        self.changes.look()
        return self.changes.version != before


def test_what_is_free_and_who_waits_counts_and_nothing_else() -> None:
    watched = Watched()
    world = watched.world
    assert not watched.changed()
    world.submit(make_role(gpus=2), id="runs", extras={"maxRunSeconds": 600})
    assert watched.changed(), "GPUs were taken"
    world.progress(world.refs("runs")[0], 40)
    world.tick(1000)
    assert not watched.changed(), "an image is being pulled"
    world.started(*world.refs("runs"))
    assert watched.changed(), "from now on it is known when it ends"
    world.submit(make_role(gpus=2), id="waits")
    assert watched.changed(), "the queue is longer"
    world.reorder("waits", priority=60)
    assert watched.changed()
    world.exited(world.refs("runs")[0])
    assert watched.changed(), "GPUs are free"
    world.change_nodes(make_node(gpus={"P100": 4}))
    assert watched.changed()


def test_a_forecast_is_no_change() -> None:
    watched = Watched()
    world = watched.world
    world.run(make_role(gpus=2), id="runs", extras={"maxRunSeconds": 600})
    world.submit(make_role(gpus=2), id="waits")
    watched.changed()
    world.forecast("alice", world.job("waits").spec)
    assert not watched.changed()


def test_a_core_that_was_made_again_is_a_change() -> None:
    watched = Watched()
    watched.world.submit(make_role(gpus=2), id="runs")
    watched.changed()
    watched.world.restart()
    assert watched.changed()


async def test_who_waits_is_woken_and_who_is_behind_is_told_at_once() -> None:
    watched = Watched()
    old = watched.changes.version
    waiting = asyncio.create_task(watched.changes.other_than(old))
    await asyncio.sleep(0)
    watched.changes.look()
    await asyncio.sleep(0)
    assert not waiting.done()
    watched.world.submit()
    watched.changes.look()
    assert await waiting == watched.changes.version != old
    assert await watched.changes.other_than(old) == watched.changes.version


def test_a_version_of_another_run_is_none_of_this_one() -> None:
    assert Watched().changes.version != Watched().changes.version
