"""Who has had less of a virtual cluster comes first in it, and stops those who said that they may be."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.cluster.sort_key import level_of
from pai_scheduler.core.queries import waiting_reason
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.simulator.simulation import replay
from pai_scheduler.simulator.traces import TraceJob, TraceRole
from tests.scheduler.core.world import World, make_node, make_role

GPU = make_role(gpus=1)
HOUR = 3_600_000


def levels(run_seconds: int = 600, promote_hours: int = 100, **fields: Any) -> World:
    policy = LeastAttained((1.0, 10.0), run_seconds, promote_hours)
    clusters = [VirtualCluster("default", 100, least_attained=policy)]
    return World(make_node(cpus=64, memory_mb=10**6, gpus={"P100": 1}), virtual_clusters=clusters, **fields)


def run(world: World, job_id: str, *, says: bool = True) -> None:
    world.run(GPU, id=job_id, **({"extras": {"preemptible": True}} if says else {}))


def is_stopped(world: World, job_id: str) -> bool:
    return any(task.killing for task in world.disk.job(job_id).attempt.tasks.values())  # type: ignore[union-attr]


def reason(world: World, job_id: str) -> str:
    return str(waiting_reason(world.core, world.core.jobs[job_id], world.now))


def test_a_job_of_a_lower_level_stops_one_of_a_higher_and_gets_its_place() -> None:
    world = levels()
    run(world, "long")
    world.tick(2 * HOUR)
    refs = world.refs("long")
    world.submit(GPU, id="short")
    assert is_stopped(world, "long")
    verdict = world.attempt("long").verdict
    assert verdict is not None
    assert "in virtual cluster default jobs that have had less come first" in str(verdict.reason)
    world.killed(*refs)
    assert "short" not in world.core.queue
    assert world.core.jobs["long"].attained >= 2 * HOUR * 8


def test_within_a_level_nobody_is_stopped_until_the_running_one_leaves_it() -> None:
    world = levels()
    run(world, "long")
    world.submit(GPU, id="short")
    world.tick(HOUR - 1)
    assert not is_stopped(world, "long")
    world.tick(1)
    assert is_stopped(world, "long")


def test_who_did_not_say_so_is_not_stopped() -> None:
    world = levels()
    run(world, "long", says=False)
    world.tick(20 * HOUR)
    world.submit(GPU, id="short")
    world.tick(HOUR)
    assert not is_stopped(world, "long")


def test_a_job_that_has_just_started_is_left_alone_for_a_while() -> None:
    world = levels(run_seconds=3 * 3600)
    run(world, "long")
    world.tick(2 * HOUR)
    world.submit(GPU, id="short")
    assert not is_stopped(world, "long")
    world.tick(HOUR)
    assert is_stopped(world, "long")


def test_what_a_job_has_had_counts_after_a_restart() -> None:
    world = levels()
    run(world, "long")
    world.tick(2 * HOUR)
    refs = world.refs("long")
    world.submit(GPU, id="short")
    world.killed(*refs)
    world.restart()
    world.tick()
    assert level_of(world.core.jobs["long"].policy_key or 0) == 1


def test_a_running_job_is_stopped_after_a_restart_too() -> None:
    world = levels()
    run(world, "long")
    world.restart()
    world.tick(2 * HOUR)
    world.submit(GPU, id="short")
    assert is_stopped(world, "long")


def test_who_has_waited_long_enough_comes_first_again() -> None:
    world = levels(promote_hours=5)
    run(world, "long")
    world.tick(2 * HOUR)
    refs = world.refs("long")
    world.submit(GPU, id="short")
    world.killed(*refs)
    had = world.core.jobs["long"].attained
    assert had >= 2 * HOUR * 8
    assert level_of(world.core.jobs["long"].policy_key or 0) == 1
    assert "who has had less comes first (level 2 of 3: 2.0 GPU hours so far)" in reason(world, "long")
    world.tick(5 * HOUR)
    assert world.core.jobs["long"].policy_key == 0
    assert world.core.jobs["long"].attained == had
    world.restart()
    world.tick()
    assert world.core.jobs["long"].policy_key == 0
    assert "(level 1 of 3: 2.0 GPU hours so far)" in reason(world, "long")


def test_who_comes_first_after_a_long_wait_runs_for_an_hour_and_is_back_in_its_level_then() -> None:
    world = levels(promote_hours=5)
    run(world, "long")
    world.tick(2 * HOUR)
    refs = world.refs("long")
    world.submit(GPU, id="short", extras={"preemptible": True})
    world.killed(*refs)
    world.started(*world.refs("short"))
    world.tick(5 * HOUR)
    assert is_stopped(world, "short")
    world.killed(*world.refs("short"))
    world.started(*world.refs("long"))
    world.submit(GPU, id="other")
    world.tick(HOUR - 1)
    assert not is_stopped(world, "long")
    world.tick(1)
    assert is_stopped(world, "long")


def test_nothing_is_kept_for_a_job_of_a_higher_level_until_it_has_waited_for_long() -> None:
    policy = LeastAttained((1.0, 10.0), 600, 5)
    world = World(
        make_node(cpus=64, memory_mb=10**6, gpus={"P100": 2}),
        virtual_clusters=[VirtualCluster("default", 100, least_attained=policy)],
        settings=CoreSettings(overtake_limit=2),
    )
    world.run(make_role(gpus=2), id="wide", extras={"preemptible": True})
    world.tick(2 * HOUR)
    refs = world.refs("wide")
    world.submit(GPU, id="keeps")
    world.killed(*refs)
    world.started(*world.refs("keeps"))

    def overtakes(name: str) -> bool:
        world.submit(GPU, id=name, extras={"priority": 10})
        if name in world.core.queue:
            return False
        world.started(*world.refs(name))
        world.exited(world.refs(name)[0])
        return True

    assert all(overtakes(f"small-{number}") for number in range(5))
    world.tick(5 * HOUR)
    assert not overtakes("late")
    world.exited(world.refs("keeps")[0])
    assert "wide" not in world.core.queue


def shared(gpus: int, capacity: float, most: float) -> World:
    """Make machines for two virtual clusters, of which `default` has levels."""
    policy = LeastAttained((1.0, 10.0), 600, 100)
    clusters = [
        VirtualCluster("default", capacity, most, least_attained=policy),
        VirtualCluster("vision", 100 - capacity, 100),
    ]
    node = make_node(cpus=64, memory_mb=10**6, gpus={"P100": gpus})
    return World(node, virtual_clusters=clusters)


def test_beyond_its_guarantee_a_job_stops_those_of_its_own_virtual_cluster_only() -> None:
    world = shared(4, 25, 100)
    says: dict[str, Any] = {"extras": {"preemptible": True}}
    for name in ("v1", "v2"):
        world.run(GPU, id=name, virtualCluster="vision", **says)
    for name in ("d1", "d2"):
        world.run(GPU, id=name, **says)
    world.tick(2 * HOUR)
    refs = world.refs("d1"), world.refs("d2")
    world.submit(GPU, id="short", **says)
    stopped = [name for name in ("v1", "v2", "d1", "d2") if is_stopped(world, name)]
    assert len(stopped) == 1
    assert set(stopped) <= {"d1", "d2"}
    world.killed(*refs[stopped == ["d2"]])
    assert "short" not in world.core.queue
    assert stopped[0] in world.core.queue


@pytest.mark.parametrize("says", [True, False])
def test_at_its_maximum_a_virtual_cluster_stops_one_of_its_own_and_no_other(says: bool) -> None:
    world = shared(4, 50, 50)
    extras: dict[str, Any] = {"extras": {"preemptible": True}}
    for name in ("d1", "d2"):
        world.run(GPU, id=name, **extras)
    world.run(GPU, id="v1", virtualCluster="vision", **extras)
    world.tick(2 * HOUR)
    world.submit(GPU, id="short", extras={"preemptible": says})
    stopped = [name for name in ("v1", "d1", "d2") if is_stopped(world, name)]
    assert len(stopped) == 1
    assert set(stopped) <= {"d1", "d2"}


def test_those_whose_virtual_cluster_has_no_levels_are_stopped_only_for_what_they_borrow() -> None:
    world = shared(2, 50, 100)
    for name in ("v1", "v2"):
        world.run(GPU, id=name, virtualCluster="vision", extras={"preemptible": True})
    world.tick(2 * HOUR)
    world.submit(GPU, id="short")
    stopped = [name for name in ("v1", "v2") if is_stopped(world, name)]
    assert len(stopped) == 1
    verdict = world.attempt(stopped[0]).verdict
    assert verdict is not None
    assert "vision had borrowed" in str(verdict.reason)
    world.submit(GPU, id="other", virtualCluster="vision")
    assert [name for name in ("v1", "v2") if is_stopped(world, name)] == stopped


def test_nobody_is_stopped_where_no_level_is_set() -> None:
    world = World(make_node(cpus=64, memory_mb=10**6, gpus={"P100": 1}))
    run(world, "long")
    world.tick(200 * HOUR)
    world.submit(GPU, id="short")
    assert not is_stopped(world, "long")


@pytest.mark.parametrize(
    "cluster",
    [
        VirtualCluster("default", 100, least_attained=LeastAttained((1.0, 10.0), 600, 20)),
        VirtualCluster("default", 100, shortest_remaining=ShortestRemaining(600, 20)),
    ],
    ids=["by what they had", "by what they need"],
)
def test_jobs_that_stop_each_other_all_end_and_lose_nothing(cluster: VirtualCluster) -> None:
    for seed in range(5):
        random = Random(seed)  # noqa: S311
        jobs = [
            TraceJob(
                f"j{number}",
                "u",
                "default",
                random.randrange(20 * HOUR),
                (run := random.randrange(1, 30 * HOUR)),
                (TraceRole(1, random.choice((1, 2, 4))),),
                max_run_seconds=run // 1000 + 1,
            )
            for number in range(30)
        ]
        node = make_node(cpus=64, memory_mb=10**6, gpus={"P100": 4})
        found = replay(jobs, [node], [cluster], checkpoints=True)
        assert all(one.succeeded for one in found.jobs)
        for one in found.jobs:
            assert one.ended is not None
            assert one.started is not None
            assert one.done_ms + one.ended - one.started == one.job.run_ms
        assert sum(one.preemptions for one in found.jobs) > 0
