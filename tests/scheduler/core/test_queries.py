from __future__ import annotations

from dataclasses import replace

import pytest

from pai_scheduler.cluster import start_estimate
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.core import queries
from pai_scheduler.core.queries import (
    Limits,
    QueuedJob,
    gpu_memory_mb,
    latest_end,
    limit_errors,
    node_uses,
    queued_jobs,
    seconds_until,
    start_of_waiting,
    virtual_cluster_uses,
    waiting_reason,
)
from pai_scheduler.core.state_machine import CoreSettings
from tests.scheduler.core.world import World, make_node, make_role
from tests.scheduler.making import make_spec


def why(world: World, job_id: str = "j") -> str | None:
    reason = waiting_reason(world.core, world.job(job_id), world.now)
    return None if reason is None else str(reason)


def test_a_job_that_would_fit_now_is_told_so_and_nothing_is_booked() -> None:
    world = World(make_node(gpus={"P100": 2}))
    spec = make_spec(make_role(gpus=2))
    assert (world.forecast("alice", spec).fits, world.forecast("alice", spec).reason) == (
        "now",
        None,
    )
    assert world.is_free()


def test_a_job_that_would_have_to_wait_is_told_for_what() -> None:
    world = World(make_node(gpus={"P100": 2}))
    world.run(make_role(gpus=1))
    answer = world.forecast("alice", make_spec(make_role(gpus=2), gpuType="P100"))
    assert answer.fits == "later"
    assert str(answer.reason) == "the job asks for 2 × P100, 1 free (a: 1)."


def test_a_job_that_never_would_fit_is_told_why() -> None:
    answer = World().forecast("alice", make_spec(make_role(gpus=1), gpuType="P100"))
    assert answer.fits == "never"
    assert str(answer.reason) == "Never fits at present: there is no GPU of type P100; there are: none."


def test_a_waiting_job_is_told_its_place_and_what_it_waits_for() -> None:
    world = World(make_node(gpus={"P100": 2}))
    world.run(make_role(gpus=1), id="running")
    world.submit(make_role(gpus=2), id="first")
    world.submit(make_role(gpus=2), id="second")
    assert why(world, "running") is None
    assert why(world, "first") == (
        "Waiting in virtual cluster default, place 1 in the queue: the job asks for 2 × GPU, 1 free (a: 1). "
        "It fits after the end of the job that runs."
    )
    assert "place 2 in the queue" in (why(world, "second") or "")


def test_a_waiting_job_that_never_fits_is_told_so() -> None:
    world = World()
    world.submit(make_role(cpus=9))
    assert (why(world) or "").endswith(
        "Never fits at present: a task asks for 9 CPUs, the largest node has 8. Ask for at most 8 per task."
    )


def test_a_starting_job_is_told_that_it_has_its_resources() -> None:
    world = World()
    world.submit()
    assert why(world) == "Has its resources; its tasks are being started."
    world.progress(world.refs()[0], 40)
    assert why(world) == "Has its resources; pulling the image."


def test_a_job_between_attempts_is_told_when_the_next_begins() -> None:
    world = World()
    world.submit(retryCount=-1)
    for _ in range(4):
        world.started(*world.refs())
        world.exited(world.refs()[0], 1)
    failure = (
        "The last attempt failed: Task main-0 ended with exit code 1. "
        "Its command failed: the end of its log says why."
    )
    assert why(world) == f"The next attempt begins in 1 s. {failure}"
    world.restart()
    assert why(world) == f"The next attempt begins in 1 s. {failure}"


def test_a_job_that_is_repeated_after_success_has_no_failure_to_tell_of() -> None:
    world = World()
    world.run(retryCount=-2)
    world.exited(world.refs()[0], 0)
    assert why(world) == "Has its resources; its tasks are being started."


def test_a_job_whose_last_attempt_is_still_ending_is_told_so() -> None:
    world = World()
    first, _ = world.run(make_role(tasks=2), retryCount=1)
    world.exited(first, 1)
    assert (why(world) or "").startswith(
        "The tasks of the last attempt are being stopped, and killed in 10 s. The last attempt"
    )


