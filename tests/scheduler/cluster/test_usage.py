"""What users have used lately: halved in time, and the order that follows from it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pai_scheduler.cluster.definition import VirtualCluster
from pai_scheduler.cluster.fair_share import (
    CORES_PER_GPU,
    DecayedUsage,
    Sharer,
    UsageAccounting,
    UserShare,
    weight,
)
from tests.scheduler.making import make_demand

HOUR = 3_600_000
FAIR = [VirtualCluster("vc", 100, fair_share_hours=2)]
ALICE, BOB = ("vc", "alice"), ("vc", "bob")


def used(*parts: tuple[tuple[str, str], int, int, int]) -> UsageAccounting:
    """Each part: whose, how many GPUs, from when to when."""
    usage = UsageAccounting(FAIR)
    changes = [(begin, who, gpus) for who, gpus, begin, _ in parts]
    changes += [(end, who, -gpus) for who, gpus, _, end in parts]
    for time, who, gpus in sorted(changes):
        usage.took(who, gpus * CORES_PER_GPU, time)
    return usage


def test_a_task_counts_its_gpus_and_one_without_a_gpu_its_cores() -> None:
    assert weight(make_demand(gpus=2, cpus=30)) == 2 * CORES_PER_GPU
    assert weight(make_demand(gpus=0, cpus=3)) == 3


def test_of_what_was_used_half_counts_after_the_half_life() -> None:
    usage = used((ALICE, 3, 0, HOUR))
    hours = usage.gpu_hours(ALICE, HOUR)
    assert 2.5 < hours < 3
    assert usage.gpu_hours(ALICE, 3 * HOUR) == pytest.approx(hours / 2)
    assert usage.gpu_hours(BOB, 3 * HOUR) == 0


def test_what_is_held_counts_as_it_goes_on() -> None:
    usage = UsageAccounting(FAIR)
    usage.took(ALICE, CORES_PER_GPU, 0)
    assert 0.8 < usage.gpu_hours(ALICE, HOUR) < 1
    # what is held for ever never counts more than the half-life over ln 2
    assert usage.gpu_hours(ALICE, 1000 * HOUR) == pytest.approx(2.885, abs=0.001)


def test_a_user_is_told_what_part_of_all_they_have_used() -> None:
    usage = used((ALICE, 1, 0, HOUR), (BOB, 3, 0, HOUR))
    lately = usage.used_lately("alice", HOUR)["vc"]
    assert lately.gpu_hours == usage.gpu_hours(ALICE, HOUR) > 0.8
    assert lately.part == pytest.approx(0.25)
    assert usage.used_lately("carol", HOUR) == {"vc": UserShare(0, 0)}


def test_where_nobody_has_used_anything_a_user_has_no_part_of_it() -> None:
    assert UsageAccounting(FAIR).used_lately("alice", HOUR) == {"vc": UserShare(0, 0)}
    assert UsageAccounting([VirtualCluster("plain", 100)]).used_lately("alice", HOUR) == {}


def test_who_gets_something_comes_behind_who_has_as_little_at_once() -> None:
    usage = UsageAccounting(FAIR)
    assert usage.user_key(ALICE, 0) == usage.user_key(BOB, 0) == 0
    usage.took(ALICE, CORES_PER_GPU, 0)
    assert usage.user_key(ALICE, 0) > 0 == usage.user_key(BOB, 0)


def test_only_who_has_or_had_something_is_looked_at_again_and_once_a_minute() -> None:
    usage = used((BOB, 1, 0, 1000))
    usage.took(ALICE, CORES_PER_GPU, 1000)
    assert {who for who, _ in usage.user_keys(1000)} == {ALICE, BOB}
    assert list(usage.user_keys(2000)) == []
    assert [who for who, _ in usage.user_keys(60_000)] == [ALICE]


TIMES = st.integers(0, 10 * HOUR)
PARTS = st.lists(
    st.tuples(st.sampled_from([ALICE, BOB]), st.integers(1, 8), TIMES, st.integers(1, 5 * HOUR)).map(
        lambda part: (part[0], part[1], part[2], part[2] + part[3])
    ),
    min_size=1,
    max_size=6,
)


@given(parts=PARTS, later=st.integers(0, 100 * HOUR))
def test_the_order_is_that_of_what_counts_and_stays_while_nothing_is_held(
    parts: list[tuple[tuple[str, str], int, int, int]], later: int
) -> None:
    usage = used(*parts)
    end = max(part[3] for part in parts)
    assert usage.user_key(ALICE, end) == usage.user_key(ALICE, end + later)
    more = usage.gpu_hours(ALICE, end) - usage.gpu_hours(BOB, end)
    if abs(more) > 0.001 * usage.gpu_hours(ALICE, end):
        assert (usage.user_key(ALICE, end) > usage.user_key(BOB, end)) is (more > 0)


@given(parts=PARTS, now=st.integers(0, 20 * HOUR))
def test_a_restart_finds_the_same_turns(parts: list[tuple[tuple[str, str], int, int, int]], now: int) -> None:
    usage = UsageAccounting(FAIR)
    kept: dict[Sharer, DecayedUsage | None] = {}
    changes = sorted(
        (time, who, sign * gpus)
        for who, gpus, begin, end in parts
        for time, sign in ((begin, 1), (end, -1))
        if time <= now
    )
    held = {ALICE: 0, BOB: 0}
    for time, who, gpus in changes:
        usage.took(who, gpus * CORES_PER_GPU, time)
        held[who] += gpus
        kept.update(usage.take_changed())
    again = UsageAccounting(FAIR)
    again.restore({who: DecayedUsage(one.amount, one.as_of) for who, one in kept.items() if one is not None})
    for who, gpus in held.items():
        again.book(who, gpus * CORES_PER_GPU)
    again.begin(now)
    assert [again.user_key(who, now) for who in held] == [usage.user_key(who, now) for who in held]


def test_where_users_share_no_longer_nothing_is_remembered() -> None:
    usage = used((ALICE, 1, 0, HOUR))
    assert list(usage.take_changed()) == [ALICE]
    usage.set_clusters([VirtualCluster("vc", 100)], HOUR)
    assert usage.take_changed() == {ALICE: None}
    assert not usage.shares("vc")
    later = UsageAccounting([VirtualCluster("vc", 100)])
    later.restore({ALICE: DecayedUsage(1.0, 0)})
    assert later.take_changed() == {ALICE: None}


def test_where_users_begin_to_share_what_they_hold_counts_from_then_on() -> None:
    usage = UsageAccounting([VirtualCluster("vc", 100)])
    usage.took(ALICE, CORES_PER_GPU, 0)
    usage.set_clusters(FAIR, HOUR)
    assert usage.gpu_hours(ALICE, HOUR) == 0
    assert 0.8 < usage.gpu_hours(ALICE, 2 * HOUR) < 1
