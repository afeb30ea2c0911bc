"""Turns by the service that jobs have had or still need, and when they change."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import LeastAttained, ShortestRemaining
from pai_scheduler.cluster.sort_key import level_of
from pai_scheduler.core.queue_policies import (
    GPU_HOUR,
    PROMOTED_RUN_MS,
    AttainedService,
    changes_in,
    promoted,
    rate_of,
    service_key,
    stops_below,
)
from tests.scheduler.core.world import World, make_node, make_role

LEVELS = LeastAttained((1.0, 10.0))
REMAINING = ShortestRemaining(run_seconds=600)
HOUR = 3_600_000
SERVICES = st.builds(
    AttainedService,
    had=st.integers(0, 200 * GPU_HOUR),
    uncounted=st.integers(0, 20 * GPU_HOUR),
    needed=st.integers(0, 200 * GPU_HOUR),
    rate=st.integers(1, 64),
)


def test_a_gpu_counts_for_eight_cores_and_each_task_for_itself() -> None:
    def rate(**fields: Any) -> int:
        world = World(make_node(cpus=64, memory_mb=10**6, gpus={"P100": 8}))
        world.run(make_role(**fields))
        return rate_of(world.core.jobs["j"].spec, 0)

    assert (rate(gpus=1), rate(gpus=2)) == (8, 16)
    assert rate(gpus=0, cpus=4) == 4


def test_levels_go_by_what_was_had_and_the_rest_by_what_is_needed() -> None:
    half = AttainedService(had=GPU_HOUR // 2, uncounted=0, needed=20 * GPU_HOUR, rate=8)
    assert [level_of(service_key(LEVELS, half._replace(had=had * GPU_HOUR))) for had in (0, 1, 9, 10)] == [
        0,
        1,
        1,
        2,
    ]
    assert service_key(REMAINING, half) == 19.5 * GPU_HOUR
    assert service_key(REMAINING, half._replace(had=30 * GPU_HOUR)) == 0


def test_a_job_of_many_gpus_goes_up_sooner_and_comes_later_within_its_level() -> None:
    one = AttainedService(had=0, uncounted=0, needed=20 * GPU_HOUR, rate=8)
    many = one._replace(rate=16 * 8)
    assert service_key(LEVELS, one) < service_key(LEVELS, many)
    assert level_of(service_key(LEVELS, many)) == 0
    assert changes_in(LEVELS, one) == HOUR
    assert changes_in(LEVELS, many) == HOUR // 16 // 4
    half = many._replace(had=GPU_HOUR // 4)
    assert level_of(service_key(LEVELS, half)) == 1
    assert service_key(LEVELS, one._replace(had=GPU_HOUR)) < service_key(LEVELS, half)


def test_within_a_level_a_job_is_stopped_for_one_of_half_its_gpus_and_for_none_of_as_many() -> None:
    many = AttainedService(had=0, uncounted=0, needed=20 * GPU_HOUR, rate=12 * 8)
    below = stops_below(LEVELS, many)
    assert below is not None
    assert service_key(LEVELS, many._replace(rate=6 * 8)) < below
    assert service_key(LEVELS, many._replace(rate=8 * 8)) >= below
    assert service_key(LEVELS, many._replace(rate=16 * 8)) >= below


@given(SERVICES, SERVICES)
def test_of_two_jobs_one_at_most_stops_the_other(one: AttainedService, other: AttainedService) -> None:
    stops = [
        below is not None and service_key(LEVELS, waits) < below
        for waits, runs in ((one, other), (other, one))
        for below in [stops_below(LEVELS, runs)]
    ]
    assert not all(stops)


@pytest.mark.parametrize("policy", [LEVELS, REMAINING])
def test_who_waited_for_long_comes_first_until_it_has_had_an_hour_more(
    policy: LeastAttained | ShortestRemaining,
) -> None:
    service = AttainedService(had=11 * GPU_HOUR, uncounted=0, needed=20 * GPU_HOUR, rate=8)
    first = service._replace(uncounted=promoted(service))
    assert service_key(policy, first) == 0
    assert not stops_below(policy, first)
    assert changes_in(policy, first) == PROMOTED_RUN_MS
    later = service._replace(had=first.had + 8 * PROMOTED_RUN_MS)
    assert service_key(policy, first._replace(had=later.had)) == service_key(policy, later) > 0


def test_who_is_nearly_done_is_stopped_for_nobody() -> None:
    left = AttainedService(had=0, uncounted=0, needed=8 * 600_000, rate=8)
    assert stops_below(REMAINING, left) is None
    assert stops_below(REMAINING, left._replace(needed=left.needed + 1)) is not None


@given(SERVICES)
def test_a_job_is_stopped_only_for_one_that_needs_less_and_for_each_that_needs_a_quarter_less(
    service: AttainedService,
) -> None:
    below = stops_below(REMAINING, service)
    if below is not None:
        assert 0.75 * service.remaining <= below <= service.remaining


def test_a_job_that_is_about_to_be_nearly_done_tells_when_that_is() -> None:
    nearly = 1000 * REMAINING.run_seconds * 56
    service = AttainedService(had=0, uncounted=0, needed=nearly + 57, rate=56)
    assert stops_below(REMAINING, service) is not None
    assert changes_in(REMAINING, service) == 2
    assert stops_below(REMAINING, service._replace(had=2 * 56)) is None


@given(SERVICES, st.sampled_from([LEVELS, REMAINING]))
def test_until_the_moment_that_is_told_nothing_changes(
    service: AttainedService, policy: LeastAttained | ShortestRemaining
) -> None:
    now, coming = stops_below(policy, service), changes_in(policy, service)
    if coming is None:
        assert stops_below(policy, service._replace(had=service.had + 10**12)) == now
        return
    assert coming > 0
    for run_ms in (coming // 2, coming - 1):
        assert stops_below(policy, service._replace(had=service.had + service.rate * run_ms)) == now
