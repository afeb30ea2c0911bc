"""Report of a replay: completion, queueing, use of GPUs, in numbers and as an SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, log10

from .simulation import Curve, Replay, Replayed, Span

# What a replay says in numbers: times of completion and queueing, use of GPUs, what stood idle and why.

#: So many names of jobs that never started are told.
_MOST_NAMES = 10


@dataclass(frozen=True, slots=True)
class Times:
    """Of many times the mean, the middle and the 99th percentile; seconds."""

    mean: float
    median: float
    p99: float

    @classmethod
    def of(cls, milliseconds: Iterable[int]) -> Times:
        """Add them up; all 0 where there are none."""
        ordered = sorted(milliseconds)
        if not ordered:
            return cls(0.0, 0.0, 0.0)
        return cls(sum(ordered) / len(ordered) / 1000, percentile(ordered, 50), percentile(ordered, 99))


def percentile(ordered: Sequence[int], per_cent: int) -> float:
    """Return the smallest time, in seconds, that so many per cent of all do not exceed."""
    return ordered[ceil(len(ordered) * per_cent / 100) - 1] / 1000


@dataclass(frozen=True, slots=True)
class Fared:
    """Results of a group of jobs. `completion`: from submission to end; `queueing`: that without its run."""

    jobs: int
    ended: int
    at_time_limit: int
    preemptions: int
    #: GPU hours of what jobs ran, and of what ran in vain as the job was preempted
    gpu_hours: float
    lost_gpu_hours: float
    completion: Times
    queueing: Times

    @classmethod
    def of(cls, jobs: Sequence[Replayed]) -> Fared:
        """Sum up; times are of those that ended."""
        ended = [(one, one.ended, one.started) for one in jobs]
        known = [(one, end, begin) for one, end, begin in ended if end is not None and begin is not None]
        return cls(
            len(jobs),
            len(known),
            sum(not one.succeeded for one, _, _ in known),
            sum(one.preemptions for one in jobs),
            sum(one.job.gpus * (end - begin) for one, end, begin in known) / 3_600_000,
            sum(one.job.gpus * one.lost_ms for one in jobs) / 3_600_000,
            Times.of(end - one.job.submitted for one, end, _ in known),
            Times.of(begin - one.job.submitted for one, _, begin in known),
        )


@dataclass(frozen=True, slots=True)
class Measures:
    """All that is told about a replay."""

    all: Fared
    virtual_clusters: dict[str, Fared]
    #: from the first submission to the last end; seconds
    makespan: float
    gpus: int
    #: per cent of the GPUs, on average over the makespan
    gpu_use: float
    #: … that were free while a job waited that asks for no more than were free
    idle_while_waiting: float
    #: of the GPUs that were free while jobs waited, the per cent on nodes of which some were taken
    fragmentation: float
    #: how many waited, on average
    waiting: float
    #: which never started, the first of them
    never_started: tuple[str, ...]
    never_started_count: int


def measure(replay: Replay) -> Measures:
    """Make the numbers of a replay."""
    by_cluster: dict[str, list[Replayed]] = defaultdict(list)
    for one in replay.jobs:
        by_cluster[one.job.virtual_cluster].append(one)
    never = [one.job.name for one in replay.jobs if one.ended is None]
    total = used = idle = free = scattered = waiting = 0
    for span in replay.curve:
        total += span.length
        used += span.used * span.length
        waiting += span.waiting * span.length
        unused = (replay.curve.gpus - span.used) * span.length
        if span.idle:
            idle += unused
        if span.waiting:
            free += unused
            scattered += span.scattered * span.length
    capacity = replay.curve.gpus * total
    return Measures(
        Fared.of(replay.jobs),
        {name: Fared.of(jobs) for name, jobs in sorted(by_cluster.items())},
        total / 1000,
        replay.curve.gpus,
        _per_cent(used, capacity),
        _per_cent(idle, capacity),
        _per_cent(scattered, free),
        waiting / total if total else 0.0,
        tuple(never[:_MOST_NAMES]),
        len(never),
    )


def allocations(replay: Replay, per_cents: Iterable[int] = (80, 90, 100, 110, 120, 130)) -> dict[int, float]:
    """Return how many per cent of the GPUs the jobs took that asked for the first so many per cent.

    For a replay in which nothing ended; who was stopped for others took none. What the trace does not reach
    is left out.
    """
    found = {}
    asked = taken = 0
    left = sorted(per_cents)
    for one in replay.jobs:
        asked += one.job.gpus
        taken += one.job.gpus if one.started is not None else 0
        while left and 100 * asked >= left[0] * replay.curve.gpus > 0:
            found[left.pop(0)] = _per_cent(taken, replay.curve.gpus)
    return found


def _per_cent(part: int, whole: int) -> float:
    return 100 * part / whole if whole else 0.0


def _document_of_times(times: Times) -> dict[str, float]:
    return {"mean": round(times.mean, 3), "median": times.median, "p99": times.p99}


def _document_of(fared: Fared) -> dict[str, object]:
    return {
        "jobs": fared.jobs,
        "ended": fared.ended,
        "endedAtTimeLimit": fared.at_time_limit,
        "preemptions": fared.preemptions,
        "gpuHours": round(fared.gpu_hours, 3),
        "lostGpuHours": round(fared.lost_gpu_hours, 3),
        "completionSeconds": _document_of_times(fared.completion),
        "queueingSeconds": _document_of_times(fared.queueing),
    }


def document(measures: Measures) -> dict[str, object]:
    """Return the numbers for JSON: the same for the same trace, cluster and version."""
    return {
        **_document_of(measures.all),
        "makespanSeconds": measures.makespan,
        "gpus": measures.gpus,
        "gpuUsePercent": round(measures.gpu_use, 3),
        "gpuIdleWhileWaitingPercent": round(measures.idle_while_waiting, 3),
        "fragmentationPercent": round(measures.fragmentation, 3),
        "meanWaitingJobs": round(measures.waiting, 3),
        "neverStarted": measures.never_started_count,
        "neverStartedFirst": list(measures.never_started),
        "virtualClusters": {name: _document_of(fared) for name, fared in measures.virtual_clusters.items()},
    }


# Draws a replay as an SVG: GPUs in use and jobs that wait over time, and how long jobs took.

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
