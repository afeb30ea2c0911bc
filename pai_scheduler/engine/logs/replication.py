"""Copies of a task's log on another machine: segment by segment, so that each byte keeps its offset.

The copy says what it has (`extents`), the original answers with what is missing (`missing`), the copy takes
that over (`take_over`), again until nothing is missing. Whatever is lost on the way is asked for again.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .segment import RECORD, STREAMS, SegmentStart, places

#: the index last: what it does not name is not there
_FILES = (*STREAMS, "index")


@dataclass(frozen=True, slots=True)
class Extent:
    """Size of one segment: bytes of its stdout, stderr and index."""

    start: SegmentStart
    sizes: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes of one file of a segment (0 stdout, 1 stderr, 2 index), from an offset within that file on."""

    start: SegmentStart
    file: int
    offset: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Missing:
    """Parts that a copy lacks, in the order in which they are to be written. `complete`: it lacks no more.

    `extents` are those of the original; what a copy has beyond them was removed or cut off there.
    """

    extents: tuple[Extent, ...]
    parts: tuple[Part, ...]
    complete: bool


def extents(log: Path) -> tuple[Extent, ...]:
    """Return how much there is of a log, the oldest segment first; nothing where there is no log."""
    try:
        found = places(log)
    except FileNotFoundError:
        return ()
    return tuple(Extent(start, _sizes(start.folder(log))) for start in found)


def missing(log: Path, copied: Sequence[Extent], limit: int) -> Missing:
    """Return about `limit` bytes of what a copy that has `copied` lacks of a log."""
    there = extents(log)
    has = {extent.start: extent.sizes for extent in copied}
    parts: list[Part] = []
    for part in _lacking(there, has):
        if limit <= 0:
            return Missing(there, tuple(parts), complete=False)
        parts.append(_cut(part, log, limit))
        limit -= len(parts[-1].data)
        if parts[-1].offset + len(parts[-1].data) < part.end:
            return Missing(there, tuple(parts), complete=False)
    return Missing(there, tuple(parts), complete=True)


def take_over(log: Path, news: Missing) -> None:
    """Write what was missing into a copy, and remove what the original has no more; OSError."""
    log.mkdir(parents=True, exist_ok=True)
    there = {extent.start: extent.sizes for extent in news.extents}
    for extent in extents(log):
        if extent.start not in there:
            _remove(extent.start.folder(log))
        elif any(own > others for own, others in zip(extent.sizes, there[extent.start], strict=True)):
            _shorten(extent.start.folder(log), there[extent.start])
    for part in news.parts:
        folder = part.start.folder(log)
        folder.mkdir(exist_ok=True)
        # (a segment that lacks one of its files counts as none)
        for name in _FILES:
            (folder / name).touch(0o600)
        _write(folder / _FILES[part.file], part)


@dataclass(frozen=True, slots=True)
class _Range:
    start: SegmentStart
    file: int
    begin: int
    end: int


def _lacking(there: Iterable[Extent], has: Mapping[SegmentStart, tuple[int, int, int]]) -> Iterator[_Range]:
    for extent in there:
        own = has.get(extent.start, (0, 0, 0))
        for file, (begin, end) in enumerate(zip(own, extent.sizes, strict=True)):
            if begin < end:
                yield _Range(extent.start, file, begin, end)


def _cut(part: _Range, log: Path, limit: int) -> Part:
    length = min(part.end - part.begin, limit)
    with contextlib.suppress(FileNotFoundError):
        file = os.open(part.start.folder(log) / _FILES[part.file], os.O_RDONLY | os.O_CLOEXEC)
        try:
            return Part(part.start, part.file, part.begin, os.pread(file, length, part.begin))
        finally:
            os.close(file)
    return Part(part.start, part.file, part.begin, b"")


def _sizes(segment: Path) -> tuple[int, int, int]:
    # the index first: of the streams there is at least what it names
    index = _size(segment / "index") // RECORD.size * RECORD.size
    return _size(segment / STREAMS[0]), _size(segment / STREAMS[1]), index


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _write(path: Path, part: Part) -> None:
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        # a gap would be bytes that nobody wrote
        if os.fstat(file).st_size < part.offset:
            return
        data, offset = memoryview(part.data), part.offset
        while data:
            written = os.pwrite(file, data, offset)
            data, offset = data[written:], offset + written
    finally:
        os.close(file)


def _shorten(segment: Path, sizes: tuple[int, int, int]) -> None:
    for name, size in reversed(list(zip(_FILES, sizes, strict=True))):
        with contextlib.suppress(FileNotFoundError):
            if (segment / name).stat().st_size > size:
                os.truncate(segment / name, size)


def _remove(segment: Path) -> None:
    for name in reversed(_FILES):
        (segment / name).unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        segment.rmdir()
