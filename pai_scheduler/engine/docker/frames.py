"""Frames: what Docker recorded of a container's output, one by one, and where the newest known one stands."""

from __future__ import annotations

import calendar
import struct
from collections.abc import Sequence
from dataclasses import dataclass

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
