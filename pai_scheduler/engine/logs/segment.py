"""One segment of a task's log on disk: a folder with the bytes of both streams and the order they came in.

`stdout` and `stderr` are the plain bytes (so `less` reads them), `index` has one fixed-size record per piece
that arrived. The first segment is the log's folder itself; the others lie in it, and their names say at which
offsets they begin. Offsets count from the beginning of the log, whatever was removed since.
Only the standard library's smallest modules are imported: a supervisor process per task loads this one.
"""

from __future__ import annotations

import contextlib
import os
import struct
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

STREAMS = ("stdout", "stderr")
#: both together, in order of arrival
MERGED = "all"
#: time in ns since the epoch, offset in the merged log, offset in the stream, length, stream number
RECORD = struct.Struct("<QQQIB3x")

_PREFIX = "from"
#: bytes of both streams that are put together piece by piece
_FEW_BYTES = 2**15
#: records read at once
_BLOCK = 256


@dataclass(frozen=True, slots=True)
class Piece:
    """Data that arrived at once on one stream; offsets and length in bytes."""

    time_ns: int
    merged_offset: int
    offset: int
    length: int
    stream: int

    def begin_in(self, stream: str) -> int:
        """Return how long a stream (or `all`) was before this piece."""
        if stream == MERGED:
            return self.merged_offset
        # both streams together are the merged log, so each record knows the length of both
        return self.offset if STREAMS[self.stream] == stream else self.merged_offset - self.offset

    def end_in(self, stream: str) -> int:
        """Return how long a stream (or `all`) was after this piece."""
        own = stream == MERGED or STREAMS[self.stream] == stream
        return self.begin_in(stream) + (self.length if own else 0)


@dataclass(frozen=True, slots=True, order=True)
class SegmentStart:
    """Start of a segment: bytes of both streams before it; ordered as they were written."""

    merged: int
    stdout: int

    @property
    def stderr(self) -> int:
        """Return the bytes of stderr before it."""
        return self.merged - self.stdout

    def of(self, stream: str) -> int:
        """Return the bytes of a stream (or `all`) before it."""
        return self.merged if stream == MERGED else self.stdout if stream == "stdout" else self.stderr

    def folder(self, log: Path) -> Path:
        """Return the segment's folder within a log."""
        return log / f"{_PREFIX}-{self.stdout}-{self.stderr}" if self.merged else log


FIRST = SegmentStart(0, 0)


def places(log: Path) -> list[SegmentStart]:
    """List the segments of a log, the oldest first; FileNotFoundError where there is no log."""
    found = [FIRST]
    for name in os.listdir(log):  # noqa: PTH208 (names are all that is asked)
        kind, _, numbers = name.partition("-")
        if kind == _PREFIX:
            stdout, _, stderr = numbers.partition("-")
            found.append(SegmentStart(int(stdout) + int(stderr), int(stdout)))
    return sorted(found)


def is_shortened(log: Path) -> bool:
    """Return whether a part of a log was removed because it grew beyond its limit."""
    try:
        found = places(log)
    except FileNotFoundError:
        return False
    if len(found) == 1:
        return False
    with Segment(log, FIRST) as first:
        return first.end(MERGED) < found[1].merged