def test_nodes_show_what_is_taken_and_who_has_which_gpu() -> None:
    world = World(make_node("a", gpus={"P100": 2}), make_node("b"))
    (task,) = world.run(make_role(cpus=3, memory_mb=500, storage_gb=7, gpus=1))
    first, second = node_uses(world.core)
    (gpu,) = world.task(task).assignment.gpus
    assert (first.cpus, first.memory_mb, first.storage_gb) == (3, 500, 7)
    assert {index: job.name for index, job in first.gpu_jobs.items()} == {gpu: "j"}
    assert (second.cpus, second.gpu_jobs) == (0, {})


def test_virtual_clusters_show_what_their_jobs_hold() -> None:
    clusters = [VirtualCluster("default", 60), VirtualCluster("vision", 40)]
    world = World(make_node(cpus=10, memory_mb=1000, gpus={"P100": 4}), virtual_clusters=clusters)
    world.run(make_role(cpus=2, memory_mb=500, gpus=1), id="a", virtualCluster="vision")
    world.submit(make_role(gpus=4), id="b", virtualCluster="vision")
    default, vision = virtual_cluster_uses(world.core, clusters, {"vision": 5})
    assert (default.used, default.used_capacity) == ((0, 0, 0), 0)
    assert (default.active_jobs, default.pending_jobs, default.total_jobs) == (0, 0, 0)
    assert vision.used == (500, 2, 1)
    assert vision.total == (1000, 10, 4)
    assert vision.used_capacity == 50
    assert (vision.active_jobs, vision.pending_jobs, vision.total_jobs) == (1, 1, 5)
    assert vision.nodes == ("a",)


def test_a_job_is_told_beforehand_its_order_its_time_limit_and_what_is_left_of_a_quota() -> None:
    limited = VirtualCluster("default", 100, default_run_seconds=60, max_run_seconds=100, gpus_per_user=3)
    world = World(make_node(gpus={"P100": 4}), virtual_clusters=[limited])
    world.run(make_role(gpus=2), id="running")
    world.submit(make_role(gpus=3), id="waits")
    limits = world.forecast("alice", make_spec(make_role(gpus=1))).limits
    assert limits is not None
    assert (limits.priority, limits.queue_position, limits.run_seconds) == (50, 2, 60)
    assert (limits.gpus_per_user, limits.gpus_held) == (3, 2)
    urgent = world.forecast("bert", make_spec(extras={"priority": 51, "maxRunSeconds": 90})).limits
    assert urgent is not None
    assert (urgent.queue_position, urgent.run_seconds, urgent.gpus_held) == (1, 90, 0)


def test_the_latest_time_at_which_a_job_fits_is_rounded_up_to_minutes() -> None:
    world = World(make_node(gpus={"P100": 1}))
    world.run(make_role(gpus=1), id="running", extras={"maxRunSeconds": 120})
    world.submit(make_role(gpus=1))
    assert (why(world) or "").endswith("in 2 min at the latest.")
    world.now += 1
    assert (why(world) or "").endswith("in 2 min at the latest.")
    world.now += 119_998
    assert (why(world) or "").endswith("in 1 min at the latest.")


def test_a_long_time_is_told_in_hours() -> None:
    world = World(make_node(gpus={"P100": 1}))
    world.run(make_role(gpus=1), id="running", extras={"maxRunSeconds": 7201})
    world.submit(make_role(gpus=1))
    assert (why(world) or "").endswith("in 3 h at the latest.")
    world.now += 1000
    assert (why(world) or "").endswith("in 120 min at the latest.")


def test_a_job_that_would_borrow_is_told_what_that_means_and_one_that_has_to_wait_is_told_of_the_wait() -> (
    None
):
    clusters = [VirtualCluster("default", 50), VirtualCluster("vision", 50)]
    world = World(make_node(cpus=100, gpus={"P100": 4}), virtual_clusters=clusters)
    now = world.forecast("alice", make_spec(make_role(gpus=3)))
    assert (now.fits, now.borrows, str(now.reason)) == (
        "now",
        True,
        "It would hold more than virtual cluster default is guaranteed: it may be stopped for others, "
        "and is queued again then.",
    )
    world.run(make_role(gpus=2))
    later = world.forecast("alice", make_spec(make_role(gpus=3)))
    assert (later.fits, later.borrows, str(later.reason)) == (
        "later",
        True,
        "the job asks for 3 × GPU, 2 free (a: 2).",
    )


