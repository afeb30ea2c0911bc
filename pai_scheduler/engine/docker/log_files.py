"""Docker's own files of a container's log, read where this process may look into them."""

from __future__ import annotations

import asyncio
import calendar
import contextlib
import logging
import os
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from inotify_simple import INotify, flags

# Frames: what Docker recorded of a container's output, one by one, and where the newest known one stands.

#: What Docker recorded at once: its time in ns, its stream (0 stdout, 1 stderr), and the bytes.
Frame = tuple[int, int, bytes]

#: stream number (1 stdout, 2 stderr), length of what follows
_HEADER = struct.Struct(">BxxxL")
#: "2026-01-02T03:04:05.123456789Z " stands before each frame's bytes.
_TIME_LENGTH = 31


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest known frame: the `number`-th with this time in this stream (a long line has many)."""

    time_ns: int
    stream: int
    number: int
    #: The line may go on in another frame with the same time.
    goes_on: bool


class Search:
    """Finds in the last `tail` frames (0: in all) those that are newer than the newest known one."""

    def __init__(self, mark: Mark | None, tail: int) -> None:
        self.mark, self._tail = mark, tail
        self.found = mark is None
        #: how many frames have the mark's time, and how many there were in all
        self.seen = self.total = 0
        #: too few were asked for: the mark may be before them
        self.is_in_vain = False
        self._preceded = False

    def new_of(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """Return the new ones of the next frames."""
        self.total += len(frames)
        mark = self.mark
        if self.found or mark is None:
            return frames
        for position, (time_ns, stream, _) in enumerate(frames):
            if stream != mark.stream:
                continue
            if time_ns == mark.time_ns:
                if self._tail and not self._preceded and (mark.goes_on or mark.number > 1):
                    self.is_in_vain = True  # it may begin within a long line
                    break
                self.seen += 1
                if self.seen == mark.number:
                    self.found = True
                    return frames[position + 1 :]
            elif self.seen:  # Docker has less of that line than there was
                self.found = True
                return frames[position:]
            else:
                self._preceded = True
        return ()


def parse_frames(received: bytes) -> tuple[list[Frame], int]:
    """Take Docker's stream of frames apart; return the whole ones, and how many bytes they are."""
    frames: list[Frame] = []
    begin, size = 0, len(received)
    text, seconds = b"", 0
    while begin + _HEADER.size <= size:
        stream, length = _HEADER.unpack_from(received, begin)
        payload = begin + _HEADER.size
        end = payload + length
        if end > size:
            break
        if (now := received[payload : payload + 19]) != text:
            text, seconds = now, _seconds(now)
        # only the forgotten end of a line leaves nothing but the time
        data = received[payload + _TIME_LENGTH : end] or b"\n"
        frames.append((seconds + int(received[payload + 20 : payload + 29]), stream - 1, data))
        begin = end
    return frames, begin


def _seconds(text: bytes) -> int:
    """Read "2026-01-02T03:04:05" as ns since the epoch."""
    year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    return calendar.timegm((year, month, day, hour, minute, second)) * 10**9


# Docker's own files of a container's log, read without Docker where this process may look into them.
#
# Docker's log driver `local` writes each frame as its length, a protobuf message, and its length again
# (Moby: daemon/logger/local, api/types/plugins/logdriver). A full file gets another name and a new one
# begins; the last few are kept. An open file can be read to its end, whatever its name is by then, even
# when it has none.
#
# Docker itself, asked for a log, sends each line by itself: that costs it and us more than everything else.

CURRENT = "container.log"
_LENGTH = struct.Struct(">I")
#: Field 1, the source ("stdout"), and the key and first eight bytes of field 2, the time, which has nine.
_HEAD = struct.Struct("<8sBQB")
_STREAMS = {b"\n\x06stdout": 0, b"\n\x06stderr": 1}
_TIME_KEY, _LINE_KEY, _PARTIAL = 0x10, 0x1A, b"\x20\x01"
_SHORTEST, _LONGEST = _HEAD.size, 2**16


class UnreadableLogError(Exception):
    """The files are not there, not open to us, not as they should be, or what follows is gone."""


