from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from pai_scheduler.cluster import start_estimate
from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.resources import Demand
from pai_scheduler.cluster.sort_key import SortKey
from pai_scheduler.cluster.start_estimate import estimate_start, those_ahead
from tests.scheduler.cluster.harness import Harness, gpu, gpu_node, on
from tests.scheduler.making import make_demand

ALL = (VirtualCluster("x", 100),)
LAST = 1 << 62


def estimated(
    harness: Harness,
    *gang: Demand,
    limits: Mapping[str, int] | None = None,
    vc: str = "x",
    user: str = "alice",
    preemptible: bool = True,
    priority: int = 0,
) -> int | None:
    """Return in how many ms a job would start; `limits`: those of the waiting jobs. Nothing is changed."""
    before = harness.scheduler_state()
    state = harness.state
    shape = state.shape(user, vc, gang, preemptible)
    start = estimate_start(
        state,
        user,
        vc,
        shape,
        those_ahead(state, vc, SortKey(-priority, 0, LAST)),
        harness.now,
        (limits or {}).get,
    )
    assert harness.scheduler_state() == before
    return None if start is None else start - harness.now


def estimated_of(harness: Harness, job_id: str, limits: Mapping[str, int] | None = None) -> int | None:
    """Return in how many ms a job would start that is in line. Nothing is changed."""
    before = harness.scheduler_state()
    state = harness.state
    user, vc = state.whose(job_id)
    shape, ahead = state.queue.shape(job_id), those_ahead(state, vc, state.queue.sort_key(job_id))
    start = estimate_start(state, user, vc, shape, ahead, harness.now, (limits or {}).get, job_id)
    assert harness.scheduler_state() == before
    return None if start is None else start - harness.now


def held_until(harness: Harness, job_id: str, after: int | None, *gpus: int, vc: str = "x") -> None:
    harness.hold(job_id, (gpu(len(gpus)), on("a", *gpus)), vc=vc)
    harness.state.expect(job_id, None if after is None else harness.now + after)


def test_who_would_be_next_starts_when_enough_jobs_have_reached_their_time_limit() -> None:
    harness = Harness(clusters=ALL)
    held_until(harness, "long", 9000, 0, 1)
    held_until(harness, "short", 2000, 2, 3)
    assert estimated(harness, gpu(2)) == 2000
    assert estimated(harness, gpu(3)) == 8999  # a millisecond has passed since `long` began
    assert estimated(harness, make_demand()) == 0


def test_a_job_without_a_limit_is_taken_to_run_for_ever() -> None:
    harness = Harness(clusters=ALL)
    held_until(harness, "forever", None, 0, 1)
    held_until(harness, "short", 2000, 2, 3)
    assert estimated(harness, gpu(2)) == 2000
    assert estimated(harness, gpu(3)) is None


def test_those_before_run_their_time_first() -> None:
    harness = Harness(clusters=ALL)
    held_until(harness, "runs", 1000, 0, 1, 2, 3)
    harness.wait("first", gpu(4))
    harness.wait("second", gpu(4))
    begin = 1000 - 2  # each look at the queue was a millisecond
    limits = {"first": 5000, "second": 7000}
    assert estimated(harness, gpu(1), limits=limits) == begin + 5000 + 7000
    assert estimated(harness, gpu(1), limits={"first": 5000}) is None
    assert estimated(harness, gpu(1), limits=limits, priority=9) == begin


def test_a_job_in_line_is_told_as_if_it_came_now_and_those_behind_it_do_not_count() -> None:
    harness = Harness(clusters=ALL)
    held_until(harness, "runs", 1000, 0, 1, 2, 3)
    harness.wait("first", gpu(4))
    harness.wait("second", gpu(4))
    limits = {"first": 5000, "second": 7000}
    begin = 1000 - 2  # each look at the queue was a millisecond
    assert estimated_of(harness, "first", limits) == begin
    assert estimated_of(harness, "second", limits) == begin + 5000
    assert estimated_of(harness, "second") is None


def test_of_other_virtual_clusters_only_those_come_first_that_were_submitted_before() -> None:
    harness = Harness()
    held_until(harness, "runs", 1000, 0, 1)
    held_until(harness, "others", 1000, 2, 3, vc="y")
    harness.wait("before", gpu(4), vc="y")
    harness.wait("asked", gpu(4))
    harness.wait("after", gpu(4), vc="y")
    begin = 1000 - 3
    assert estimated_of(harness, "before", {}) == begin
    assert estimated_of(harness, "asked", {"before": 3000}) == begin + 3000
    assert estimated_of(harness, "after", {"before": 3000, "asked": 4000}) == begin + 7000


def test_what_is_kept_for_a_job_in_line_lets_it_start_itself() -> None:
    harness = Harness(clusters=ALL, limit=0)
    held_until(harness, "runs", 1000, 0, 1)
    harness.wait("large", gpu(4))
    assert harness.reserved() == ["large"]
    assert estimated_of(harness, "large") == 999


def test_a_small_job_starts_beside_a_large_one_that_waits() -> None:
    harness = Harness(clusters=ALL)
    held_until(harness, "half", None, 0, 1)
    held_until(harness, "short", 1000, 2, 3)
    harness.wait("large", gpu(4))
    harness.wait("small", gpu(2))
    # the large one cannot start before the half is free, of which nobody knows when
    assert estimated(harness, gpu(1), limits={"small": 3000}) == 998 + 3000