def test_a_forecast_tells_priority_place_and_limits() -> None:
    clusters = [VirtualCluster("default", 100, default_run_seconds=60, gpus_per_user=3)]
    world = World(make_node(gpus={"P100": 4}), virtual_clusters=clusters)
    world.run(make_role(gpus=2), id="running")
    world.submit(make_role(cpus=8), id="plain")
    world.submit(make_role(cpus=8), id="urgent", extras={"priority": 80})
    assert world.forecast("alice", make_spec(extras={"priority": 80})).limits == Limits(80, 2, 60, 3, 2)
    assert world.forecast("bert", make_spec(extras={"maxRunSeconds": 9})).limits == Limits(50, 3, 9, 3, 0)


def test_the_queue_shows_places_overtakings_and_for_whom_things_are_kept() -> None:
    world = World(make_node(gpus={"P100": 4}), settings=CoreSettings(overtake_limit=1))
    world.run(make_role(gpus=2), id="running")
    world.submit(make_role(gpus=4), id="large")
    world.run(make_role(gpus=1), id="small")
    world.submit(make_role(gpus=2), id="urgent", extras={"priority": 60})
    jobs = world.core.jobs
    assert queued_jobs(world.core, "default") == [
        QueuedJob(jobs["urgent"], 1, (jobs["urgent"].sort_key, "urgent"), 0, reserved=False),
        QueuedJob(jobs["large"], 2, (jobs["large"].sort_key, "large"), 1, reserved=True),
    ]
    assert queued_jobs(world.core, "nowhere") == []


def test_a_time_limit_is_too_long_for_a_virtual_cluster_only_beyond_the_longest_that_it_allows() -> None:
    clusters = [VirtualCluster("default", 100, max_run_seconds=60), VirtualCluster("free", 0)]
    core = World(virtual_clusters=clusters).core
    assert limit_errors(core, make_spec()) == []
    assert limit_errors(core, make_spec(extras={"maxRunSeconds": 60})) == []
    assert limit_errors(core, make_spec(virtualCluster="free", extras={"maxRunSeconds": 61})) == []
    assert limit_errors(core, make_spec(virtualCluster="gone", extras={"maxRunSeconds": 61})) == []
    (error,) = limit_errors(core, make_spec(extras={"maxRunSeconds": 61}))
    assert error.path == "$.extras.maxRunSeconds"
    assert str(error.message) == (
        "A job of virtual cluster default may run for 60 s at most: ask for less than 61."
    )


def test_a_forecast_says_in_how_many_seconds_a_job_would_start_where_time_limits_tell() -> None:
    world = World(make_node(gpus={"P100": 2}))
    spec = make_spec(make_role(gpus=1))
    assert world.forecast("alice", spec).starts_within == 0
    world.started(*world.run(make_role(gpus=2), id="runs", extras={"maxRunSeconds": 600}))
    assert world.forecast("alice", spec).starts_within == 600
    world.submit(make_role(gpus=2), id="waits", extras={"maxRunSeconds": 300})
    assert world.forecast("alice", spec).starts_within == 900
    assert world.forecast("alice", make_spec(make_role(gpus=1), extras={"priority": 51})).starts_within == 600
    world.submit(make_role(gpus=2), id="forever")
    assert world.forecast("alice", spec).starts_within is None
    assert world.forecast("alice", make_spec(make_role(gpus=3))).starts_within is None  # it never does


def test_a_job_that_waits_is_told_what_the_forecast_told_before_it_was_submitted() -> None:
    world = World(make_node(gpus={"P100": 2}))
    world.started(*world.run(make_role(gpus=2), id="runs", extras={"maxRunSeconds": 600}))
    for name, seconds in (("first", 600), ("second", 900), ("third", 1200)):
        promised = world.forecast("alice", make_spec(make_role(gpus=2))).starts_within
        world.submit(make_role(gpus=2), id=name, extras={"maxRunSeconds": 300})
        start = start_of_waiting(world.core, name, world.now)
        assert start is not None
        assert seconds_until(start, world.now) == promised == seconds
    assert start_of_waiting(world.core, "runs", world.now) is None
    assert start_of_waiting(world.core, "nobody", world.now) is None
    world.submit(make_role(gpus=3), id="never", extras={"priority": 99})
    assert start_of_waiting(world.core, "never", world.now) is None


