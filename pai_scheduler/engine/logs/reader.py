"""A task's log, read: stdout and stderr apart, and both together in order of arrival, with their times.

A log that grew beyond its limit keeps its first part and its newest part (`log_writer`). What was removed
between them keeps its offsets, so a byte is found at the same offset for as long as it is there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from .segment import MERGED, STREAMS, Piece, Segment, places

__all__ = ["MERGED", "STAMP_LENGTH", "STREAMS", "LogSlice", "Piece", "TaskLog", "stamp_lines"]

Result = TypeVar("Result")

#: "2026-01-02T03:04:05.678Z " before each line
STAMP_LENGTH = 25
#: bytes that are read at once to find the end of a line, and at most
_BLOCK, _LONGEST_LINE = 2**14, 2**20


@dataclass(frozen=True, slots=True)
class LogSlice:
    """Slice of a log: bytes that follow one another, and the offset of the first one in the log."""

    offset: int
    data: bytes

    @property
    def end(self) -> int:
        """Return the offset after the last byte."""
        return self.offset + len(self.data)


class TaskLog:
    """Reads the log in the first of `folders` that there is; no folder is an empty log.

    Streams: `stdout`, `stderr`, `all`. A log may grow, shrink in its middle and move to another of its
    folders at any time between two calls.
    """

    def __init__(self, *folders: Path) -> None:
        self._folders = folders

    @property
    def folder(self) -> Path:
        """Return the folder where it is, or where it would be."""
        return next((folder for folder in self._folders if folder.is_dir()), self._folders[0])

    @property
    def exists(self) -> bool:
        """Return whether there is a log at all: nobody wrote one, or it was removed."""
        return any(folder.is_dir() for folder in self._folders)

    def size(self, stream: str) -> int:
        """Return the number of bytes written so far, removed ones among them."""
        return self._steadily(lambda segments: segments[-1].end(stream) if segments else 0)

    def read(self, stream: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Read from `offset` (negative: from the end) at most `limit` bytes (None: to the present end).

        What was removed is left out and counts as read; `read_part` tells where that is.
        """
        size = self.size(stream)
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        end = size if limit is None else min(size, start + limit)
        parts = []
        while start < end:
            part = self.read_part(stream, start, end - start)
            if not part.data or part.offset >= end:
                break
            parts.append(part.data[: end - part.offset])
            start = part.end
        return b"".join(parts)

    def read_part(self, stream: str, offset: int, limit: int) -> LogSlice:
        """Read at most `limit` bytes from `offset` on, or from where the log goes on after removed bytes."""

        return self._steadily(lambda segments: _read(segments, stream, offset, limit))

    def since(self, stream: str, time_ms: int) -> int:
        """Find where the first line begins that did not begin before a time (ms since the epoch).

        Where there is none that is the end of the log. A line without an end for a megabyte is not looked
        through further: then it is what arrived first at that time.
        """

        def step(segments: list[Segment]) -> int:
            for segment in segments:
                if (number := segment.first_since(time_ms * 1_000_000)) < segment.count:
                    return _next_line(segments, stream, segment.piece(number).begin_in(stream))
            return max((segment.end(stream) for segment in segments), default=0)

        return self._steadily(step)

    def read_lines(
        self, stream: str, offset: int, limit: int, *, line_begins: bool
    ) -> tuple[LogSlice, bytes]:
        """Read as `read_part`; return also the same with the time before each line (see `stamp_lines`)."""

        def step(segments: list[Segment]) -> tuple[LogSlice, bytes]:
            begin, pieces = _locate(segments, stream, offset), list[tuple[int, bytes]]()
            read = 0
            for segment in segments:
                position = begin + read
                if segment.place.of(stream) <= position < segment.end(stream) and read < limit:
                    pieces.extend(segment.read_pieces(stream, position, limit - read))
                    read = sum(len(data) for _, data in pieces)
            stamped = stamp_lines(pieces, line_begins=line_begins or begin > offset)
            return LogSlice(begin, b"".join(data for _, data in pieces)), stamped

        return self._steadily(step)

    def removed(self, stream: str) -> range | None:
        """Return the offsets of what was removed in the middle, the first such part; None: nothing was."""

        def step(segments: list[Segment]) -> range | None:
            ends = [segment.end(stream) for segment in segments]
            for end, segment in zip(ends, segments[1:], strict=False):
                if segment.place.of(stream) > end:
                    return range(end, segment.place.of(stream))
            return None

        return self._steadily(step)

    def last_piece(self, stream: str = MERGED) -> Piece | None:
        """Return the newest piece of a stream, or None where nothing of it is there."""

        def step(segments: list[Segment]) -> Piece | None:
            for segment in reversed(segments):
                if (end := segment.end(stream)) > segment.place.of(stream):
                    return segment.piece(segment.first_beyond(stream, end - 1))
            return None

        return self._steadily(step)

    def newest_pieces(self) -> Iterator[Piece]:
        """Return all pieces, the newest first."""
        with ExitStack() as stack:
            for segment in reversed(self._open(stack)):
                for number in range(segment.count - 1, -1, -1):
                    yield segment.piece(number)

    def _open(self, stack: ExitStack) -> list[Segment]:
        folder = self.folder
        try:
            found = places(folder)
        except FileNotFoundError:
            return []
        opened = [stack.enter_context(Segment(folder, place)) for place in found]
        # one that is just being made or removed has no bytes; the newest says all the same where the log ends
        kept = [segment for segment in opened if segment.count]
        return kept if not opened or opened[-1].count else [*kept, opened[-1]]

    def _steadily(self, step: Callable[[list[Segment]], Result]) -> Result:
        """Look at the log, again where it moved meanwhile."""
        for _ in self._folders:
            before = self.folder
            with ExitStack() as stack:
                result = step(self._open(stack))
            if self.folder == before:
                break
        return result


