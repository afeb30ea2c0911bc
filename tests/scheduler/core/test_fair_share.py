"""Users share a virtual cluster by what they have used of it lately."""

from __future__ import annotations

from typing import Any

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.core.queries import queued_jobs, waiting_reason
from pai_scheduler.core.state_machine import CoreSettings
from tests.scheduler.core.world import World, make_node, make_role
from tests.scheduler.making import make_spec

GPU = make_role(gpus=1)
HOUR = 3_600_000


def fair(gpus: int = 1, hours: int = 10, **fields: Any) -> World:
    clusters = [VirtualCluster("default", 100, fair_share_hours=hours)]
    return World(
        make_node(cpus=64, memory_mb=10**6, gpus={"P100": gpus}), virtual_clusters=clusters, **fields
    )


def shown(world: World) -> list[str]:
    return [entry.job.id for entry in queued_jobs(world.core, "default")]


def wait(world: World, user: str, *ids: str, **fields: Any) -> None:
    for job_id in ids:
        world.submit(GPU, id=job_id, user=user, **fields)


def end(world: World, job_id: str) -> None:
    """End a job that has its GPU."""
    world.started(*world.refs(job_id))
    for ref in world.refs(job_id):
        world.exited(ref)


def running(world: World) -> list[str]:
    return sorted(job.id for job in world.core.jobs.values() if job.id not in world.core.queue)


def test_who_has_used_less_comes_first_whoever_submitted_first() -> None:
    world = fair()
    wait(world, "alice", "a1", "a2", "a3")
    wait(world, "bob", "b1", "b2")
    assert running(world) == ["a1"]
    assert shown(world) == ["b1", "b2", "a2", "a3"]


def test_jobs_that_come_at_one_moment_are_started_by_turns() -> None:
    world = fair(gpus=4)
    world.run(make_role(gpus=4), id="first", user="carol")
    wait(world, "alice", "a1", "a2", "a3", "a4")
    wait(world, "bob", "b1", "b2", "b3", "b4")
    end(world, "first")
    assert running(world) == ["a1", "a2", "b1", "b2"]


def test_one_after_the_other_has_its_turn_as_their_jobs_end() -> None:
    world = fair()
    wait(world, "alice", *(f"a{number}" for number in range(1, 5)))
    wait(world, "bob", *(f"b{number}" for number in range(1, 5)))
    order = []
    for _ in range(8):
        [job_id] = running(world)
        order.append(job_id)
        world.now += HOUR
        end(world, job_id)
    assert order == ["a1", "b1", "a2", "b2", "a3", "b3", "a4", "b4"]


def test_what_was_used_long_ago_counts_less_than_a_little_now() -> None:
    for later, first in ((0, "b2"), (100 * HOUR, "a2")):
        world = fair(hours=10)
        wait(world, "alice", "a1")
        world.now += 8 * HOUR
        end(world, "a1")
        world.now += later
        wait(world, "bob", "b1")
        world.now += HOUR
        wait(world, "alice", "a2")
        wait(world, "bob", "b2")
        end(world, "b1")
        assert running(world) == [first]


def test_a_priority_counts_among_ones_own_jobs_only() -> None:
    world = fair()
    wait(world, "alice", "a1")
    wait(world, "bob", "b1", "b2")
    wait(world, "alice", "a2", extras={"priority": 100})
    world.reorder("b2", priority=60)
    assert shown(world) == ["b2", "b1", "a2"]


def test_nobody_moves_a_job_past_another_users() -> None:
    world = fair()
    wait(world, "alice", "a1", "a2", "a3")
    wait(world, "bob", "b1", "b2")
    world.reorder("a3", place=1, owner_only=False)
    assert shown(world) == ["b1", "b2", "a3", "a2"]


def test_the_order_and_what_was_used_outlive_a_restart_and_a_deleted_job() -> None:
    world = fair()
    wait(world, "alice", "a1")
    world.now += 5 * HOUR
    end(world, "a1")
    world.stop("a1", delete=True)
    wait(world, "bob", "b1", "b2")
    wait(world, "alice", "a2")
    wait(world, "carol", "c1")
    world.now += HOUR
    world.tick()
    before = shown(world)
    assert before == ["c1", "b2", "a2"]
    world.restart()
    world.tick()
    assert shown(world) == before
    end(world, "b1")
    assert running(world) == ["c1"]


def test_a_large_job_whose_turn_it_is_gets_room_when_it_was_overtaken_too_often() -> None:
    world = fair(gpus=2, settings=CoreSettings(overtake_limit=3))
    for number in range(9):
        wait(world, "alice", f"a{number}")
        wait(world, "bob", f"b{number}")
    world.submit(make_role(gpus=2), id="large", user="carol")
    assert shown(world)[0] == "large"
    ends = 0
    while running(world) != ["large"]:
        world.now += HOUR
        end(world, min(running(world), key=lambda job_id: world.attempt(job_id).created))
        ends += 1
        assert ends < 9
    assert ends == 3 + 2


def test_users_who_always_wait_get_the_same_however_long_their_jobs_are() -> None:
    world = fair(hours=1000)
    hours = {"alice": 3, "bob": 1, "carol": 2}
    got = dict.fromkeys(hours, 0)
    for user in hours:
        wait(world, user, f"{user}-0", f"{user}-1")
    for number in range(2, 80):
        [job_id] = running(world)
        user = job_id.split("-")[0]
        world.now += hours[user] * HOUR
        got[user] += hours[user]
        wait(world, user, f"{user}-{number}")
        end(world, job_id)
    assert max(got.values()) - min(got.values()) <= 6
    assert sum(got.values()) > 100


def test_who_waits_is_told_what_they_have_used() -> None:
    world = fair(hours=1000)
    wait(world, "alice", "a1", "a2")
    world.now += 2 * HOUR
    world.tick()
    reason = str(waiting_reason(world.core, world.core.jobs["a2"], world.now))
    assert (
        "place 1 in the queue, where who has used less comes first (alice: 2.0 GPU hours lately): " in reason
    )


def test_a_forecast_tells_the_place_by_what_its_user_has_used() -> None:
    world = fair()
    wait(world, "alice", "a1", "a2")
    wait(world, "bob", "b1")
    places = {}
    for user in ("alice", "bob", "carol"):
        limits = world.forecast(user, make_spec(GPU)).limits
        places[user] = limits.queue_position if limits is not None else None
    assert places == {"alice": 3, "bob": 2, "carol": 2}


def test_where_it_is_switched_on_and_off_the_order_follows() -> None:
    world = World(make_node(gpus={"P100": 1}))
    wait(world, "alice", "a1", "a2")
    wait(world, "bob", "b1")
    assert shown(world) == ["a2", "b1"]
    assert world.disk.usages == {}
    world.change_shares(VirtualCluster("default", 100, fair_share_hours=10))
    assert shown(world) == ["b1", "a2"]
    assert list(world.disk.usages) == [("default", "alice")]
    world.change_shares(VirtualCluster("default", 100))
    assert shown(world) == ["a2", "b1"]
    assert world.disk.usages == {}
