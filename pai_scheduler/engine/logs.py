"""A task's log on disk: stdout and stderr apart, and both together in order of arrival.

A folder holds `stdout` and `stderr` (the plain bytes, so `less` reads them) and `index`, one fixed-size
record per piece that arrived. The merged log is read through the index and is stored nowhere.
Only the standard library's smallest modules are imported: a supervisor process per task loads this one.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STREAMS = ("stdout", "stderr")
#: time in ns since the epoch, offset in the merged log, offset in the stream, length, stream number
_RECORD = struct.Struct("<QQQIB3x")


@dataclass(frozen=True, slots=True)
class Piece:
    """What arrived at once on one stream; offsets and length in bytes."""

    time_ns: int
    merged_offset: int
    offset: int
    length: int
    stream: int


class TaskLog:
    """Reads the log in `folder`; missing files are an empty log. Streams: `stdout`, `stderr`, `all`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def size(self, stream: str) -> int:
        """Give the number of bytes written so far."""
        if stream == "all":
            last = self.last_piece()
            return last.merged_offset + last.length if last else 0
        try:
            return (self.folder / stream).stat().st_size
        except FileNotFoundError:
            return 0

    def read(self, stream: str, offset: int = 0, limit: int | None = None) -> bytes:
        """Read from `offset` (negative: from the end) at most `limit` bytes (None: to the present end)."""
        size = self.size(stream)
        start = max(0, size + offset) if offset < 0 else min(offset, size)
        length = size - start if limit is None else min(limit, size - start)
        if length <= 0:
            return b""
        return self._read_merged(start, length) if stream == "all" else self._read_file(stream, start, length)

    def last_piece(self) -> Piece | None:
        """Give the newest piece, or None for an empty log."""
        try:
            with open(self.folder / "index", "rb") as index:
                count = os.fstat(index.fileno()).st_size // _RECORD.size
                return _piece(index.fileno(), count - 1) if count else None
        except FileNotFoundError:
            return None

    def newest_pieces(self) -> Iterator[Piece]:
        """Give all pieces, the newest first."""
        try:
            with open(self.folder / "index", "rb") as index:
                count = os.fstat(index.fileno()).st_size // _RECORD.size
                for number in range(count - 1, -1, -1):
                    yield _piece(index.fileno(), number)
        except FileNotFoundError:
            return

    def _read_file(self, stream: str, start: int, length: int) -> bytes:
        with open(self.folder / stream, "rb") as file:
            return os.pread(file.fileno(), length, start)

    def _read_merged(self, start: int, length: int) -> bytes:
        parts: list[bytes] = []
        with (
            open(self.folder / STREAMS[0], "rb") as stdout,
            open(self.folder / STREAMS[1], "rb") as stderr,
            open(self.folder / "index", "rb") as index,
        ):
            files = (stdout.fileno(), stderr.fileno())
            number = _piece_at(index.fileno(), start)
            while length > 0:
                piece = _piece(index.fileno(), number)
                skip = start - piece.merged_offset
                wanted = min(length, piece.length - skip)
                part = os.pread(files[piece.stream], wanted, piece.offset + skip)
                parts.append(part)
                if len(part) < wanted:  # a crash of the machine kept the index and lost the data
                    break
                start, length, number = start + wanted, length - wanted, number + 1
        return b"".join(parts)


class TaskLogWriter:
    """Appends to the log in `folder`, which it makes; takes up after a crash where the index ends.

    A full disk never stops the task: what cannot be written is dropped and counted in `dropped`.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.dropped = 0
        flags = os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._files = [os.open(folder / name, os.O_WRONLY | flags, 0o600) for name in STREAMS]
        self._index = os.open(folder / "index", os.O_RDWR | flags, 0o600)
        self._recover()

    def append(self, stream: int, data: bytes, time_ns: int) -> None:
        """Add what arrived on a stream (0 stdout, 1 stderr)."""
        if not data:
            return
        offset = self._sizes[stream]
        try:
            _write_all(self._files[stream], data)
            _write_all(self._index, _RECORD.pack(time_ns, self._merged, offset, len(data), stream))
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
                raise
            self.dropped += len(data)
            self._cut()
            return
        self._sizes[stream] += len(data)
        self._merged += len(data)
        self._count += 1

    def close(self) -> None:
        """Close the files."""
        for file in (*self._files, self._index):
            os.close(file)

    def _recover(self) -> None:
        """Find where both the index and the streams are whole, and go on from there."""
        there = [os.fstat(file).st_size for file in self._files]
        self._count = number = os.fstat(self._index).st_size // _RECORD.size
        sizes: dict[int, int] = {}
        while number > 0 and len(sizes) < len(STREAMS):
            number -= 1
            piece = _piece(self._index, number)
            end = piece.offset + piece.length
            if piece.stream not in sizes and end > there[piece.stream]:
                self._count, sizes = number, {}  # its data are lost: neither it nor what came later counts
                continue
            sizes.setdefault(piece.stream, end)
        self._sizes = [sizes.get(stream, 0) for stream in range(len(STREAMS))]
        last = _piece(self._index, self._count - 1) if self._count else None
        self._merged = last.merged_offset + last.length if last else 0
        self._cut()

    def _cut(self) -> None:
        """Drop what a crash or a full disk left behind the last whole piece."""
        os.ftruncate(self._index, self._count * _RECORD.size)
        for file, size in zip(self._files, self._sizes, strict=True):
            os.ftruncate(file, size)


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]


def _piece(index: int, number: int) -> Piece:
    return Piece(*_RECORD.unpack(os.pread(index, _RECORD.size, number * _RECORD.size)))


def _piece_at(index: int, merged_offset: int) -> int:
    """Find the number of the piece that holds an offset of the merged log (binary search)."""
    low, high = 0, os.fstat(index).st_size // _RECORD.size - 1
    while low < high:
        middle = (low + high + 1) // 2
        if _piece(index, middle).merged_offset <= merged_offset:
            low = middle
        else:
            high = middle - 1
    return low
