"""A replay does with recorded jobs what the scheduler does, at the times that follow from theirs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.simulator.traces import TraceJob, TraceRole
from tests.scheduler.making import make_node
from tests.scheduler.simulator.traces import fared, make_job, run, seconds

TWO_SHARES = [VirtualCluster("default", 50.0), VirtualCluster("other", 50.0)]


def test_a_job_that_fits_overtakes_one_that_does_not() -> None:
    result = run([make_job("a", 0, 10, 2), make_job("b", 1, 10, 2, tasks=2), make_job("c", 2, 5, 2)])
    assert seconds(result) == {"a": (0, 10), "b": (10, 20), "c": (2, 7)}


def test_a_job_that_may_not_be_overtaken_keeps_what_it_needs() -> None:
    jobs = [make_job("a", 0, 10, 2), make_job("b", 1, 10, 2, tasks=2), make_job("c", 2, 5, 2)]
    assert seconds(run(jobs, overtake_limit=0)) == {"a": (0, 10), "b": (10, 20), "c": (20, 25)}


def test_all_tasks_of_a_job_that_end_at_one_moment_leave_what_they_held_together() -> None:
    jobs = [
        make_job("first", 0, 10, 2, tasks=2),
        make_job("large", 1, 10, 2, tasks=2),
        make_job("small", 2, 100, 1),
    ]
    assert seconds(run(jobs)) == {"first": (0, 10), "large": (10, 20), "small": (20, 120)}


def test_jobs_of_one_moment_are_all_known_before_one_starts() -> None:
    jobs = [make_job("low", 5, 10, 2, tasks=2, priority=1), make_job("high", 5, 10, 2, tasks=2, priority=9)]
    assert seconds(run(jobs)) == {"high": (5, 15), "low": (15, 25)}


def test_what_ends_as_a_job_comes_is_free_for_it() -> None:
    jobs = [make_job("a", 0, 10, 2, tasks=2), make_job("b", 10, 1, 2, tasks=2)]
    assert seconds(run(jobs)) == {"a": (0, 10), "b": (10, 11)}


def test_a_job_stopped_for_another_share_begins_anew() -> None:
    jobs = [
        make_job("stays", 0, 100, 2),
        make_job("borrows", 5, 100, 2),
        make_job("by right", 15, 10, 2, vc="other"),
    ]
    result = run(jobs, clusters=TWO_SHARES)
    assert seconds(result) == {"stays": (0, 100), "by right": (15, 25), "borrows": (25, 125)}
    stopped = fared(result)["borrows"]
    assert (stopped.preemptions, stopped.lost_ms, stopped.first_started) == (1, 10_000, 5_000)


def test_a_job_stopped_for_another_keeps_its_place_for_its_grace() -> None:
    jobs = [
        make_job("stays", 0, 100, 2),
        replace(make_job("borrows", 5, 100, 2), grace_seconds=4),
        make_job("by right", 15, 10, 2, vc="other"),
    ]
    result = run(jobs, clusters=TWO_SHARES)
    assert seconds(result) == {"stays": (0, 100), "by right": (19, 29), "borrows": (29, 129)}
    assert fared(result)["borrows"].lost_ms == 14_000


def test_a_job_that_would_end_within_its_grace_keeps_its_place_no_longer() -> None:
    jobs = [
        make_job("stays", 0, 100, 2),
        replace(make_job("borrows", 5, 12, 2), grace_seconds=60),
        make_job("by right", 15, 10, 2, vc="other"),
    ]
    assert seconds(run(jobs, clusters=TWO_SHARES))["by right"] == (17, 27)


def test_with_checkpoints_only_the_grace_is_lost() -> None:
    jobs = [
        make_job("stays", 0, 100, 2),
        replace(make_job("borrows", 5, 100, 2), grace_seconds=4),
        make_job("by right", 15, 10, 2, vc="other"),
    ]
    result = run(jobs, clusters=TWO_SHARES, checkpoints=True)
    assert seconds(result)["borrows"] == (29, 119)
    assert fared(result)["borrows"].lost_ms == 4_000


def test_a_job_ends_at_its_time_limit() -> None:
    result = run([make_job("long", 0, 100, 1, most=30), make_job("short", 0, 10, 1, most=30)])
    assert seconds(result) == {"long": (0, 30), "short": (0, 10)}
    assert {name: one.succeeded for name, one in fared(result).items()} == {"long": False, "short": True}


def test_a_virtual_clusters_own_time_limit_counts() -> None:
    clusters = [VirtualCluster("default", 100.0, default_run_seconds=20, max_run_seconds=40)]
    result = run([make_job("silent", 0, 100), make_job("greedy", 0, 100, most=90)], clusters=clusters)
    assert seconds(result) == {"silent": (0, 20), "greedy": (0, 40)}


def test_a_job_that_never_fits_is_left_waiting() -> None:
    result = run([make_job("large", 0, 1, 3), make_job("small", 1, 1)])
    assert seconds(result) == {"small": (1, 2)}
    assert fared(result)["large"].started is None


def test_jobs_that_take_no_time_end_when_they_start() -> None:
    assert seconds(run([make_job("a", 3, 0), make_job("b", 3, 0, 2, tasks=2)])) == {"a": (3, 3), "b": (3, 3)}


def test_roles_of_one_job_start_together() -> None:
    job = TraceJob("mixed", "alice", "default", 0, 1000, (TraceRole(1, 0, 4), TraceRole(2, 2, 1)))
    assert seconds(run([make_job("before", 0, 5), job])) == {"before": (0, 5), "mixed": (5, 6)}


def test_without_ends_nothing_is_given_back() -> None:
    result = run([make_job("a", 0, 1, 2), make_job("b", 5, 1, 2), make_job("c", 9, 1)], ends=False)
    assert [one.started for one in result.jobs] == [0, 5000, None]
    assert not seconds(result)


@pytest.mark.parametrize("seed", range(30))
def test_nothing_is_given_twice_and_everything_that_fits_ends(seed: int) -> None:
    dice = random.Random(seed)  # noqa: S311 - the same workload every time
    nodes = [
        make_node(f"n{i}", cpus=8, memory_mb=1000, gpus={dice.choice("xy"): dice.randint(1, 4)})
        for i in range(dice.randint(2, 5))
    ]
    clusters = [VirtualCluster("default", 40.0), VirtualCluster("other", 30.0, 80.0)]
    jobs = [
        make_job(
            f"j{number}",
            dice.randint(0, 300),
            dice.randint(0, 60),
            dice.randint(0, 4),
            tasks=dice.choice((1, 1, 1, 2, 3)),
            vc=dice.choice(("default", "other")),
            cpus=dice.randint(0, 3),
            memory_mb=dice.randint(0, 300),
            gpu_type=dice.choice((None, None, "x", "y")),
            priority=dice.choice((None, 10, 90)),
            most=dice.choice((None, None, 20)),
            preemptible=dice.random() < 0.8,
        )
        for number in range(150)
    ]
    result = run(jobs, nodes, clusters, overtake_limit=dice.choice((0, 3, 20)))
    ended = 0
    for one in result.jobs:
        assert (one.started is None) == (one.ended is None)
        if one.started is not None and one.ended is not None:
            ended += 1
            most = one.job.max_run_seconds
            run_ms = one.job.run_ms if most is None else min(one.job.run_ms, 1000 * most)
            assert one.job.submitted <= one.started == one.ended - run_ms
    waiting = [one.job for one in result.jobs if one.started is None]
    # what is left waiting does not fit by itself either
    for job in waiting:
        assert not seconds(run([job], nodes, clusters))
    assert ended > 20
