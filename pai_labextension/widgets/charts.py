"""Line charts of a task's usage: HTML with SVG inside, made without a browser or a library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from .language import Language
from .times import clock

Points = Sequence[tuple[int, float]]

#: Of the drawing, in pixels of its own; the browser scales it to the room there is.
WIDTH, HEIGHT = 320, 120
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 10, 8, 20
#: A line has at most so many corners; more than one per two pixels cannot be seen.
MOST_CORNERS = 140


@dataclass(frozen=True, slots=True)
class ChartLine:
    """One series of a chart; `name` where the chart has several."""

    name: str
    points: Points


@dataclass(frozen=True, slots=True)
class Chart:
    """Series of one unit over one time. `whole`: the scale ends there, if the values stay below."""

    title: str
    unit: str
    lines: tuple[ChartLine, ...]
    whole: float = 0.0


def charts_of(say: Language, series: Mapping[str, Points], gpu_memory_mb: int | None = None) -> list[Chart]:
    """Choose the charts for a task's metrics: those for which something was measured.

    `gpu_memory_mb`: what its GPUs have together, where that is known.
    """

    def known(name: str) -> Points:
        return series.get(name, ())

    network = (
        ChartLine(say("received"), per_second(known("netRxBytes"))),
        ChartLine(say("sent"), per_second(known("netTxBytes"))),
    )
    charts = [
        Chart(say("CPU (100 % is one core)"), "%", (ChartLine("", known("cpuPercent")),), 100),
        Chart(say("Memory"), "MB", (ChartLine("", known("memoryMB")),)),
        Chart(say("GPU"), "%", (ChartLine("", known("gpuPercent")),), 100),
        Chart(say("GPU memory"), "MB", (ChartLine("", known("gpuMemoryMB")),), gpu_memory_mb or 0),
        Chart(say("Disk"), "MB", (ChartLine("", known("diskMB")),)),
        Chart(say("Network"), "MB/s", network),
    ]
    filled = (
        Chart(chart.title, chart.unit, tuple(line for line in chart.lines if line.points), chart.whole)
        for chart in charts
    )
    return [chart for chart in filled if chart.lines]


def per_second(points: Points) -> Points:
    """Make MB per second of a count of bytes."""
    return [
        (time, max(0.0, (value - before) / 1e6 / ((time - earlier) / 1000)))
        for (earlier, before), (time, value) in itertools.pairwise(points)
    ]


def draw(say: Language, chart: Chart) -> str:
    """Draw a chart: its title with the last and the highest value, axes with numbers, a line per series."""
    times = [time for line in chart.lines for time, _ in line.points]
    begin, end = min(times), max(times)
    top = scale_top(max(value for line in chart.lines for _, value in line.points), chart.whole)
    facts = say(", ").join(_facts(say, chart, line) for line in chart.lines)
    label = say("{title}: {facts}", title=chart.title, facts=facts)
    parts = [*_scale(chart, top), *_clock(begin, end)]
    for number, line in enumerate(chart.lines):
        corners = " ".join(
            f"{_x(time, begin, end):.1f},{_y(value, top):.1f}" for time, value in thinned(line.points)
        )
        kind = f"pai-line pai-line-{number}"
        if len(line.points) == 1:
            x, y = corners.split(",")
            parts.append(f'<circle class="{kind}" cx="{x}" cy="{y}" r="2"/>')
        else:
            parts.append(f'<polyline class="{kind}" points="{corners}"/>')
    return (
        f'<figure class="pai-chart"><figcaption><b>{escape(chart.title)}</b> '
        f"<span>{_legend(say, chart)}</span></figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(label, quote=True)}">'
        f"{''.join(parts)}</svg></figure>"
    )


def thinned(points: Points) -> Points:
    """Leave at most `MOST_CORNERS` points: the mean of those that are close together, and the newest one."""
    if len(points) <= MOST_CORNERS:
        return points
    begin, span = points[0][0], points[-1][0] - points[0][0] + 1
    groups = itertools.groupby(points, lambda point: (point[0] - begin) * (MOST_CORNERS - 1) // span)
    means: list[tuple[int, float]] = []
    for _, group in groups:
        near = list(group)
        means.append((near[-1][0], sum(value for _, value in near) / len(near)))
    return [*means[:-1], points[-1]]


def scale_top(highest: float, whole: float = 0.0) -> float:
    """Return the round number at which a scale that holds `highest` ends."""
    if highest <= whole or highest <= 0:
        return whole or 1.0
    power = 10.0 ** math.floor(math.log10(highest))
    return next(step * power for step in (1, 2, 4, 5, 10) if step * power >= highest * (1 - 1e-9))


def number(value: float) -> str:
    """Write a value with as many digits as say something."""
    if value == 0 or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}".removesuffix(".0") if value >= 1 else f"{value:.2g}"


def _facts(say: Language, chart: Chart, line: ChartLine) -> str:
    values = [value for _, value in line.points]
    said = say(
        "{last} {unit} now, {highest} {unit} at most",
        last=number(values[-1]),
        highest=number(max(values)),
        unit=chart.unit,
    )
    return f"{line.name} {said}" if line.name else said


def _legend(say: Language, chart: Chart) -> str:
    return " ".join(
        f'<span class="pai-key pai-key-{index}">{escape(_facts(say, chart, line))}</span>'
        for index, line in enumerate(chart.lines)
    )


def _scale(chart: Chart, top: float) -> list[str]:
    right = WIDTH - _RIGHT
    parts = []
    for value in (0.0, top / 2, top):
        y = _y(value, top)
        text = f"{number(value)}" + (f" {chart.unit}" if value == top and len(chart.unit) < 3 else "")
        parts.append(f'<line class="pai-grid-line" x1="{_LEFT}" y1="{y:.1f}" x2="{right}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{_LEFT - 4}" y="{y + 3:.1f}" text-anchor="end">{escape(text)}</text>')
    return parts


def _clock(begin: int, end: int) -> list[str]:
    y = HEIGHT - 5
    first = clock(begin, f'x="{_LEFT}" y="{y}"')
    if end == begin:
        return [first]
    return [first, clock(end, f'x="{WIDTH - _RIGHT}" y="{y}" text-anchor="end"')]


def _x(time: int, begin: int, end: int) -> float:
    return _LEFT + (WIDTH - _LEFT - _RIGHT) * (time - begin) / max(1, end - begin)


def _y(value: float, top: float) -> float:
    return _TOP + (HEIGHT - _TOP - _BOTTOM) * (1 - min(max(value, 0.0), top) / top)