def stamp_lines(pieces: list[tuple[int, bytes]], *, line_begins: bool) -> bytes:
    """Put before each line when its first byte arrived (RFC 3339, UTC, ms), `STAMP_LENGTH` bytes long.

    `line_begins`: the first byte begins a line.
    """
    parts = []
    for time_ns, data in pieces:
        stamp = _stamp(time_ns // 1_000_000)
        if line_begins:
            parts.append(stamp)
        line_begins = data.endswith(b"\n")
        body = data[:-1] if line_begins else data
        parts.append(body.replace(b"\n", b"\n" + stamp))
        if line_begins:
            parts.append(b"\n")
    return b"".join(parts)


def _read(segments: list[Segment], stream: str, offset: int, limit: int) -> LogSlice:
    begin, data = _locate(segments, stream, offset), b""
    for segment in segments:
        position = begin + len(data)
        if segment.place.of(stream) <= position < segment.end(stream) and len(data) < limit:
            data += segment.read(stream, position, limit - len(data))
    return LogSlice(begin, data)


def _next_line(segments: list[Segment], stream: str, offset: int) -> int:
    """Find the first offset from `offset` on at which a line begins."""
    position = max(0, offset - 1)
    while offset > 0 and position - offset < _LONGEST_LINE:
        part = _read(segments, stream, position, _BLOCK)
        if part.offset > position:  # what was before it was removed
            return max(offset, part.offset)
        if (found := part.data.find(b"\n")) >= 0:
            return position + found + 1
        if not part.data:
            return position
        position = part.end
    return offset


def _locate(segments: list[Segment], stream: str, offset: int) -> int:
    """Find the first offset from `offset` on at which there is something, or the end of the log."""
    for segment in segments:
        if offset < segment.end(stream):
            return max(offset, segment.place.of(stream))
    return max(offset, segments[-1].end(stream)) if segments else offset


@lru_cache(maxsize=64)
def _stamp(time_ms: int) -> bytes:
    moment = datetime.fromtimestamp(0, UTC)
    with contextlib.suppress(OverflowError, ValueError, OSError):
        moment = datetime.fromtimestamp(time_ms // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{time_ms % 1000:03}Z ".encode()
