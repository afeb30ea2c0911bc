"""Nobody starves where some jobs stop others, however long the cluster is overloaded."""

from __future__ import annotations

from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.core.model import Attempt, Task
from pai_scheduler.core.state_machine import CoreSettings
from pai_scheduler.simulator.simulation import replay
from tests.scheduler.making import make_node
from tests.scheduler.simulator.traces import make_job
from tests.testbed.properties import examples

HOUR = 3_600_000
GPUS, PROMOTE_HOURS = 4, 12
POLICIES = [
    VirtualCluster("default", 100, least_attained=LeastAttained((1.0, 4.0, 16.0), 600, PROMOTE_HOURS)),
    VirtualCluster("default", 100, shortest_remaining=ShortestRemaining(600, PROMOTE_HOURS)),
]
#: hours that long jobs run for, and their GPUs
LONG = st.lists(st.tuples(st.integers(20, 60), st.sampled_from([1, 2, 4])), min_size=1, max_size=4)


@pytest.mark.parametrize("cluster", POLICIES, ids=["leastAttained", "shortestRemaining"])
@settings(max_examples=examples(10, least=3), deadline=None)
@given(long=LONG, every_minutes=st.integers(10, 20))
def test_no_wait_is_longer_than_the_promotions_before_it_take(
    cluster: VirtualCluster, long: list[tuple[int, int]], every_minutes: int
) -> None:
    # a GPU hour each 10 to 20 minutes, for four GPUs: who needs or has had more gets nothing by right
    jobs = [make_job(f"short-{n}", n * 60 * every_minutes, 3600, most=3601) for n in range(500)]
    jobs += [
        make_job(f"long-{n}", 3600, 3600 * hours, gpus, most=3600 * hours + 1)
        for n, (hours, gpus) in enumerate(long)
    ]
    ordered = sorted(jobs, key=lambda job: job.submitted)
    waits: dict[str, list[tuple[int, int]]] = defaultdict(list)
    since = {f"{number:x}": job.submitted for number, job in enumerate(ordered, 1)}

    def observe(time: int, what: Attempt | Task) -> None:
        if isinstance(what, Attempt):
            job_id = next(iter(what.tasks.values())).ref.job_id
            waits[job_id].append((since[job_id], time))
        else:
            since[what.ref.job_id] = time

    node = make_node(gpus={"t": GPUS})
    result = replay(jobs, [node], [cluster], CoreSettings(grace_seconds=0), checkpoints=True, observe=observe)
    assert all(one.succeeded for one in result.jobs)
    for begin, end in (wait for found in waits.values() for wait in found):
        ahead = [one.job for one in result.jobs if one.job.submitted <= begin < (one.ended or 0)]
        pauses = sum(10 * HOUR * job.gpus // GPUS for job in ahead)
        # (besides the pause after who was promoted just before, and the hour that others have undisturbed)
        assert end - begin <= (PROMOTE_HOURS + 10 + 3) * HOUR + pauses
