"""Position in a task's log that an answer has come to: what a reader needs to go on after a break."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

#: "2026-01-02T03:04:05.678Z " before each line, where times are asked for
STAMP_LENGTH = 25


@dataclass(frozen=True, slots=True)
class LogPart:
    """A part of an answer, and the offset in the log of what follows it."""

    data: bytes
    next_offset: int


class LogPosition:
    """Counts the bytes of the log in an answer, which may have times and a line about a removed part too.

    `headers` are the answer's, with lower-case names or in a mapping that does not care.
    """

    def __init__(self, headers: Mapping[str, str], *, timestamps: bool) -> None:
        self.offset = int(headers["x-log-offset"])
        self._timestamps = timestamps
        self._line_begins = True
        #: bytes that are not the log's, still to come
        self._foreign = 0
        self._gap: tuple[int, int] | None = None
        if removed := headers.get("x-log-removed"):
            start, _, stop = removed.partition("-")
            self._gap = int(start), int(stop)
            self._notice = int(headers["x-log-notice"])

    def count(self, data: bytes) -> LogPart:
        """Take the next part of the answer."""
        at = 0
        while at < len(data):
            if self._foreign:
                step = min(self._foreign, len(data) - at)
                self._foreign -= step
            elif self._gap is not None and self.offset >= self._gap[0]:
                self.offset, self._gap = self._gap[1], None
                self._foreign, self._line_begins = self._notice, True
                continue
            elif self._timestamps and self._line_begins:
                self._foreign, self._line_begins = STAMP_LENGTH, False
                continue
            else:
                step = self._own(data, at)
                self.offset += step
            at += step
        return LogPart(data, self.offset)

    def _own(self, data: bytes, at: int) -> int:
        """Return the length of what is the log's own: to the end of a line where the next one has a time."""
        end = len(data)
        if self._gap is not None:
            end = min(end, at + self._gap[0] - self.offset)
        if self._timestamps and (line_end := data.find(b"\n", at, end)) >= 0:
            self._line_begins = True
            return line_end + 1 - at
        return end - at
