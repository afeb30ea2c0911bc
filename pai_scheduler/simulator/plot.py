"""Draws a replay as an SVG: GPUs in use and jobs that wait over time, and how long jobs took."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from html import escape
from math import ceil, log10

from .curve import Curve, Span
from .run import Replay

_WIDTH, _HEIGHT = 900, 760
_LEFT, _RIGHT, _PANEL, _GAP, _TOP = 70, 20, 170, 60, 50
_INNER = _WIDTH - _LEFT - _RIGHT
_BLUE, _ORANGE = "#1976d2", "#ef6c00"
#: Times that people know, in seconds.
_MARKS = (1, 10, 60, 600, 3600, 36_000, 864_000, 8_640_000, 86_400_000)
#: Into how many pieces time is cut; each shows its mean.
_PIECES = 400


def draw(replay: Replay, title: str) -> str:
    """Return the picture's text."""
    curve = replay.curve
    used = means(curve, lambda span: span.used)
    waiting = means(curve, lambda span: span.waiting)
    seconds = span_ms(curve) / 1000
    done = [(one.job.submitted, one.started, one.ended) for one in replay.jobs]
    completion = sorted((end - come) / 1000 for come, _, end in done if end is not None)
    queueing = sorted(
        (begin - come) / 1000 for come, begin, end in done if begin is not None and end is not None
    )
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif" font-size="12">',
        f'<title>{escape(title)}</title><rect width="100%" height="100%" fill="white"/>',
        f'<text x="{_LEFT}" y="22" font-size="15">{escape(title)}</text>',
        *_over_time(0, f"GPUs in use, of {curve.gpus}", used, max(curve.gpus, 1), seconds, _BLUE),
        *_over_time(1, "Jobs that wait", waiting, max([1.0, *waiting]), seconds, _ORANGE),
        *_shares(2, {"from submission to end": completion, "of it waiting": queueing}),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def span_ms(curve: Curve) -> int:
    """Return how long a curve is, in ms."""
    spans = list(curve)
    return spans[-1].end - spans[0].begin if spans else 0


def means(curve: Iterable[Span], value: Callable[[Span], int], pieces: int = _PIECES) -> list[float]:
    """Cut the time into equal pieces, and return the mean of a value in each."""
    spans = list(curve)
    if not spans:
        return [0.0] * pieces
    begin = spans[0].begin
    length = (spans[-1].end - begin) / pieces
    sums = [0.0] * pieces
    for span in spans:
        first = int((span.begin - begin) / length)
        last = min(pieces - 1, ceil((span.end - begin) / length) - 1)
        for piece in range(first, last + 1):
            within = min(span.end, begin + (piece + 1) * length) - max(span.begin, begin + piece * length)
            sums[piece] += value(span) * max(0.0, within)
    return [total / length for total in sums]


def _over_time(
    place: int, name: str, values: Sequence[float], most: float, seconds: float, colour: str
) -> list[str]:
    top = _TOP + place * (_PANEL + _GAP)
    step = _INNER / len(values)
    points = " ".join(
        f"{_LEFT + (number + side) * step:.1f},{top + _PANEL * (1 - value / most):.1f}"
        for number, value in enumerate(values)
        for side in (0, 1)
    )
    bottom = top + _PANEL
    return [
        *_frame(top, name, [(0.0, "0"), (0.5, f"{most / 2:.3g}"), (1.0, f"{most:.3g}")]),
        f'<polygon points="{_LEFT},{bottom} {points} {_LEFT + _INNER},{bottom}" fill="{colour}" '
        f'fill-opacity="0.35" stroke="{colour}"/>',
        *_ticks(bottom, [(quarter / 4, span_text(seconds * quarter / 4)) for quarter in range(5)]),
    ]


def _shares(place: int, series: dict[str, Sequence[float]]) -> list[str]:
    """Draw which share of the jobs took at most how long; times by their power of ten."""
    top = _TOP + place * (_PANEL + _GAP)
    most = max([10.0, *(values[-1] for values in series.values() if values)])
    powers = log10(most)
    parts = _frame(top, "Share of jobs that took at most …", [(0.0, "0 %"), (0.5, "50 %"), (1.0, "100 %")])
    for number, ((name, values), colour) in enumerate(zip(series.items(), (_BLUE, _ORANGE), strict=True)):
        every = max(1, len(values) // _PIECES)
        shown = [*range(0, len(values), every), len(values) - 1] if values else []
        points = " ".join(
            f"{_LEFT + _INNER * log10(max(1.0, values[i])) / powers:.1f},"
            f"{top + _PANEL * (1 - (i + 1) / len(values)):.1f}"
            for i in shown
        )
        x, y = _LEFT + _INNER - 150, top + _PANEL - 30 + 16 * number
        parts += [
            f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
            f'<text x="{x}" y="{y}" fill="{colour}">{escape(name)}</text>',
        ]
    bottom = top + _PANEL
    return parts + _ticks(
        bottom, [(log10(mark) / powers, span_text(mark)) for mark in _MARKS if mark <= most]
    )


def _frame(top: int, name: str, marks: Sequence[tuple[float, str]]) -> list[str]:
    parts = [f'<text x="{_LEFT}" y="{top - 8}">{escape(name)}</text>']
    for share, text in marks:
        y = top + _PANEL * (1 - share)
        parts += [
            f'<line x1="{_LEFT}" x2="{_LEFT + _INNER}" y1="{y}" y2="{y}" stroke="#ccc"/>',
            f'<text x="{_LEFT - 6}" y="{y + 4}" text-anchor="end">{escape(text)}</text>',
        ]
    return parts


def _ticks(bottom: int, marks: Sequence[tuple[float, str]]) -> list[str]:
    return [
        f'<text x="{_LEFT + share * _INNER:.1f}" y="{bottom + 16}" text-anchor="middle">{escape(text)}</text>'
        for share, text in marks
    ]


def span_text(seconds: float) -> str:
    """Write a time for people: in the largest unit of which it has one at least."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
