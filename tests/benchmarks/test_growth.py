"""How something grows is fitted and drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from .growth import draw, exponent, series
from .rows import Row


def grown(size: int, value: float) -> Row:
    return Row("x", "ms", (value, 1.1 * value), "peer", (value,), series="by size", size=size)


def test_the_exponent_of_a_square_is_two() -> None:
    assert exponent([grown(size, size * size) for size in (10, 100, 1000)]) == pytest.approx(2)


def test_a_series_is_in_order_and_has_two_sizes_at_least() -> None:
    rows = [grown(100, 2), Row("alone", "ms", (1,)), grown(10, 1), Row("y", "ms", (1,), series="one", size=1)]
    assert [row.size for row in series(rows)["by size"]] == [10, 100]
    assert list(series(rows)) == ["by size"]


def test_the_picture_is_the_same_for_the_same_values(tmp_path: Path) -> None:
    members = [grown(10, 1), grown(100, 2)]
    for name in ("one.svg", "two.svg"):
        draw("by size", members, tmp_path / name)
    first = (tmp_path / "one.svg").read_text()
    assert first.startswith("<?xml")
    assert "by size" in first
    assert first == (tmp_path / "two.svg").read_text()
