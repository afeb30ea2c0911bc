"""Tasks that are being stopped have time to end by themselves, as their job and the cluster say."""

from __future__ import annotations

from typing import Any

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.core.model import State, SubState
from pai_scheduler.core.queries import limit_errors, waiting_reason
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.job.exit_codes import PREEMPTED, STOPPED_BY_USER
from tests.scheduler.core.world import KillTask, World, make_node, make_role
from tests.scheduler.making import make_spec

HALVES = (VirtualCluster("default", 50), VirtualCluster("vision", 50))


def grace(seconds: int, **extras: Any) -> dict[str, Any]:
    return {"terminationGraceSeconds": seconds, **extras}


def why(world: World, job_id: str = "j") -> str:
    return str(waiting_reason(world.core, world.job(job_id), world.now))


def gpus(count: int) -> dict[str, Any]:
    return make_role(gpus=count)


def with_gpus(count: int, *clusters: VirtualCluster) -> World:
    return World(make_node(gpus={"P100": count}), virtual_clusters=clusters or HALVES)


def test_a_job_that_is_stopped_has_the_time_that_it_named_and_says_until_when() -> None:
    world = World()
    refs = world.run(make_role(tasks=2), extras=grace(300))
    assert world.stop() == world.kills(refs, 300_000)
    job = world.job()
    assert (job.state, job.sub_state) == (State.RUNNING, SubState.ENDING)
    assert job.ending_until == world.now + 300_000
    assert why(world) == "It is ending: its last tasks are being stopped, and killed in 5 min."
    world.killed(*refs)
    assert (world.job().state, world.job().ending_until) == (State.STOPPED, None)


@pytest.mark.parametrize(
    ("settings", "asked", "seconds"),
    [
        (CoreSettings(), None, 10),
        (CoreSettings(), 0, 0),
        (CoreSettings(grace_seconds=30), None, 30),
        (CoreSettings(grace_seconds=30), 5, 5),
        # (the limit was lowered since it was submitted)
        (CoreSettings(max_grace_seconds=60), 300, 60),
    ],
)
def test_the_cluster_has_a_default_and_a_limit(
    settings: CoreSettings, asked: int | None, seconds: int
) -> None:
    world = World(settings=settings)
    refs = world.run(make_role(), extras={} if asked is None else grace(asked))
    assert world.stop() == world.kills(refs, 1000 * seconds)


def test_more_than_the_limit_is_refused_with_the_limit_at_its_path() -> None:
    world = World(settings=CoreSettings(max_grace_seconds=600))
    assert limit_errors(world.core, make_spec(make_role(), extras=grace(600))) == []
    (error,) = limit_errors(world.core, make_spec(make_role(), extras=grace(601)))
    assert error.path == "$.extras.terminationGraceSeconds"
    assert "600 s at most" in str(error.message)


def test_another_tasks_verdict_leaves_the_others_their_time() -> None:
    world = World()
    first, second = world.run(make_role(tasks=2), extras=grace(300))
    assert world.exited(first, 1) == world.kills([second], 300_000)
    assert world.job().ending_until == world.now + 300_000


def test_the_time_limit_leaves_tasks_their_time() -> None:
    world = World()
    refs = world.run(make_role(), extras=grace(300, maxRunSeconds=60))
    world.now += 60_000
    assert world.kills(refs, 300_000)[0] in world.tick()


def test_a_preempted_job_keeps_its_place_for_its_time_and_who_waits_for_it_says_until_when() -> None:
    world = with_gpus(2)
    refs = world.run(gpus(2), id="borrows", extras=grace(300))
    assert world.submit(gpus(1), id="wants", virtualCluster="vision") == world.kills(refs, 300_000)
    assert "is kept for it, and free in 5 min at the latest." in why(world, "wants")
    assert world.forecast("eve", make_spec(gpus(1), virtualCluster="vision")).starts_within != 0
    world.tick(270_000)
    assert "is kept for it, and free in 30 s at the latest." in why(world, "wants")
    assert "being stopped, and killed in 30 s." in why(world, "borrows")
    world.exited(refs[0], 0)
    assert world.attempt("borrows", 0).verdict is not None
    assert world.attempt("borrows", 0).verdict.exit_row == PREEMPTED  # type: ignore[union-attr]
    assert world.job("wants").sub_state is SubState.STARTING


