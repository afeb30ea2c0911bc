"""What comes first: by priority, then by turn, within what a page of a list can name."""

from __future__ import annotations

from pai_scheduler.cluster.queue_rank import comes_to_stop, level_of, precedence, turn_in_level, turn_of


def test_a_higher_priority_comes_first_whatever_the_turns_are() -> None:
    assert precedence(51) < precedence(50)
    assert precedence(51, 10**15) < precedence(50, 0)
    assert precedence(1, 1 << 70) < precedence(0, 0)


def test_of_one_priority_the_lower_turn_comes_first() -> None:
    assert precedence(50, 1_764_000_000_000) < precedence(50, 1_764_000_000_001)


def test_every_precedence_fits_into_a_databases_number() -> None:
    assert max(abs(precedence(priority, turn)) for priority in (0, 100) for turn in (0, 1 << 70)) < 1 << 63


def test_a_level_comes_before_the_next_and_within_it_who_is_less_wide() -> None:
    turns = [turn_in_level(0, 0), turn_in_level(0, 4), turn_in_level(0, 1 << 40), turn_in_level(1, 4)]
    assert turns == sorted(turns)
    assert [level_of(turn) for turn in turns] == [0, 0, 0, 1]
    assert [turn_of(precedence(50, turn)) for turn in turns] == turns


def test_one_stops_another_of_a_higher_turn_and_of_no_higher_priority() -> None:
    assert comes_to_stop(precedence(50, 1), precedence(50, 2))
    assert comes_to_stop(precedence(60, 1), precedence(50, 2))
    assert not comes_to_stop(precedence(50, 2), precedence(50, 2))
    assert not comes_to_stop(precedence(60, 3), precedence(50, 2))
    assert not comes_to_stop(precedence(40, 1), precedence(50, 2))