class Segment:
    """Reads one segment; one whose files are not all there (yet, or no more) is empty. Close it after use."""

    def __init__(self, log: Path, place: SegmentStart) -> None:
        self.place = place
        folder = place.folder(log)
        # all at once: an open file can be read to its end, even when it is removed meanwhile
        self._files = [_open(folder / name) for name in (*STREAMS, "index")]
        self._index = self._files[-1]
        whole = min(self._files) >= 0
        self.count = os.fstat(self._index).st_size // RECORD.size if whole else 0
        self._last = self.piece(self.count - 1) if self.count else None

    def __enter__(self) -> Segment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files:
            if file >= 0:
                os.close(file)

    def end(self, stream: str) -> int:
        """Return the offset at which it ends in a stream (or `all`)."""
        return self._last.end_in(stream) if self._last else self.place.of(stream)

    def piece(self, number: int) -> Piece:
        """Return a piece by its number."""
        return Piece(*RECORD.unpack(os.pread(self._index, RECORD.size, number * RECORD.size)))

    def first_beyond(self, stream: str, offset: int) -> int:
        """Find the number of the first piece that ends beyond an offset (binary search)."""
        low, high = 0, self.count
        while low < high:
            middle = (low + high) // 2
            if self.piece(middle).end_in(stream) > offset:
                high = middle
            else:
                low = middle + 1
        return low

    def first_since(self, time_ns: int) -> int:
        """Find the number of the first piece that did not arrive before a time (binary search)."""
        return bisect_left(range(self.count), time_ns, key=lambda number: self.piece(number).time_ns)

    def read(self, stream: str, offset: int, limit: int) -> bytes:
        """Read from an offset within the segment on, at most `limit` bytes."""
        length = min(limit, self.end(stream) - offset)
        if length <= 0:
            return b""
        if stream == MERGED:
            return self._merged(offset, length)
        return self._bytes(STREAMS.index(stream), offset, length)

    def _merged(self, offset: int, length: int) -> bytes:
        """Read from both streams: at once where only one of them has something, else in halves or pieces."""
        begin, end = self._stdout_before(offset), self._stdout_before(offset + length)
        if end - begin == length:
            return self._bytes(0, begin, length)
        if end == begin:
            return self._bytes(1, offset - begin, length)
        if length <= _FEW_BYTES:
            return b"".join(data for _, data in self.read_pieces(MERGED, offset, length))
        half = length // 2
        first = self._merged(offset, half)
        # (of a log that lost its end in a crash there is nothing beyond)
        return first + self._merged(offset + half, length - half) if len(first) == half else first

    def _stdout_before(self, offset: int) -> int:
        """Return how much of the merged log before an offset is of stdout."""
        piece = self.piece(self.first_beyond(MERGED, offset - 1)) if offset > self.place.merged else None
        if piece is None:
            return self.place.stdout
        within = offset - piece.merged_offset if piece.stream == 0 else 0
        return piece.begin_in(STREAMS[0]) + within

    def read_pieces(self, stream: str, offset: int, limit: int) -> Iterator[tuple[int, bytes]]:
        """Read piece by piece, each with its time (ns)."""
        number = self.first_beyond(stream, offset)
        while limit > 0 and number < self.count:
            size = RECORD.size * min(_BLOCK, self.count - number)
            wanted: list[tuple[int, int, int, int]] = []
            for time_ns, merged, own, length, which in RECORD.iter_unpack(
                os.pread(self._index, size, number * RECORD.size)
            ):
                if stream != MERGED and STREAMS[which] != stream:
                    continue
                skip = offset - (merged if stream == MERGED else own)
                length = min(limit, length - skip)
                wanted.append((time_ns, which, own + skip, length))
                offset, limit = offset + length, limit - length
                if limit == 0:
                    break
            for time_ns, data, length in self._read_all(wanted):
                if data:
                    yield time_ns, data
                if len(data) < length:  # a crash of the machine kept the index and lost the data
                    return
            # the other stream may have been written for long
            number = number + _BLOCK if wanted else self.first_beyond(stream, offset)

    def _read_all(self, wanted: list[tuple[int, int, int, int]]) -> Iterator[tuple[int, bytes, int]]:
        """Read pieces that follow one another: what they have of a stream lies together."""
        begins, together = [0, 0], [b"", b""]
        for which in range(len(STREAMS)):
            own = [(offset, offset + length) for _, stream, offset, length in wanted if stream == which]
            if own:
                begins[which] = own[0][0]
                together[which] = self._bytes(which, own[0][0], own[-1][1] - own[0][0])
        for time_ns, which, offset, length in wanted:
            begin = offset - begins[which]
            yield time_ns, together[which][begin : begin + length], length

    def _bytes(self, which: int, offset: int, length: int) -> bytes:
        return os.pread(self._files[which], length, offset - self.place.of(STREAMS[which]))


def _open(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    return -1
