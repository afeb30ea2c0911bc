"""Jobs that are put in line together at a start stand as if they had come one by one."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining, VirtualCluster
from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core import recovery
from pai_scheduler.core.events import Tick
from pai_scheduler.core.instructions import LaunchAttempt, Outcome
from pai_scheduler.core.model import Job, SubState
from pai_scheduler.core.recovery import Lineup
from pai_scheduler.core.state_machine import Core
from pai_scheduler.job.spec import renamed
from tests.scheduler.making import make_node, make_role, make_spec
from tests.testbed.properties import examples

CLUSTERS = (
    VirtualCluster("plain", 25),
    VirtualCluster("limited", 25, gpus_per_user=2, default_run_seconds=60),
    VirtualCluster("shorter", 25, shorter_first=2),
    VirtualCluster("fair", 25, fair_share_hours=1),
    VirtualCluster("level", 0, least_attained=LeastAttained((1.0,))),
    VirtualCluster("least", 0, shortest_remaining=ShortestRemaining()),
)
#: jobs that were submitted from the same document share all of it but the name
DOCUMENTS = [
    make_spec(make_role(gpus=gpus, tasks=tasks), virtualCluster=cluster.name, extras=extras)
    for cluster in CLUSTERS
    for gpus, tasks, extras in ((1, 1, {}), (2, 2, {"priority": 70}), (0, 1, {"maxRunSeconds": 30}))
]
JOBS = st.lists(
    st.tuples(
        st.sampled_from(DOCUMENTS),
        st.sampled_from(["alice", "bob"]),
        st.none() | st.integers(60, 62),
        st.integers(0, 6),
        st.booleans(),
    ),
    max_size=12,
)


def _core() -> Core:
    return Core(Cluster([make_node(cpus=4, gpus={"A100": 2})]), virtual_clusters=CLUSTERS)


def _state(core: Core, jobs: list[Job]) -> list[Any]:
    """Return what there is to know of the queue."""
    queue = core.queue
    return [
        [(cluster.name, list(queue.in_order(cluster.name))) for cluster in CLUSTERS],
        [(queue.sort_key(job.id), queue.queue_position(job.id), queue.overtaken(job.id)) for job in jobs],
        [(queue.shape(job.id), queue.line(job.id).members, queue.line(job.id).user) for job in jobs],
        [(core.state.whose(job.id), job.policy_key, job.sub_state) for job in jobs],
    ]


def _restored(jobs: list[Job], *, together: bool) -> tuple[Core, Outcome]:
    core = _core()
    if together:
        return core, core.restore(jobs)
    added, Lineup.add = Lineup.add, lambda self, job: False  # type: ignore[method-assign] # noqa: ARG005
    try:
        return core, core.restore(jobs)
    finally:
        Lineup.add = added  # type: ignore[method-assign]


@given(JOBS, st.permutations(range(12)), st.sampled_from([1, 4096]))
@settings(max_examples=examples(200))
def test_they_stand_as_if_each_had_come_by_itself(
    found: list[tuple[Any, str, int | None, int, bool]], orders: list[int], most: int
) -> None:
    def made() -> list[Job]:
        return [
            Job(
                f"j{number}",
                user,
                renamed(spec, f"name-{number}"),
                1000 + number,
                orders[number],
                priority,
                overtaken=overtaken,
                # (what is to be tried again does not wait for its first attempt)
                sub_state=SubState.RETRY_WAIT if again else SubState.QUEUED,
                not_before=500 if again else None,
            )
            for number, (spec, user, priority, overtaken, again) in enumerate(found)
        ]

    lineup_most, recovery._MOST = recovery._MOST, most
    try:
        jobs, others = made(), made()
        (one, outcome), (other, expected) = _restored(jobs, together=True), _restored(others, together=False)
    finally:
        recovery._MOST = lineup_most
    waiting = [job for job in jobs if job.id in one.queue]
    assert [job.id in other.queue for job in others] == [job.id in one.queue for job in jobs]
    assert _state(one, waiting) == _state(other, [job for job in others if job.id in other.queue])
    assert (outcome.jobs, outcome.instructions) == (expected.jobs, expected.instructions)
    for core, told in ((one, outcome), (other, expected)):
        core.handle(Tick(2_000_000), told)
    assert outcome.instructions == expected.instructions
    assert outcome.tasks == expected.tasks


def test_what_is_in_line_already_is_not_written_again() -> None:
    core = _core()
    outcome = core.restore([Job("j", "alice", make_spec(virtualCluster="plain"), 1, 1)])
    assert outcome.jobs == {}
    core.handle(Tick(2), outcome)
    assert [type(one) for one in outcome.instructions if isinstance(one, LaunchAttempt)] == [LaunchAttempt]
