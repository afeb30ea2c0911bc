"""Writes a task's log within a limit: its first part stays, and of the rest the newest.

The first segment takes a quarter of the limit. What comes later goes to a ring of six more, an eighth each:
when the last is full, the oldest of them is removed. So nothing is ever copied or written anew, and the task
never waits for more than the removal of a few files.
Only the standard library's smallest modules are imported: a supervisor process per task loads this one.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from .segment import RECORD, STREAMS, Piece, SegmentStart, is_shortened, places

#: Bytes that a log may take, its index among them, unless the administrator says otherwise.
DEFAULT_LIMIT = 2**30
#: A log cannot be kept shorter than this: its segments would be shorter than a line.
LEAST_LIMIT = 4096

_EIGHTHS_OF_FIRST = 2
_RING = 8 - _EIGHTHS_OF_FIRST
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class TaskLogWriter:
    """Appends to the log in `folder`, which it makes; takes up after a crash where the index ends.

    `limit`: most bytes on disk. A full disk never stops the task: what cannot be written is dropped and
    counted in `dropped`. `shortened`: part of the log was removed for its limit.
    """

    def __init__(self, folder: Path, limit: int = DEFAULT_LIMIT) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.dropped = 0
        self._folder = folder
        self._eighth = max(limit, LEAST_LIMIT) // 8
        self._places = places(folder)
        self.shortened = is_shortened(folder)
        self._place = self._places[-1]
        self._files = _open(self._place.folder(folder))
        #: pieces in the segment, and bytes of each stream in the whole log
        self._count, self._sizes = self._whole()
        self._cut()

    def append(self, stream: int, data: bytes, time_ns: int) -> None:
        """Add what arrived on a stream (0 stdout, 1 stderr)."""
        rest = memoryview(data)
        try:
            while rest:
                room = self._room()
                if room < len(rest) and self._count:
                    self._begin_segment()
                    continue
                self._write(stream, rest[:room], time_ns)
                rest = rest[room:]
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self.dropped += len(rest)
            self._cut()

    def append_all(self, pieces: Iterable[tuple[int, bytes, int]]) -> None:
        """Add pieces (stream, data, time) as `append` does, with one write for each file of a segment."""
        waiting: list[tuple[int, bytes, int]] = []
        room = self._room()
        for piece in pieces:
            length = len(piece[1])
            if 0 < length <= room:
                waiting.append(piece)
                room -= length + RECORD.size
                continue
            self._append_together(waiting)
            waiting = []
            self.append(*piece)
            room = self._room()
        self._append_together(waiting)

    def _append_together(self, pieces: Sequence[tuple[int, bytes, int]]) -> None:
        """Add pieces for which the segment has room."""
        sizes, merged = list(self._sizes), sum(self._sizes)
        parts: list[list[bytes]] = [[] for _ in self._files]
        *streams, index = parts
        for stream, data, time_ns in pieces:
            length = len(data)
            index.append(RECORD.pack(time_ns, merged, sizes[stream], length, stream))
            streams[stream].append(data)
            sizes[stream] += length
            merged += length
        try:
            # the index last: what it does not name is not there
            for file, part in zip(self._files, parts, strict=True):
                _write_all(file, memoryview(b"".join(part)))
        except OSError as error:
            if error.errno not in _FULL:
                raise
            self._cut()
            for stream, data, time_ns in pieces:  # as many as there is room for
                self.append(stream, data, time_ns)
        else:
            self._sizes, self._count = sizes, self._count + len(pieces)

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            os.close(file)
        self._files = []

    def _room(self) -> int:
        """Return how many bytes of one more piece the segment has room for."""
        most = self._eighth * (1 if self._place.merged else _EIGHTHS_OF_FIRST)
        return most - sum(self._sizes) + self._place.merged - RECORD.size * (self._count + 1)

    def _write(self, stream: int, data: memoryview, time_ns: int) -> None:
        offset = self._sizes[stream]
        _write_all(self._files[stream], data)
        record = RECORD.pack(time_ns, sum(self._sizes), offset, len(data), stream)
        _write_all(self._files[-1], memoryview(record))
        self._sizes[stream] += len(data)
        self._count += 1

    def _begin_segment(self) -> None:
        """Go on in a new segment; the oldest goes where there are enough."""
        ring = self._places[1:]
        for place in ring[: max(0, len(ring) - _RING + 1)]:
            _remove(place.folder(self._folder))
            self._places.remove(place)
            self.shortened = True
        place = SegmentStart(sum(self._sizes), self._sizes[0])
        segment = place.folder(self._folder)
        try:
            segment.mkdir()
            files = _open(segment)
        except OSError:
            _remove(
                segment
            )  # a full disk: what fits goes to the old segment, so this must not say where it ends
            raise
        self.close()
        self._places.append(place)
        self._place, self._files, self._count = place, files, 0

    def _whole(self) -> tuple[int, list[int]]:
        """Find where both the index and the streams are whole, and go on from there."""
        index = self._files[-1]
        there = [
            self._place.of(name) + os.fstat(file).st_size
            for name, file in zip(STREAMS, self._files, strict=False)
        ]
        low, high = 0, os.fstat(index).st_size // RECORD.size
        while low < high:  # how many records have all their data: they grow with their number
            middle = (low + high + 1) // 2
            if all(_ends(index, middle)[stream] <= there[stream] for stream in range(len(STREAMS))):
                low = middle
            else:
                high = middle - 1
        return low, _ends(index, low) if low else [self._place.of(name) for name in STREAMS]

    def _cut(self) -> None:
        """Drop what a crash or a full disk left behind the last whole piece."""
        os.ftruncate(self._files[-1], self._count * RECORD.size)
        for name, file, size in zip(STREAMS, self._files, self._sizes, strict=False):
            os.ftruncate(file, size - self._place.of(name))


def _ends(index: int, count: int) -> list[int]:
    """Return how long both streams are with the first `count` pieces of a segment."""
    piece = Piece(*RECORD.unpack(os.pread(index, RECORD.size, (count - 1) * RECORD.size)))
    return [piece.end_in(name) for name in STREAMS]


def _open(segment: Path) -> list[int]:
    """Open a segment's files for writing: both streams and the index."""
    files: list[int] = []
    try:
        for name in (*STREAMS, "index"):
            flags = os.O_CREAT | os.O_APPEND | os.O_RDWR | os.O_CLOEXEC
            files.append(os.open(segment / name, flags, 0o600))
    except OSError:
        for file in files:
            os.close(file)
        raise
    return files


def _remove(segment: Path) -> None:
    """Remove a segment; without its index it is none, so nobody sees a half of it."""
    for name in ("index", *STREAMS):
        with contextlib.suppress(FileNotFoundError):
            (segment / name).unlink()
    with contextlib.suppress(OSError):
        segment.rmdir()


def _write_all(file: int, data: memoryview) -> None:
    while data:
        data = data[os.write(file, data) :]
