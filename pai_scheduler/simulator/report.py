"""Report of a replay: completion, queueing, use of GPUs, in numbers and as an SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from io import StringIO
from math import ceil

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


#: Times that people know, in seconds.
_MARKS = (1, 10, 60, 600, 3600, 36_000, 864_000, 8_640_000, 86_400_000)
#: Into how many pieces time is cut; each shows its mean.
_PIECES = 400


def draw(replay: Replay, title: str) -> str:
    """Draw GPUs in use and jobs that wait over time, and how long jobs took, as the text of an SVG.

    The same replay gives the same text. ImportError: matplotlib is not installed.
    """
    import matplotlib as mpl  # not needed by who draws nothing
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator

    curve = replay.curve
    edges = [span_ms(curve) / 1000 * piece / _PIECES for piece in range(_PIECES + 1)]
    figure = Figure(figsize=(9, 7.6), layout="constrained")
    figure.suptitle(title.replace("$", r"\$"))
    used, waiting, took = figure.subplots(3)
    used.stairs(means(curve, lambda span: span.used), edges, fill=True, color="#1976d2")
    used.set(title=f"GPUs in use, of {curve.gpus}", ylim=(0, max(curve.gpus, 1)))
    waiting.stairs(means(curve, lambda span: span.waiting), edges, fill=True, color="#ef6c00")
    waiting.set(title="Jobs that wait", ylim=(0, None))
    done = [(one.job.submitted, one.started, one.ended) for one in replay.jobs]
    completion = [(end - come) / 1000 for come, _, end in done if end is not None]
    queueing = [(begin - come) / 1000 for come, begin, end in done if begin is not None and end is not None]
    for name, values in (("from submission to end", completion), ("of it waiting", queueing)):
        if values:
            took.ecdf([max(1.0, value) for value in values], label=name)
            took.legend(loc="upper left")
    took.set(title="Share of jobs that took at most …", xscale="log", xlim=(1, None), ylim=(0, 1))
    took.xaxis.set_major_locator(FixedLocator(_MARKS))
    took.xaxis.set_minor_locator(NullLocator())
    for axes in (used, waiting, took):
        axes.xaxis.set_major_formatter(lambda seconds, _: span_text(seconds))
        axes.margins(x=0)
        axes.grid(alpha=0.3)
    picture = StringIO()
    # no date, no version of the program, names that do not change
    with mpl.rc_context({"svg.hashsalt": "pai", "svg.fonttype": "none"}):
        figure.savefig(picture, format="svg", metadata={"Date": None, "Creator": None, "Title": title})
    return picture.getvalue()


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


def span_text(seconds: float) -> str:
    """Write a time for people: in the largest unit of which it has one at least."""
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"
