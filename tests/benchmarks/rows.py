"""What a benchmark says: rows with values, ours and a peer's, and the goal held against them."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec


class UnavailableError(Exception):
    """A suite cannot be measured on this machine; says what is missing."""


class Against(StrEnum):
    """What a goal's limit is held against."""

    RATIO = "ratio"  # our median divided by the peer's
    MORE = "more"  # our median less the peer's
    VALUE = "value"  # our median


class Goal(msgspec.Struct, frozen=True):
    """A limit that is wanted: `at_least` or `at_most`, one of them."""

    against: Against
    at_least: float | None = None
    at_most: float | None = None

    def met_by(self, value: float) -> bool:
        """Tell whether a value keeps to it."""
        return (self.at_least is None or value >= self.at_least) and (
            self.at_most is None or value <= self.at_most
        )

    def __str__(self) -> str:
        """Write it as a table has it."""
        sign, limit = ("≤", self.at_most) if self.at_most is not None else ("≥", self.at_least)
        assert limit is not None
        match self.against:
            case Against.RATIO:
                return f"{sign} {limit:g} ×"
            case Against.MORE:
                return f"{sign} {limit:+g}"
            case Against.VALUE:
                return f"{sign} {limit:,g}"


class Row(msgspec.Struct, frozen=True):
    """A thing that was measured: `ours` and, of a `peer` in the same run, `theirs`.

    `series` and `size`: rows of one series show how something grows with a size; they are plotted together.
    """

    measure: str
    unit: str
    ours: tuple[float, ...]
    peer: str = ""
    theirs: tuple[float, ...] = ()
    goal: Goal | None = None
    series: str = ""
    size: float | None = None

    @property
    def median(self) -> float:
        """Return the median of our values."""
        return statistics.median(self.ours)

    @property
    def ratio(self) -> float | None:
        """Return our median divided by the peer's; None where there is none."""
        return self.median / statistics.median(self.theirs) if self.theirs else None

    @property
    def met(self) -> bool | None:
        """Tell whether the goal is met; None where there is none, or its peer was not measured."""
        if self.goal is None or (self.goal.against is not Against.VALUE and not self.theirs):
            return None
        match self.goal.against:
            case Against.RATIO:
                return self.goal.met_by(self.median / statistics.median(self.theirs))
            case Against.MORE:
                return self.goal.met_by(self.median - statistics.median(self.theirs))
            case Against.VALUE:
                return self.goal.met_by(self.median)


class Suite(Protocol):
    """A module that measures."""

    def rows(self, *, short: bool) -> Iterator[Row]:
        """Measure, and check what was done; UnavailableError, AssertionError where an outcome is wrong.

        `short`: as little as shows that all of it works.
        """


def _number(value: float) -> str:
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    return f"{value:,.{digits}f}"


def _values(values: Sequence[float]) -> str:
    if not values:
        return "–"
    least, most = _number(min(values)), _number(max(values))
    return _number(statistics.median(values)) + (f" ({least} to {most})" if least != most else "")


def table(rows: Iterable[Row]) -> str:
    """Write rows as a table in Markdown: medians with their range, ratios, goals."""
    lines = [
        "| measure | unit | ours | peer | theirs | ratio | goal | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        met = {None: "", True: "met", False: "**missed**"}[row.met]
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        goal = "" if row.goal is None else str(row.goal)
        cells = (row.measure, row.unit, _values(row.ours), row.peer, _values(row.theirs) if row.peer else "")
        lines.append("| " + " | ".join((*cells, ratio, goal, met)) + " |")
    return "\n".join(lines)
