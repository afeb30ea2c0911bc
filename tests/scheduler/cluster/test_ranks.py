"""What comes first: by priority, then by turn, within what a page of a list can name."""

from __future__ import annotations

from pai_scheduler.cluster.ranks import precedence


def test_a_higher_priority_comes_first_whatever_the_turns_are() -> None:
    assert precedence(51) < precedence(50)
    assert precedence(51, 10**15) < precedence(50, 0)
    assert precedence(1, 1 << 70) < precedence(0, 0)


def test_of_one_priority_the_lower_turn_comes_first() -> None:
    assert precedence(50, 1_764_000_000_000) < precedence(50, 1_764_000_000_001)


def test_every_precedence_fits_into_a_databases_number() -> None:
    assert max(abs(precedence(priority, turn)) for priority in (0, 100) for turn in (0, 1 << 70)) < 1 << 63
