"""How something grows: a slope fitted to a series, and its picture."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from .rows import Row


def series(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Return the rows of each series by size, those with two sizes or more."""
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        if row.series and row.size is not None:
            found[row.series].append(row)
    ordered = {name: sorted(members, key=lambda row: row.size or 0) for name, members in found.items()}
    return {name: members for name, members in ordered.items() if len({row.size for row in members}) > 1}


def exponent(members: Iterable[Row]) -> float:
    """Fit `value = a · size^b` by least squares of the logarithms; return b (0: it does not grow)."""
    points = [(math.log(row.size or 0), math.log(row.median)) for row in members]
    return statistics.linear_regression(*zip(*points, strict=True)).slope


def draw(name: str, members: list[Row], file: Path) -> None:
    """Draw a series with the range of its values, both axes logarithmic, as an SVG file."""
    import matplotlib as mpl  # half a second for each who collects the tests
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.add_subplot()
    sizes = [row.size or 0 for row in members]
    for label, values in (
        ("ours", [row.ours for row in members]),
        (members[0].peer, [row.theirs for row in members]),
    ):
        if all(values):
            middle = [statistics.median(one) for one in values]
            spread = [
                [middle[place] - min(one) for place, one in enumerate(values)],
                [max(one) - middle[place] for place, one in enumerate(values)],
            ]
            axes.errorbar(sizes, middle, yerr=spread, marker="o", capsize=3, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_title(f"{name}: size to the power of {exponent(members):.2f}")
    axes.set_ylabel(members[0].unit)
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    # no date, no version of the program, names that do not change: the same values make the same file
    with mpl.rc_context({"svg.hashsalt": "pai", "svg.fonttype": "none"}):
        figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
