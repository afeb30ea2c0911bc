from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.core.events import Reordered
from pai_scheduler.core.queries import queued_jobs
from pai_scheduler.core.queue_policies import message, reorder
from tests.scheduler.core.world import World, make_node, make_role
from tests.scheduler.making import make_spec

GPUS = make_role(gpus=4)
GPU = make_role(gpus=1)


def line(*jobs: str, **fields: object) -> World:
    """Let jobs wait behind one that runs; each is called by its user (`a`lice, `b`ert) and a number."""
    world = World(make_node(gpus={"P100": 4}))
    world.run(GPUS, id="running")
    for job_id in jobs:
        world.submit(GPUS, id=job_id, user=job_id[0], **fields)
    return world


def shown(world: World, virtual_cluster: str = "default") -> list[str]:
    return [entry.job.id for entry in queued_jobs(world.core, virtual_cluster)]


def changed(world: World, job_id: str, **move: object) -> set[str]:
    """Reorder without anything else; return the jobs that have changed."""
    core = world.core
    event = Reordered(world.now, job_id, "bob", **move)  # type: ignore[arg-type]
    return {job.id for job in reorder(core.jobs, core.state, core.jobs[job_id], event)}


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
    assert world.core.jobs["running"].sort_key.priority == -7


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


# -- shorter jobs first


def shorter_first(times: int = 10, **fields: Any) -> World:
    """Make a world of one GPU, which is taken, whose virtual cluster puts shorter jobs first."""
    world = World(
        make_node(gpus={"P100": 1}),
        virtual_clusters=[VirtualCluster("default", 100, shorter_first=times, **fields)],
    )
    world.run(GPU, id="running")
    return world


def wait(world: World, job_id: str, limit: int | None, **extras: Any) -> None:
    said = extras if limit is None else {"maxRunSeconds": limit, **extras}
    world.submit(GPU, id=job_id, extras=said)


def test_a_shorter_job_comes_before_a_longer_one() -> None:
    world = shorter_first()
    for job_id, limit in (("day", 86_400), ("minute", 60), ("hour", 3600)):
        wait(world, job_id, limit)
    assert shown(world) == ["minute", "hour", "day"]


def test_who_comes_after_so_many_times_a_jobs_limit_stays_behind_it() -> None:
    world = shorter_first(times=10)
    wait(world, "hour", 3600)
    world.now += 10 * (3600 - 60) * 1000 - 1
    wait(world, "in-time", 60)
    world.now += 2
    wait(world, "too-late", 60)
    assert shown(world) == ["in-time", "hour", "too-late"]


def test_a_priority_counts_more_than_a_limit() -> None:
    world = shorter_first()
    wait(world, "short", 1)
    wait(world, "long", 86_400, priority=51)
    assert shown(world) == ["long", "short"]
    world.reorder("short", priority=100)
    assert shown(world) == ["short", "long"]
    world.reorder("short", priority=0)
    assert shown(world) == ["long", "short"]


def test_a_job_without_a_limit_counts_as_one_of_a_week() -> None:
    world = shorter_first()
    wait(world, "unknown", None)
    wait(world, "eight-days", 8 * 86_400)
    wait(world, "six-days", 6 * 86_400)
    assert shown(world) == ["six-days", "unknown", "eight-days"]


def test_a_virtual_clusters_limit_is_that_of_jobs_that_name_none() -> None:
    world = shorter_first(default_run_seconds=600)
    wait(world, "hour", 3600)
    wait(world, "silent", None)
    wait(world, "minute", 60)
    assert shown(world) == ["minute", "silent", "hour"]


def test_the_order_by_limits_outlives_a_restart_and_a_retry() -> None:
    world = World(
        make_node(gpus={"P100": 1}),
        virtual_clusters=[VirtualCluster("default", 100, shorter_first=10)],
    )
    [running] = world.run(GPU, id="first", extras={"maxRunSeconds": 600}, retryCount=1)
    wait(world, "long", 3600)
    wait(world, "short", 60)
    world.restart()
    world.tick()
    assert shown(world) == ["short", "long"]
    world.exited(running, 1)
    assert shown(world) == ["first", "long"]


def test_a_forecast_tells_the_place_that_the_limit_gives() -> None:
    world = shorter_first()
    wait(world, "hour", 3600)
    wait(world, "day", 86_400)
    places = {}
    for limit in (60, 7200, 10**6):
        spec = make_spec(GPU, extras={"maxRunSeconds": limit})
        limits = world.forecast("bob", spec).limits
        places[limit] = limits.queue_position if limits is not None else None
    assert places == {60: 1, 7200: 2, 10**6: 3}


def test_other_virtual_clusters_go_by_the_order_of_submission() -> None:
    clusters = [VirtualCluster("default", 50, shorter_first=10), VirtualCluster("vision", 50)]
    world = World(make_node(gpus={"P100": 2}), virtual_clusters=clusters)
    world.run(GPU, id="d0")
    world.run(GPU, id="v0", virtualCluster="vision")
    for job_id, limit in (("v1", 3600), ("v2", 60)):
        world.submit(GPU, id=job_id, virtualCluster="vision", extras={"maxRunSeconds": limit})
    assert shown(world, "vision") == ["v1", "v2"]