def test_a_job_far_back_in_a_long_queue_is_told_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(make_node(gpus={"P100": 2}))
    world.started(*world.run(make_role(gpus=2), id="runs", extras={"maxRunSeconds": 600}))
    names = ["first", "second", "third", "fourth"]
    for name in names:
        world.submit(make_role(gpus=2), id=name, extras={"maxRunSeconds": 300})
    assert None not in [start_of_waiting(world.core, name, world.now) for name in names]
    for module in (start_estimate, queries):
        monkeypatch.setattr(module, "MOST_AHEAD", 2)
    told = [start_of_waiting(world.core, name, world.now) is not None for name in names]
    assert told == [True, True, True, False]


def test_what_has_not_happened_yet_is_a_second_away_at_least() -> None:
    assert [seconds_until(time, 10_000) for time in (9_000, 10_000, 10_001, 11_001)] == [1, 1, 1, 2]


def test_the_time_limit_of_a_running_job_says_when_it_ends_at_the_latest() -> None:
    world = World(virtual_clusters=[VirtualCluster("default", 100, max_run_seconds=500)])
    world.submit(id="own", extras={"maxRunSeconds": 100})
    assert latest_end(world.core, world.job("own")) is None
    world.started(*world.refs("own"))
    launched = world.now
    assert latest_end(world.core, world.job("own")) == launched + 100_000
    world.started(*world.run(id="shared"))
    assert latest_end(world.core, world.job("shared")) == world.now + 500_000
    world.stop("own")
    assert latest_end(world.core, world.job("own")) is None


def test_the_gpus_that_a_task_holds_have_so_much_memory_together() -> None:
    node = make_node(gpus={"P100": 4})
    sizes = (16_384, 16_384, 32_768, None)
    gpus = tuple(replace(gpu, memory_mb=size) for gpu, size in zip(node.gpus, sizes, strict=True))
    world = World(replace(node, gpus=gpus))
    (two,) = world.run(make_role(gpus=2), id="two")
    (others,) = world.run(make_role(gpus=2), id="others")
    (none,) = world.run(make_role(), id="none")
    assert gpu_memory_mb(world.core, two) == 32_768
    assert gpu_memory_mb(world.core, others) is None, "of one it is not known"
    assert gpu_memory_mb(world.core, none) is None
    assert gpu_memory_mb(world.core, two._replace(attempt=1)) is None
    assert gpu_memory_mb(world.core, two._replace(job_id="gone")) is None
    world.exited(two)
    assert gpu_memory_mb(world.core, two) is None


def test_a_forecast_names_the_other_virtual_clusters_in_which_a_job_would_start_now() -> None:
    clusters = (
        VirtualCluster("default", 50),
        VirtualCluster("vision", 25, max_run_seconds=60),
        VirtualCluster("speech", 25),
    )
    world = World(make_node(gpus={"P100": 4}), virtual_clusters=clusters)
    world.run(make_role(gpus=2), id="runs")
    spec = make_spec(make_role(gpus=1), extras={"preemptible": False})
    answer = world.forecast("alice", spec, "default", "vision", "speech")
    assert (answer.fits, answer.starts_now_in) == ("later", ["vision", "speech"])
    assert world.forecast("alice", spec, "speech").starts_now_in == ["speech"]
    longer = make_spec(make_role(gpus=1), extras={"preemptible": False, "maxRunSeconds": 61})
    assert world.forecast("alice", longer, "vision", "speech").starts_now_in == ["speech"]
    two = make_spec(make_role(gpus=2), extras={"preemptible": False})
    assert world.forecast("alice", two, "vision", "speech").starts_now_in == []


def test_a_job_for_which_others_are_stopped_starts_soon() -> None:
    clusters = (VirtualCluster("default", 50), VirtualCluster("vision", 50))
    world = World(make_node(gpus={"P100": 2}), virtual_clusters=clusters)
    world.run(make_role(gpus=2), id="borrows")
    answer = world.forecast("alice", make_spec(make_role(gpus=1), virtualCluster="vision"))
    assert (answer.fits, answer.starts_within) == ("later", 10)
