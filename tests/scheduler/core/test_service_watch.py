"""Who needs least to its end comes first, and stops those who said that they may be stopped."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.core.queries import waiting_reason
from pai_scheduler.core.state_machine import CoreSettings
from tests.scheduler.core.test_least_attained import is_stopped
from tests.scheduler.core.world import World, make_node, make_role
from tests.testbed.properties import examples

GPU = make_role(gpus=1)
HOUR = 3_600_000


def remaining(run_seconds: int = 600, promote_hours: int = 100) -> World:
    policy = ShortestRemaining(run_seconds, promote_hours)
    clusters = [VirtualCluster("default", 100, shortest_remaining=policy)]
    return World(make_node(cpus=64, memory_mb=10**6, gpus={"P100": 1}), virtual_clusters=clusters)


def asks(hours: float | None, *, says: bool = True) -> dict[str, Any]:
    extras: dict[str, Any] = {"preemptible": True} if says else {}
    return {"extras": extras if hours is None else extras | {"maxRunSeconds": round(3600 * hours)}}


def in_line(world: World) -> list[str]:
    return list(world.core.queue.in_order("default"))


def test_who_needs_least_is_first_in_line_and_who_names_no_limit_counts_for_a_week() -> None:
    world = remaining()
    world.run(GPU, id="runs", **asks(0.1))
    for name, hours in (("unknown", None), ("long", 200), ("short", 1), ("middle", 10)):
        world.submit(GPU, id=name, **asks(hours))
    assert in_line(world) == ["short", "middle", "unknown", "long"]


def test_a_job_that_needs_less_stops_one_that_needs_more_and_nobody_else() -> None:
    world = remaining()
    world.run(GPU, id="long", **asks(10))
    world.tick(HOUR)
    world.submit(GPU, id="longer", **asks(9.5))
    assert not is_stopped(world, "long")
    world.submit(GPU, id="short", **asks(1))
    assert is_stopped(world, "long")
    verdict = world.attempt("long").verdict
    assert verdict is not None
    assert "jobs that need less to their end come first" in str(verdict.reason)
    world.killed(*world.refs("long"))
    assert in_line(world) == ["long", "longer"]


def test_what_a_running_job_has_had_is_no_longer_needed() -> None:
    world = remaining()
    world.run(GPU, id="long", **asks(10))
    world.tick(9 * HOUR)
    world.submit(GPU, id="other", **asks(2))
    assert not is_stopped(world, "long")


def test_who_did_not_say_so_or_has_just_started_is_not_stopped() -> None:
    world = remaining(run_seconds=3600)
    world.run(GPU, id="long", **asks(10, says=False))
    world.tick(2 * HOUR)
    world.submit(GPU, id="short", **asks(0.1))
    assert not is_stopped(world, "long")
    world = remaining(run_seconds=3600)
    world.run(GPU, id="long", **asks(10))
    world.submit(GPU, id="short", **asks(0.1))
    assert not is_stopped(world, "long")
    world.tick(HOUR)
    assert is_stopped(world, "long")


def test_the_order_and_what_jobs_have_had_outlive_a_restart() -> None:
    world = remaining()
    world.run(GPU, id="long", **asks(10))
    world.tick(4 * HOUR)
    refs = world.refs("long")
    world.submit(GPU, id="short", **asks(1))
    world.killed(*refs)
    world.submit(GPU, id="middle", **asks(7))
    before = in_line(world)
    assert before == ["long", "middle"]
    world.restart()
    world.tick()
    assert in_line(world) == before


def test_who_has_waited_for_long_runs_for_an_hour_undisturbed() -> None:
    world = remaining(promote_hours=5)
    world.run(GPU, id="long", **asks(50))
    world.tick(HOUR)
    refs = world.refs("long")
    world.submit(GPU, id="short", **asks(6))
    world.killed(*refs)
    world.started(*world.refs("short"))
    world.submit(GPU, id="other", **asks(3))
    world.tick(5 * HOUR)
    assert world.core.jobs["long"].policy_key == 0
    world.restart()
    world.tick()
    assert world.core.jobs["long"].policy_key == 0
    for name in ("short", "other"):
        if name not in world.core.queue:
            world.killed(*world.refs(name))
    world.started(*world.refs("long"))
    world.submit(GPU, id="quick", **asks(0.1))
    world.tick(HOUR - 1)
    assert not is_stopped(world, "long")
    world.tick(1)
    assert is_stopped(world, "long")


def test_the_reason_says_about_how_much_a_job_needs() -> None:
    world = remaining()
    world.run(GPU, id="runs", **asks(0.1))
    world.submit(GPU, id="waits", **asks(2))
    text = str(waiting_reason(world.core, world.core.jobs["waits"], world.now))
    assert "where who needs least to its end comes first (about 2.0 GPU hours): " in text


def test_a_job_that_is_not_submitted_yet_is_told_its_place_by_what_it_needs() -> None:
    world = remaining()
    world.run(GPU, id="runs", **asks(0.1, says=False))
    world.submit(GPU, id="long", **asks(20))
    spec = world.core.jobs["long"].spec
    found = world.forecast("alice", replace(spec, **asks(1)))
    assert found.starts_within is not None
    assert found.starts_within < 3600
    found = world.forecast("alice", replace(spec, **asks(21)))
    assert found.starts_within is not None
    assert found.starts_within > 20 * 3600


def test_an_estimate_knows_who_will_be_stopped_and_when() -> None:
    world = remaining(run_seconds=3600)
    world.run(GPU, id="long", **asks(50))
    world.tick(HOUR // 2)
    spec = world.core.jobs["long"].spec
    # (it has half an hour left undisturbed, and some seconds to end)
    assert world.forecast("alice", replace(spec, **asks(1))).starts_within == 1800 + 10
    assert world.forecast("alice", replace(spec, **asks(49.4))).starts_within == round(49.5 * 3600)
    world.submit(GPU, id="first", **asks(1))
    assert world.forecast("alice", replace(spec, **asks(2))).starts_within == 1800 + 10 + 3600


def test_an_estimate_takes_nobody_as_stopped_who_may_not_be() -> None:
    world = remaining()
    world.run(GPU, id="long", **asks(50, says=False))
    spec = world.core.jobs["long"].spec
    assert world.forecast("alice", replace(spec, **asks(1))).starts_within == 50 * 3600


def test_without_a_limit_a_job_needs_what_the_same_took_before() -> None:
    world = remaining()
    for number in range(3):
        world.run(GPU, id=f"known-{number}", **asks(None))
        world.tick(HOUR)
        world.exited(world.refs(f"known-{number}")[0])
    world.run(GPU, id="runs", **asks(0.1, says=False))
    world.submit(GPU, id="limited", **asks(2))
    world.submit(GPU, id="same", **asks(None))
    assert in_line(world) == ["same", "limited"]


#: GPUs of the jobs that wait, and after how many hours each is submitted
WAITING = st.lists(st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(0, 20)), min_size=1, max_size=8)


@pytest.mark.parametrize(
    "cluster",
    [
        VirtualCluster("default", 100, least_attained=LeastAttained((1.0,), 600, 5)),
        VirtualCluster("default", 100, shortest_remaining=ShortestRemaining(600, 5)),
    ],
    ids=["leastAttained", "shortestRemaining"],
)
@settings(max_examples=examples(25), deadline=None)
@given(waiting=WAITING, restarts_at=st.none() | st.integers(0, 60))
def test_who_waits_is_promoted_in_turn_and_promoted_jobs_have_a_tenth_of_the_gpu_time(
    cluster: VirtualCluster, waiting: list[tuple[int, int]], restarts_at: int | None
) -> None:
    world = World(make_node(cpus=64, memory_mb=10**6, gpus={"P100": 8}), virtual_clusters=[cluster])
    # (of these thousands of events all others together take less)
    world.validates = False
    world.run(make_role(gpus=8), id="full", extras={"preemptible": False})
    order, promoted = [], list[str]()
    allowance = 8 * 10 * HOUR
    for hour in range(5 + 20 + 10 * len(waiting) + 20):
        for number, (gpus, at) in enumerate(waiting):
            if at == hour:
                order.append(f"j{number}")
                world.submit(make_role(gpus=gpus), id=f"j{number}", **asks(20 - number))
        if hour == restarts_at:
            world.restart()
        world.tick()
        new = [name for name in order if world.core.jobs[name].policy_key == 0 and name not in promoted]
        promoted += new
        had = sum(waiting[int(name[1:])][0] * HOUR for name in promoted)
        # (the last of them need not have been paid for yet)
        assert 10 * had <= 8 * hour * HOUR + allowance
        world.tick(HOUR)
    assert promoted == order


def test_of_jobs_that_all_waited_for_long_one_comes_first_and_the_next_after_a_pause() -> None:
    world = remaining(promote_hours=5)
    world.run(GPU, id="runs", **asks(1000, says=False))
    for name in ("a", "b", "c"):
        world.submit(GPU, id=name, **asks(20))
    firsts = []
    for _ in range(30):
        world.tick(HOUR)
        firsts.append([name for name in ("a", "b", "c") if world.core.jobs[name].policy_key == 0])
    # the one GPU is a promoted job's for one hour in ten
    assert firsts == [[]] * 4 + [["a"]] * 10 + [["a", "b"]] * 10 + [["a", "b", "c"]] * 6


def test_who_ended_or_ran_meanwhile_does_not_come_first() -> None:
    world = remaining(promote_hours=5)
    world.run(GPU, id="runs", **asks(1000, says=False))
    for name in ("stopped", "waits"):
        world.submit(GPU, id=name, **asks(20))
    world.stop("stopped")
    world.tick(5 * HOUR)
    assert world.core.jobs["waits"].policy_key == 0


def test_nothing_is_kept_for_a_job_that_was_overtaken_until_it_has_waited_for_long() -> None:
    world = World(
        make_node(cpus=64, memory_mb=10**6, gpus={"P100": 2}),
        virtual_clusters=[VirtualCluster("default", 100, shortest_remaining=ShortestRemaining(600, 5))],
        settings=CoreSettings(overtake_limit=2),
    )
    world.run(GPU, id="keeps", **asks(1000, says=False))
    world.submit(make_role(gpus=2), id="wide", **asks(1))

    def overtakes(name: str) -> bool:
        world.submit(GPU, id=name, **asks(3))
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


def test_who_could_not_be_stopped_when_room_was_reserved_is_stopped_when_that_may_be() -> None:
    world = World(
        make_node(cpus=64, memory_mb=10**6, gpus={"P100": 2}),
        virtual_clusters=[VirtualCluster("default", 100, shortest_remaining=ShortestRemaining(600, 5))],
        settings=CoreSettings(overtake_limit=0),
    )
    for name in ("a", "b"):
        world.run(GPU, id=name, **asks(1000, says=False))
    world.submit(make_role(gpus=2), id="wide", **asks(50))
    world.tick(5 * HOUR - 300_000)
    world.exited(world.refs("a")[0])
    world.run(GPU, id="new", **asks(10))
    world.tick(300_000)
    world.exited(world.refs("b")[0])
    assert "wide" in world.core.state.reservations
    assert not is_stopped(world, "new")
    world.tick(300_000)
    assert is_stopped(world, "new")
    world.killed(*world.refs("new"))
    assert "wide" not in world.core.queue
