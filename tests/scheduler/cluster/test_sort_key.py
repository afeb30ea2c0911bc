"""What comes first: by priority, then by policy key, within what a page of a list can name."""

from __future__ import annotations

from pai_scheduler.cluster.sort_key import SortKey, level_key, level_of


def key(priority: int, policy_key: int | None = None) -> SortKey:
    return SortKey.of(priority, policy_key, 7)


def test_a_higher_priority_comes_first_whatever_the_policy_says() -> None:
    assert key(51) < key(50)
    assert key(51, 10**15) < key(50, 0)
    assert key(1, 1 << 70) < key(0, 0)


def test_of_one_priority_the_lower_policy_key_comes_first_and_then_who_was_submitted_first() -> None:
    assert key(50, 1_764_000_000_000) < key(50, 1_764_000_000_001)
    assert SortKey.of(50, 3, 1) < SortKey.of(50, 3, 2) < SortKey.of(50, 4, 1)


def test_under_fair_share_the_user_comes_before_the_priority() -> None:
    assert key(0).of_user(1) < key(100).of_user(2)
    assert key(51).of_user(1) < key(50).of_user(1)
    assert key(50).of_user(3).of_user(-3) == key(50)


def test_every_part_fits_into_a_databases_number() -> None:
    assert (
        max(abs(key(priority, policy).policy) for priority in (0, 100) for policy in (0, 1 << 70)) < 1 << 63
    )


def test_a_level_comes_before_the_next_and_within_it_who_is_less_wide() -> None:
    keys = [level_key(0, 0), level_key(0, 4), level_key(0, 1 << 40), level_key(1, 4)]
    assert keys == sorted(keys)
    assert [level_of(one) for one in keys] == [0, 0, 0, 1]


def test_one_stops_another_of_a_higher_policy_key_and_of_no_higher_priority() -> None:
    assert key(50, 1).stops(key(50, 2))
    assert key(60, 1).stops(key(50, 2))
    assert not key(50, 2).stops(key(50, 2))
    assert not key(60, 3).stops(key(50, 2))
    assert not key(40, 1).stops(key(50, 2))
