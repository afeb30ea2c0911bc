"""Series of a task's usage over time, in one small file beside its log.

The file is a sequence of records of one size, the oldest first. A measurement is appended; when the file is
full, all but the newest records are merged into buckets whose width is doubled until they fit. So the last
hour or so keeps every measurement, what came before keeps its shape, and no file outgrows `MOST` records. A
record that a crash cut in two is dropped by the next reader.
"""

from __future__ import annotations

import itertools
import math
import os
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.engine.protocol import Usage

#: What is recorded, under the names of the REST API, in the order in which it stands in a record.
SERIES = ("cpuPercent", "memoryMB", "gpuPercent", "gpuMemoryMB", "diskMB", "netRxBytes", "netTxBytes")
#: Name of the file within the folder of a task's log.
FILE = "usage"
#: How many of the newest measurements are kept as they are, and into how many the older ones are merged.
NEWEST, OLDER = 360, 360
#: Records of a file at most.
MOST = 2 * NEWEST + OLDER
#: Width of a bucket of older measurements (ms) where no wider one is needed.
_LEAST_WIDTH = 60_000

#: time (ms since the epoch), number of measurements in it, values (NaN: not known)
_RECORD = struct.Struct(f"<qI4x{len(SERIES)}d")


@dataclass(frozen=True, slots=True)
class Point:
    """One or more measurements: the time of the newest, how many, and a value (or None) per series."""

    time: int
    count: int
    values: tuple[float | None, ...]


def point_of(usage: Usage) -> Point:
    """Make a point of one measurement."""
    values = (
        usage.cpu_percent,
        usage.memory_mb,
        usage.gpu_percent,
        usage.gpu_memory_mb,
        usage.disk_mb,
        usage.net_rx_bytes,
        usage.net_tx_bytes,
    )
    return Point(usage.time, 1, values)


def read(folder: Path) -> list[Point]:
    """Read a task's points, the oldest first; none where nothing was recorded."""
    try:
        content = (folder / FILE).read_bytes()
    except FileNotFoundError:
        return []
    whole = len(content) - len(content) % _RECORD.size
    points: list[Point] = []
    for time, count, *values in _RECORD.iter_unpack(content[:whole]):
        if not count:  # zeros: what a power cut leaves of a record
            continue
        while points and points[-1].time >= time:  # the clock was set back: it had been wrong
            points.pop()
        points.append(Point(time, count, tuple(None if math.isnan(value) else value for value in values)))
    return points


def append(folder: Path, point: Point) -> None:
    """Add a point to a task's file; nothing where the folder is gone, because the job was deleted."""
    path = folder / FILE
    try:
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except FileNotFoundError:
        return
    try:
        size = os.fstat(file).st_size
        if torn := size % _RECORD.size:
            os.ftruncate(file, size - torn)
        if size < MOST * _RECORD.size:
            os.write(file, _pack(point))
            return
    finally:
        os.close(file)
    _replace(path, merge([*read(folder), point]))


def merge(points: Sequence[Point]) -> list[Point]:
    """Merge all but the newest points into buckets of one width, so that few enough are left."""
    older, newest = points[:-NEWEST], list(points[-NEWEST:])
    width = _LEAST_WIDTH
    while len({point.time // width for point in older}) > OLDER:
        width *= 2
    buckets = itertools.groupby(older, lambda point: point.time // width)
    return [*(_merged(list(bucket)) for _, bucket in buckets), *newest]


def _merged(points: Sequence[Point]) -> Point:
    """Make one point: the mean of a share, the highest of an amount, the last of a count."""
    kinds = (_mean, _highest, _mean, _highest, _highest, _last, _last)
    columns = zip(*(point.values for point in points), strict=True)
    counts = [point.count for point in points]
    values = tuple(kind(column, counts) for kind, column in zip(kinds, columns, strict=True))
    return Point(points[-1].time, sum(counts), values)


def _mean(values: Sequence[float | None], counts: Sequence[int]) -> float | None:
    known = [(value, count) for value, count in zip(values, counts, strict=True) if value is not None]
    total = sum(count for _, count in known)
    return sum(value * count for value, count in known) / total if total else None


def _highest(values: Sequence[float | None], _counts: Sequence[int]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def _last(values: Sequence[float | None], _counts: Sequence[int]) -> float | None:
    return next((value for value in reversed(values) if value is not None), None)


def _pack(point: Point) -> bytes:
    return _RECORD.pack(
        point.time, point.count, *(math.nan if value is None else value for value in point.values)
    )


def _replace(path: Path, points: Iterable[Point]) -> None:
    """Write the file anew, beside the old one until it is whole."""
    part = path.with_name(f"{FILE}.part")
    part.touch(mode=0o600)
    part.write_bytes(b"".join(map(_pack, points)))
    part.rename(path)
