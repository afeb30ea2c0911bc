"""The table of a benchmark says what was measured and whether it is enough."""

from __future__ import annotations

import msgspec
import pytest

from .rows import Against, Goal, Row, table


def test_a_ratio_to_the_peer_is_of_the_medians() -> None:
    row = Row("submits", "/s", ours=(30, 10, 20), peer="other", theirs=(5, 10, 100))
    assert row.ratio == 2


@pytest.mark.parametrize(
    ("goal", "met"),
    [
        (Goal(Against.RATIO, at_least=2), True),
        (Goal(Against.RATIO, at_least=2.1), False),
        (Goal(Against.RATIO, at_most=1.9), False),
        (Goal(Against.MORE, at_most=10), True),
        (Goal(Against.MORE, at_most=9), False),
        (Goal(Against.VALUE, at_least=21), False),
        (Goal(Against.VALUE, at_most=20), True),
        (None, None),
    ],
)
def test_a_goal_is_held_against_what_it_names(goal: Goal | None, met: bool | None) -> None:
    assert Row("x", "ms", ours=(20,), peer="other", theirs=(10,), goal=goal).met is met


def test_a_goal_beside_a_peer_that_was_not_measured_is_neither_met_nor_missed() -> None:
    assert Row("x", "ms", ours=(20,), peer="other", goal=Goal(Against.RATIO, at_most=1)).met is None


def test_the_table_has_medians_with_their_range_and_marks_what_is_missed() -> None:
    rows = [
        Row("submits", "/s", (1000, 1500, 3000), "slurm", (1000.0,), Goal(Against.RATIO, at_least=2)),
        Row("memory", "kB", (1.25,), goal=Goal(Against.VALUE, at_most=1.5)),
    ]
    assert table(rows).splitlines()[2:] == [
        "| submits | /s | 1,500 (1,000 to 3,000) | slurm | 1,000 | 1.50 | ≥ 2 × | **missed** |",
        "| memory | kB | 1.25 |  |  |  | ≤ 1.5 | met |",
    ]


def test_a_row_is_read_as_it_was_written() -> None:
    row = Row("x", "ms", (1, 2.5), goal=Goal(Against.VALUE, at_most=3), series="grows", size=10)
    assert msgspec.json.decode(msgspec.json.encode(row), type=Row) == row
