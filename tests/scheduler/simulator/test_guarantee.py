"""Who stays within the guaranteed share waits no longer than alone on machines of that size.

So HiveD puts it (Zhao et al., OSDI 2020). It holds here for jobs of one task, where every free GPU suits it
or all tasks take whole machines. Shares are amounts: where small tasks of others, within their own share,
sit on all machines, a task that wants more on one machine waits, though its share is free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.node import Node
from pai_scheduler.simulator.traces import TraceJob
from tests.scheduler.making import make_node
from tests.scheduler.simulator.traces import fared, make_job, run, seconds
from tests.testbed.properties import examples

#: Machines of the whole cluster, of the share, and GPUs of each.
MACHINES, MINE, GPUS = 4, 2, 2
SHARE = 100.0 * MINE / MACHINES

ALONE = [VirtualCluster("mine", 100.0), VirtualCluster("default", 0.0)]
SHARED = [VirtualCluster("mine", SHARE, SHARE), VirtualCluster("default", 100.0 - SHARE, 100.0)]


def machines(count: int) -> list[Node]:
    return [make_node(f"n{number}", gpus={"t": GPUS}) for number in range(count)]


def some_jobs(vc: str, gpus: int) -> st.SearchStrategy[list[TraceJob]]:
    """Make jobs of a virtual cluster, each task of which takes so many GPUs of a machine."""
    one = st.builds(
        make_job,
        st.just("j"),
        st.integers(0, 60),
        st.integers(1, 40),
        st.just(gpus),
        vc=st.just(vc),
        priority=st.sampled_from((None, 10, 90)),
        most=st.sampled_from((None, None, 20)),
        preemptible=st.booleans(),
    )
    # (a job that comes later has a later name: where two come at once, the order is the same in both worlds)
    return st.lists(one, max_size=14).map(
        lambda jobs: [
            replace(job, name=f"{vc}-{number}")
            for number, job in enumerate(sorted(jobs, key=lambda j: j.submitted))
        ]
    )


def starts(
    jobs: Sequence[TraceJob], count: int, clusters: Sequence[VirtualCluster], limit: int
) -> dict[str, int]:
    """Return when those who have a guarantee got what they ran on, in ms."""
    result = run(jobs, machines(count), clusters, overtake_limit=limit)
    found = {name: one for name, one in fared(result).items() if one.job.virtual_cluster == "mine"}
    assert all(one.preemptions == 0 for one in found.values()), "who is within the guarantee was stopped"
    return {name: -1 if one.first_started is None else one.first_started for name, one in found.items()}


@pytest.mark.parametrize(("mine", "others"), [(1, 1), (1, GPUS), (GPUS, GPUS)])
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_who_stays_within_the_guarantee_starts_no_later_than_alone(
    data: st.DataObject, mine: int, others: int
) -> None:
    # (so few jobs are never overtaken so often that something is kept for one)
    limit = 20
    jobs = data.draw(some_jobs("mine", mine))
    beside = data.draw(some_jobs("default", others))
    alone = starts(jobs, MINE, ALONE, limit)
    together = starts([*jobs, *beside], MACHINES, SHARED, limit)
    assert min(alone.values(), default=0) >= 0
    later = {name: (together[name], time) for name, time in alone.items() if not 0 <= together[name] <= time}
    assert not later, "started later than alone (ms, together and alone)"


def test_small_tasks_of_others_on_all_machines_keep_a_task_waiting_that_wants_one_machine() -> None:
    clusters = [VirtualCluster("mine", 50.0, 50.0), VirtualCluster("default", 50.0, 100.0)]
    others = [make_job(f"o{number}", 0, 10 if number % 2 else 100, 1, vc="default") for number in range(4)]
    mine = make_job("whole machine", 20, 5, 2, vc="mine")
    # what the others hold by then is their own share: one GPU on each of two machines
    assert seconds(run([*others, mine], machines(2), clusters))["whole machine"] == (100, 105)
    # as two tasks of one GPU each it has room at once
    parts = make_job("parts", 20, 5, 1, tasks=2, vc="mine")
    assert seconds(run([*others, parts], machines(2), clusters))["parts"] == (20, 25)