def test_who_waits_without_a_reservation_says_until_when_a_stopped_job_is_there() -> None:
    world = with_gpus(2, VirtualCluster("default", 100))
    world.run(gpus(2), extras=grace(120))
    world.submit(gpus(1), id="waits")
    world.stop()
    assert why(world, "waits").endswith(
        "It fits after the end of the job that is being stopped, in 2 min at the latest."
    )


def test_the_estimate_of_a_job_for_which_others_are_stopped_counts_their_time() -> None:
    world = with_gpus(2)
    world.run(gpus(2), id="borrows", extras=grace(300))
    assert world.forecast("eve", make_spec(gpus(1), virtualCluster="vision")).starts_within == 300
    world.stop("borrows")
    world.tick(100_000)
    assert world.forecast("eve", make_spec(gpus(1), virtualCluster="vision")).starts_within == 200


def test_force_kills_at_once() -> None:
    world = World()
    refs = world.run(make_role(tasks=2), extras=grace(300))
    assert world.stop(force=True) == world.kills(refs, 0)
    assert world.job().ending_until == world.now


def test_force_kills_at_once_also_after_a_first_stop_and_says_who_wanted_it() -> None:
    world = World()
    refs = world.run(make_role(tasks=2), extras=grace(300))
    world.stop()
    world.now += 1000
    assert world.stop() == []
    assert world.stop(force=True) == world.kills(refs, 0)
    assert world.told()[-1] == "killed-at-once"
    assert world.sentences()[-1] == "bob had its tasks killed at once."
    # once more kills once more, and is no news
    told = world.told()
    world.now += 1000
    assert world.stop(force=True) == world.kills(refs, 0)
    assert world.told() == told
    world.killed(*refs)
    assert world.job().state is State.STOPPED


def test_force_ends_a_job_that_was_only_preempted() -> None:
    world = with_gpus(2)
    refs = world.run(gpus(2), id="borrows", extras=grace(300))
    world.submit(gpus(1), id="wants", virtualCluster="vision")
    assert world.stop("borrows", force=True) == world.kills(refs, 0)
    world.killed(*refs)
    verdict = world.job("borrows").verdict
    assert verdict is not None
    assert verdict.exit_row == STOPPED_BY_USER


def test_force_ends_a_waiting_job_as_a_stop_does() -> None:
    world = World(make_node(cpus=1))
    world.run(make_role())
    world.submit(make_role(), id="waits")
    world.stop("waits", force=True)
    assert world.job("waits").state is State.STOPPED
    assert world.stop("waits", force=True) == []


def test_a_restart_goes_on_with_what_is_left_of_the_time() -> None:
    world = World()
    (task,) = world.run(make_role(), extras=grace(300))
    world.stop()
    until = world.now + 300_000
    world.now += 200_000
    assert world.restart() == [KillTask(task, until)]
    assert world.job().ending_until == until
    assert why(world) == "It is ending: its last tasks are being stopped, and killed in 2 min."


def test_a_job_that_runs_on_past_its_time_says_only_that_it_ends() -> None:
    world = World()
    world.run(make_role())
    world.stop()
    world.now += 60_000
    assert why(world) == "It is ending: its last tasks are being stopped."


def test_a_preempted_job_begins_anew_with_no_end_in_sight() -> None:
    world = with_gpus(2)
    refs = world.run(gpus(2), id="borrows", extras=grace(300))
    world.submit(gpus(1), id="wants", virtualCluster="vision")
    world.killed(*refs)
    world.started(*world.refs("wants"))
    world.exited(world.refs("wants")[0])
    assert world.job("borrows").sub_state is SubState.STARTING
    assert world.attempt("borrows").ending_until is None
