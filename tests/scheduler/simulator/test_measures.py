"""What is told of a replay is what one gets by hand."""

from __future__ import annotations

import pytest

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.simulator.report import Times, allocations, document, measure, percentile
from tests.scheduler.simulator.traces import make_job, run

OVERTAKEN = [make_job("a", 0, 10, 2), make_job("b", 1, 10, 2, tasks=2), make_job("c", 2, 5, 2)]


def test_three_jobs_on_four_gpus_by_hand() -> None:
    # a 0–10 and c 2–7 on two GPUs each, then b 10–20 on all four
    found = measure(run(OVERTAKEN))
    assert found.all.completion == Times((10 + 19 + 5) / 3, 10.0, 19.0)
    assert found.all.queueing == Times(3.0, 0.0, 9.0)
    assert found.makespan == 20.0
    assert found.gpu_use == 100 * (2 * 10 + 2 * 5 + 4 * 10) / (4 * 20)
    assert found.waiting == 9 / 20
    # whenever b waited fewer than its four GPUs were free, those on a machine with nothing else
    assert (found.idle_while_waiting, found.fragmentation) == (0.0, 0.0)
    assert found.all.gpu_hours == pytest.approx((20 + 10 + 40) / 3600)


def test_gpus_that_are_kept_for_a_job_count_as_idle_while_others_wait() -> None:
    # two GPUs are kept for b from 2 to 10, which would do for c
    found = measure(run(OVERTAKEN, overtake_limit=0))
    assert found.makespan == 25.0
    assert found.idle_while_waiting == 100 * (2 * 8) / (4 * 25)
    assert found.all.completion.mean == pytest.approx((10 + 19 + 23) / 3)


def test_free_gpus_on_machines_partly_in_use_are_fragmentation() -> None:
    jobs = [make_job("x", 0, 20, 1, cpus=5), make_job("y", 0, 10, 1, cpus=5), make_job("w", 5, 5, 2)]
    found = measure(run(jobs))
    assert found.fragmentation == 100.0
    # x 0–20 and y 0–10 on different machines, w 10–15
    assert found.idle_while_waiting == 100 * (2 * 5) / (4 * 20)


def test_what_ran_in_vain_is_told() -> None:
    clusters = [VirtualCluster("default", 50.0), VirtualCluster("other", 50.0)]
    jobs = [make_job("s", 0, 100, 2), make_job("b", 5, 100, 2), make_job("r", 15, 10, 2, vc="other")]
    found = measure(run(jobs, clusters=clusters))
    assert (found.all.preemptions, found.all.lost_gpu_hours) == (1, pytest.approx(2 * 10 / 3600))
    assert {name: one.jobs for name, one in found.virtual_clusters.items()} == {"default": 2, "other": 1}
    assert found.virtual_clusters["other"].completion.mean == 10.0


def test_jobs_that_never_started_are_named_and_not_counted_in_times() -> None:
    found = measure(run([make_job(f"large{i}", 0, 1, 3) for i in range(12)] + [make_job("small", 0, 7)]))
    assert (found.never_started_count, len(found.never_started)) == (12, 10)
    assert (found.all.jobs, found.all.ended, found.all.completion.mean) == (13, 1, 7.0)


def test_a_percentile_is_the_smallest_value_that_so_many_do_not_exceed() -> None:
    assert percentile([1000, 2000, 3000, 4000], 50) == 2.0
    assert percentile([1000 * n for n in range(1, 101)], 99) == 99.0
    assert percentile([1000 * n for n in range(1, 201)], 99) == 198.0
    assert percentile([5000], 99) == 5.0


def test_nothing_has_no_times() -> None:
    assert Times.of([]) == Times(0.0, 0.0, 0.0)


def test_the_document_of_a_replay_names_every_number() -> None:
    found = document(measure(run(OVERTAKEN)))
    assert found["completionSeconds"] == {"mean": 11.333, "median": 10.0, "p99": 19.0}
    assert (found["gpuUsePercent"], found["makespanSeconds"], found["neverStarted"]) == (87.5, 20.0, 0)


def test_allocation_is_what_was_taken_when_so_much_had_been_asked_for() -> None:
    # 4 GPUs: asked for 2, 3, 5, 6; of these the third finds no two GPUs on one machine
    jobs = [make_job("a", 0, 1, 2), make_job("b", 1, 1, 1), make_job("c", 2, 1, 2), make_job("d", 3, 1, 1)]
    found = allocations(run(jobs, ends=False), (50, 75, 100, 150, 200))
    assert found == {50: 50.0, 75: 75.0, 100: 75.0, 150: 100.0}