class RecordedLog:
    """Reads the log that Docker keeps in `folder` from one place on; to be used by one thread at a time.

    `since`: a time in ns; the first frame read is of that time or the last before it (None: the oldest).
    """

    def __init__(self, folder: Path, since: int | None) -> None:
        self._folder = folder
        self._file = -1
        self._position = 0
        self._rest = b""
        try:
            self._open_at(since)
        except OSError as error:
            raise UnreadableLogError(str(error)) from error

    @property
    def path(self) -> Path:
        """Return the file that Docker writes at present."""
        return self._folder / CURRENT

    def close(self) -> None:
        """Close what is open."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def read(self, limit: int) -> Sequence[Frame]:
        """Read on, about `limit` bytes (more than the longest frame has); nothing at the present end."""
        try:
            while True:
                frames = self._read(limit)
                if frames or self._is_newest():
                    return frames
                # what was written before it got its new name
                if frames := self._read(limit):
                    return frames
                self._go_on()
        except OSError as error:
            raise UnreadableLogError(str(error)) from error

    def behind(self) -> int:
        """Return how many bytes were written, at least, and not read yet."""
        with contextlib.suppress(OSError):
            rest = os.fstat(self._file).st_size - self._position
            return rest if self._is_newest() else rest + self.path.stat().st_size
        return 0

    def _open_at(self, since: int | None) -> None:
        files = self._open_all()
        newest_first = list(reversed(files))
        try:
            for number, file in enumerate(newest_first):
                position = 0 if since is None else _last_before(file, since)
                is_oldest = number == len(newest_first) - 1
                if is_oldest or (since is not None and position is not None):
                    self._file, self._position = file, position or 0
                    return
        finally:
            for file in files:
                if file != self._file:
                    os.close(file)

    def _open_all(self) -> list[int]:
        """Open all files, the oldest first, as they are at one moment."""
        while True:
            names = [CURRENT, *(f"{CURRENT}.{n}" for n in range(1, 10))]
            files: list[int] = []
            for name in names:
                try:
                    files.append(os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC))
                except FileNotFoundError:
                    if not files:
                        raise
                    break
            inodes = [os.fstat(file).st_ino for file in files]
            if self.path.stat().st_ino == inodes[0] and len(set(inodes)) == len(inodes):
                return files[::-1]
            for file in files:
                os.close(file)

    def _is_newest(self) -> bool:
        try:
            return self.path.stat().st_ino == os.fstat(self._file).st_ino
        except FileNotFoundError:  # just between two
            return True

    def _go_on(self) -> None:
        """Go on with the file after the one that was read to its end."""
        if self._rest:
            raise UnreadableLogError("a file ends within a frame")
        own = os.fstat(self._file).st_ino
        files = self._open_all()
        inodes = [os.fstat(file).st_ino for file in files]
        following = inodes.index(own) + 1 if own in inodes else None
        for number, file in enumerate(files):
            if number != following:
                os.close(file)
        if following is None or following == len(files):
            raise UnreadableLogError("the file that was read is gone")
        os.close(self._file)
        self._file, self._position = files[following], 0

    def _read(self, limit: int) -> Sequence[Frame]:
        received = os.pread(self._file, limit, self._position)
        self._position += len(received)
        received = self._rest + received if self._rest else received
        frames, taken = parse_records(received)
        self._rest = received[taken:]
        return frames


def parse_records(recorded: bytes) -> tuple[list[Frame], int]:
    """Take Docker's records apart; return the whole ones, and how many bytes they are; UnreadableLogError."""
    frames: list[Frame] = []
    begin, size = 0, len(recorded)
    while begin + 4 <= size:
        (length,) = _LENGTH.unpack_from(recorded, begin)
        if not _SHORTEST <= length <= _LONGEST:
            raise UnreadableLogError(f"a record of {length} bytes")
        end = begin + 4 + length
        if end + 4 > size:
            break
        if _LENGTH.unpack_from(recorded, end)[0] != length:
            raise UnreadableLogError("a record does not end where it should")
        frames.append(_frame(recorded, begin + 4, end))
        begin = end + 4
    return frames, begin


