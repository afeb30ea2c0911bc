from __future__ import annotations

import pytest

from pai_scheduler.core.events import Reordered
from pai_scheduler.core.order import message, reorder
from pai_scheduler.core.queries import queued_jobs
from tests.scheduler.core.world import World, make_node, make_role

GPUS = make_role(gpus=4)


def line(*jobs: str, **fields: object) -> World:
    """Let jobs wait behind one that runs; each is called by its user (`a`lice, `b`ert) and a number."""
    world = World(make_node(gpus={"P100": 4}))
    world.run(GPUS, id="running")
    for job_id in jobs:
        world.submit(GPUS, id=job_id, user=job_id[0], **fields)
    return world


def shown(world: World) -> list[str]:
    return [entry.job.id for entry in queued_jobs(world.core, "default")]


def changed(world: World, job_id: str, **move: object) -> set[str]:
    """Reorder without anything else; return the jobs that have changed."""
    core = world.core
    event = Reordered(world.now, job_id, "bob", **move)  # type: ignore[arg-type]
    return {job.id for job in reorder(core.jobs, core.dispatcher, core.jobs[job_id], event)}


@pytest.mark.parametrize(
    ("job", "place", "order"),
    [
        ("a3", 1, "a3 b1 a1 b2 a2"),
        ("a3", 2, "a1 b1 a3 b2 a2"),
        ("a1", 2, "a2 b1 a1 b2 a3"),
        ("a1", 3, "a2 b1 a3 b2 a1"),
        ("b2", 1, "a1 b2 a2 b1 a3"),
        ("a2", 2, "a1 b1 a2 b2 a3"),
        ("a3", 0, "a3 b1 a1 b2 a2"),
        ("a1", 99, "a2 b1 a3 b2 a1"),
    ],
)
def test_an_owner_changes_the_places_of_their_own_jobs_among_each_other(
    job: str, place: int, order: str
) -> None:
    world = line("a1", "b1", "a2", "b2", "a3")
    world.reorder(job, place=place)
    assert shown(world) == order.split()


@pytest.mark.parametrize(
    ("job", "place", "order"),
    [
        ("b2", 1, "b2 a1 b1 a2"),
        ("b2", 2, "a1 b2 b1 a2"),
        ("a1", 4, "b1 a2 b2 a1"),
        ("a1", 99, "b1 a2 b2 a1"),
        ("a1", 1, "a1 b1 a2 b2"),
        ("b1", -5, "b1 a1 a2 b2"),
    ],
)
def test_an_administrator_moves_a_job_to_any_place(job: str, place: int, order: str) -> None:
    world = line("a1", "b1", "a2", "b2")
    world.reorder(job, place=place, owner_only=False)
    assert shown(world) == order.split()


def test_only_those_between_the_old_and_the_new_place_are_written_anew() -> None:
    world = line("a1", "a2", "a3", "a4", "a5")
    assert changed(world, "a4", place=2) == {"a2", "a3", "a4"}
    assert changed(world, "a1", place=1) == set()


def test_an_administrator_who_puts_a_job_first_changes_no_other() -> None:
    world = line("a1", "b1", "a2", "b2")
    assert changed(world, "b2", place=1, owner_only=False) == {"b2"}
    assert changed(world, "a1", place=1, owner_only=True) == set()


def test_moving_the_first_job_to_the_front_changes_nothing() -> None:
    world = line("a1", "b1")
    world.reorder("a1", place=1, owner_only=False)
    assert world.outcome.jobs == {}
    assert "reordered" not in world.told("a1")


def test_places_are_counted_among_those_of_the_same_priority() -> None:
    world = line("a1", "a2", "a3")
    world.reorder("a3", priority=80)
    assert shown(world) == ["a3", "a1", "a2"]
    world.reorder("a2", place=1, owner_only=False)
    assert shown(world) == ["a3", "a2", "a1"]
    world.reorder("a3", place=2, owner_only=False)
    assert shown(world) == ["a3", "a2", "a1"]


def test_priority_and_place_may_change_at_once() -> None:
    world = line("a1", "a2", "a3", "a4")
    world.reorder("a3", priority=80)
    world.reorder("a4", priority=80, place=1)
    assert shown(world) == ["a4", "a3", "a1", "a2"]
    assert world.job("a4").priority == 80
    world.reorder("a1", priority=80, place=3)
    assert shown(world) == ["a4", "a3", "a1", "a2"]


def test_the_same_priority_again_changes_nothing() -> None:
    world = line("a1", "a2", extras={"priority": 30})
    assert changed(world, "a2", priority=30) == set()
    assert world.core.jobs["a2"].priority is None
    assert changed(world, "a2", priority=0) == {"a2"}
    assert changed(world, "a2", priority=30) == {"a2"}


def test_a_job_that_does_not_wait_has_a_priority_for_later_but_no_place() -> None:
    world = line("a1")
    assert changed(world, "running", priority=7) == {"running"}
    assert changed(world, "running", place=1, owner_only=False) == set()
    assert world.core.jobs["running"].rank[0] == -7


def test_a_requeued_job_may_be_moved_before_one_that_was_put_first() -> None:
    world = World(make_node(gpus={"P100": 4}))
    (running,) = world.run(GPUS, id="z", retryCount=1)
    for job_id in ("a1", "a2", "a3"):
        world.submit(GPUS, id=job_id)
    world.reorder("a2", place=1, owner_only=False)
    world.reorder("a3", place=1, owner_only=False)
    world.exited(running, 1)  # it comes back to the queue, and a3 starts
    assert shown(world) == ["a2", "z", "a1"]
    world.reorder("z", place=1)
    assert shown(world) == ["z", "a2", "a1"]


def test_a_change_of_order_is_put_into_a_sentence() -> None:
    world = line("a1", "a2")
    job = world.core.jobs["a2"]
    assert str(message(job, Reordered(0, "a2", "bob", place=1))) == "bob moved it in the queue."
    assert str(message(job, Reordered(0, "a2", "bob", 5, 1))) == "bob moved it in the queue."
    world.reorder("a2", priority=60)
    assert str(message(world.core.jobs["a2"], Reordered(0, "a2", "bob", 60))) == "bob gave it priority 60."