def test_jobs_of_other_virtual_clusters_that_were_submitted_before_come_first() -> None:
    harness = Harness()
    held_until(harness, "runs", 1000, 0, 1)
    held_until(harness, "others", 1000, 2, 3, vc="y")
    harness.wait("waits", gpu(2), vc="y")
    assert estimated(harness, gpu(4), limits={"waits": 4000}) == 998 + 4000


def test_who_may_not_borrow_waits_for_the_own_share() -> None:
    harness = Harness()
    held_until(harness, "runs", 5000, 0, 1)
    assert estimated(harness, gpu(1)) == 0
    assert estimated(harness, gpu(1), preemptible=False) == 5000


def test_a_users_quota_counts() -> None:
    harness = Harness(clusters=[VirtualCluster("x", 100, gpus_per_user=2)])
    held_until(harness, "mine", 5000, 0, 1)
    assert estimated(harness, gpu(1)) == 5000
    assert estimated(harness, gpu(1), user="bob") == 0


def test_a_job_that_is_being_stopped_is_gone_when_its_grace_is_over() -> None:
    harness = Harness(clusters=ALL)
    harness.hold("ending", (gpu(4), on("a", 0, 1, 2, 3)), ending=True)
    harness.state.ending("ending", harness.now + 300_000)
    assert estimated(harness, gpu(1)) == 300_000


def test_what_is_kept_for_a_job_is_its_own_when_it_is_its_turn() -> None:
    harness = Harness(clusters=ALL, limit=0)
    held_until(harness, "runs", 1000, 0, 1)
    harness.wait("large", gpu(4))
    assert harness.reserved() == ["large"]
    assert estimated(harness, gpu(2), limits={"large": 6000}) == 999 + 6000


def test_a_long_queue_gets_no_number(monkeypatch: pytest.MonkeyPatch) -> None:
    harness = Harness(clusters=ALL)
    held_until(harness, "runs", 1000, 0, 1, 2, 3)
    for number in range(4):
        harness.wait(f"w{number}", gpu(1 + number % 4))
    limits = {f"w{number}": 1000 for number in range(4)}
    assert estimated(harness, gpu(1), limits=limits) is not None
    monkeypatch.setattr(start_estimate, "MOST_AHEAD", 3)
    assert estimated(harness, gpu(1), limits=limits) is None
    monkeypatch.setattr(start_estimate, "MOST_AHEAD", 100)
    monkeypatch.setattr(start_estimate, "MOST_LOOKS", 5)
    assert estimated(harness, gpu(1), limits=limits) is None


@pytest.mark.parametrize("seed", range(40))
def test_an_estimate_is_what_happens_when_nobody_else_comes(seed: int) -> None:
    """Random queues are played on the real dispatcher, each job ending at its limit and none for another."""
    rng = random.Random(seed)  # noqa: S311 (the same every time)
    harness = Harness(gpu_node("a"), gpu_node("b"), limit=1000)
    limits = {f"j{number}": rng.randrange(1, 9) * 10_000 for number in range(rng.randrange(2, 12))}
    for job_id in limits:
        harness.queue(job_id, gpu(rng.choice((1, 2, 4))), vc=rng.choice("xy"), preemptible=False)
    ends: dict[str, int] = {}

    def decide(now: int) -> None:
        harness.now = now - 1
        for said in harness.decide():
            job_id = said.removeprefix("+")
            ends[job_id] = now + limits[job_id]
            harness.state.expect(job_id, ends[job_id])

    decide(now := 1000)
    promised = estimated(harness, gpu(2), limits=limits, vc="y", preemptible=False)
    limits["mine"] = 1
    harness.queue("mine", gpu(2), vc="y", preemptible=False)
    decide(now)
    if "mine" not in ends:
        harness.now = now
        assert estimated_of(harness, "mine", limits) == promised
    while "mine" not in ends:
        now = min(ends.values())
        for job_id in [job_id for job_id, end in ends.items() if end == now]:
            del ends[job_id]
            for place in list(harness.state.holdings[job_id].tasks):
                harness.state.release(job_id, place)
        decide(now)
    assert promised == now - 1000


@pytest.mark.parametrize("seed", range(40))
def test_an_estimate_with_reservations_and_borrowing_leaves_everything_as_it_was(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 (the same every time)
    harness = Harness(gpu_node("a"), gpu_node("b"), limit=0)
    for number in range(14):
        job_id = f"j{number}"
        preemptible = rng.random() < 0.5
        harness.wait(job_id, gpu(rng.choice((1, 2, 4))), vc=rng.choice("xy"), preemptible=preemptible)
        if job_id in harness.state.holdings:
            harness.state.expect(job_id, harness.now + rng.randrange(1, 9) * 1000)
    limits = {f"j{number}": rng.randrange(1, 9) * 1000 for number in range(14)}
    kept = {one.job_id: {**one.kept} for one in harness.state.reservations}
    assert kept, "there are reservations"
    # (`estimated` compares what is booked before and after)
    assert estimated(harness, gpu(2), limits=limits, preemptible=False) is not None
    assert {one.job_id: {**one.kept} for one in harness.state.reservations} == kept
    assert not any(one.suspended for one in harness.state.reservations)