def _frame(recorded: bytes, begin: int, end: int) -> Frame:
    """Read one message. Of a line in pieces no piece has the end of line, as in what Docker sends."""
    source, key, low, high = _HEAD.unpack_from(recorded, begin)
    stream = _STREAMS.get(source)
    # (seven bits of each byte; the ninth is the last of all times from 1972 to 2262)
    if stream is None or key != _TIME_KEY or high > 0x7F:
        raise UnreadableLogError("a record that is not understood")
    low &= 0x7F7F7F7F7F7F7F7F
    low = low & 0x007F007F007F007F | (low & 0x7F007F007F007F00) >> 1
    low = low & 0x00003FFF00003FFF | (low & 0x3FFF00003FFF0000) >> 2
    time_ns = low & 0x0FFFFFFF | (low & 0x0FFFFFFF00000000) >> 4 | high << 56
    position = begin + _HEAD.size
    line = b""
    if position < end and recorded[position] == _LINE_KEY:
        length = shift = 0
        while True:
            position += 1
            byte = recorded[position]
            length |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        position += 1
        line = recorded[position : position + length]
        position += length
    if position == end:
        return time_ns, stream, line + b"\n"
    if position > end or recorded[position : position + 2] != _PARTIAL:
        raise UnreadableLogError("a record that is not understood")
    return time_ns, stream, line or b"\n"


def _last_before(file: int, time_ns: int) -> int | None:
    """Find where the last record before a time begins, from the end of a file on; None: there is none."""
    position = os.fstat(file).st_size
    while position > 0:
        if position < _LENGTH.size:
            raise UnreadableLogError("a file does not end with a record")
        length: int = _LENGTH.unpack(os.pread(file, 4, position - 4))[0]
        position -= length + 8
        if not _SHORTEST <= length <= _LONGEST or position < 0:
            raise UnreadableLogError("a file does not end with a record")
        frames, _ = parse_records(os.pread(file, length + 8, position))
        if not frames:
            raise UnreadableLogError("a file does not end with a record")
        if frames[0][0] < time_ns:
            return position
    return None


# Tells when one of Docker's files was written or got another name: the kernel tells us (inotify).

_log = logging.getLogger(__name__)

_CHANGED = flags.MODIFY | flags.MOVE_SELF | flags.ONESHOT


@dataclass(frozen=True, slots=True)
class DockerFiles:
    """Folder of Docker's own files of each container, which are open to us, and the notifier of changes."""

    folder: Path
    news: FileNews

    def log_folder(self, container: str) -> Path:
        """Return where the driver `local` records a container's log."""
        return self.folder / container / "local-logs"


class FileNews:
    """Watches files for the whole engine; to be used in the event loop only."""

    def __init__(self) -> None:
        self._inotify: INotify | None = None
        #: whom a watch of the kernel wakes
        self._woken: dict[int, asyncio.Event] = {}

    async def start(self) -> None:
        """Ask the kernel for its events; where it has none to give, `watch` says so."""
        try:
            # (the library looks for libc by starting a program)
            inotify = await asyncio.to_thread(INotify, nonblocking=True)
        except OSError as error:
            _log.warning("the kernel cannot tell when containers write, Docker is asked: %s", error)
            return
        self._inotify = inotify
        asyncio.get_running_loop().add_reader(inotify.fileno(), self._hear)

    def close(self) -> None:
        """Hear no more."""
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None
            self._woken.clear()

    def watch(self, path: Path, news: asyncio.Event) -> bool:
        """Have `news` set at the next change of a file; False where the kernel does not watch it."""
        if self._inotify is None:
            return False
        try:
            self._woken[self._inotify.add_watch(path, _CHANGED)] = news
        except FileNotFoundError:  # just between two files of one log, or removed
            asyncio.get_running_loop().call_later(0.05, news.set)
        except OSError as error:
            _log.warning("the kernel does not watch a container's log, Docker is asked: %s", error)
            return False
        return True

    def dismiss(self, news: asyncio.Event) -> None:
        """Tell `news` no more."""
        for watch in [watch for watch, woken in self._woken.items() if woken is news]:
            del self._woken[watch]
            if self._inotify is not None:
                with contextlib.suppress(OSError):  # it has just told, and is gone
                    self._inotify.rm_watch(watch)

    def _hear(self) -> None:
        if self._inotify is None:
            return
        for event in self._inotify.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                for news in self._woken.values():
                    news.set()
            elif (told := self._woken.pop(event.wd, None)) is not None:
                told.set()
