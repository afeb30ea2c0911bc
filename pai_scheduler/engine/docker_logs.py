"""A container's log, from Docker to the task's log on disk: nothing lost, nothing twice, across restarts.

Docker sends every line (or 16 KiB of one) as a frame with its time in ns. Each frame becomes one piece of
the task's log, so the log itself remembers which frames it has: after a break Docker is asked to begin a
little before the newest piece, and frames that are already there are left out.
"""

from __future__ import annotations

import asyncio
import calendar
import struct
from collections import Counter
from collections.abc import AsyncIterator, Callable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import aiodocker
import aiohttp

from .docker_api import DockerApi, UnreachableError
from .log_writer import TaskLogWriter
from .logs import MERGED, STREAMS, Piece, TaskLog

#: stream number (1 stdout, 2 stderr), length of what follows
_HEADER = struct.Struct(">BxxxL")
#: "2026-01-02T03:04:05.123456789Z " stands before each frame's bytes.
_TIME_LENGTH = 31
#: stdout and stderr are stamped by two writers, which may overtake one another by a moment.
_OVERLAP_NS = 2 * 10**9
_RETRY_SECONDS = 0.5
#: Docker records a longer line in pieces of this size.
_PIECE = 2**14


class Frame(NamedTuple):
    """What Docker recorded at once: stream 0 stdout, 1 stderr."""

    time_ns: int
    stream: int
    data: bytes


class LogFollower:
    """Copies one container's log into `folder`, of which it keeps at most `limit` bytes.

    `on_dropped` is called once when a full disk loses some.
    """

    def __init__(
        self, api: DockerApi, container: str, folder: Path, limit: int, on_dropped: Callable[[], None]
    ) -> None:
        self._api, self._container, self._folder, self._limit = api, container, folder, limit
        self._on_dropped = on_dropped
        self._said_dropped = False
        self._writer: TaskLogWriter | None = None
        #: By stream: the time of a line whose end is still to be written, or None.
        self._open_lines: list[int | None] = []

    def close(self) -> None:
        """Close the log; what it lacks can be fetched by another follower."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def follow(self) -> None:
        """Copy what there is and what comes, until the container has ended; breaks are bridged."""
        while True:
            try:
                await self._copy(follow=True)
            except UnreachableError:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def drain(self) -> None:
        """Copy what is still missing of an ended container's log."""
        while True:
            try:
                await self._copy(follow=False)
            except UnreachableError:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _copy(self, *, follow: bool) -> None:
        # one for as long as possible: to open a long log means to look for its end
        if self._writer is None:
            self._writer = TaskLogWriter(self._folder, self._limit)
            self._open_lines = [_open_line(TaskLog(self._folder), stream) for stream in range(len(STREAMS))]
        try:
            since, known = _known(TaskLog(self._folder))
            params = {"follow": str(int(follow)), "stdout": "1", "stderr": "1", "timestamps": "1"}
            if since:
                params["since"] = f"{since // 10**9}.{since % 10**9:09}"
            async with self._api.log_stream(self._container, **params) as response:
                async for frame in frames(response):
                    key = (frame.time_ns, frame.stream, len(frame.data))
                    if known[key] > 0:
                        known[key] -= 1
                        continue
                    self._write(self._writer, frame)
        except aiodocker.DockerError as error:
            if error.status != 404:
                raise UnreachableError(error.message) from error

    def _write(self, writer: TaskLogWriter, frame: Frame) -> None:
        """Add a frame to the log.

        Docker 20.10 forgets the end of a line that it recorded in pieces. It is added as soon as something
        follows; until then the piece may as well be the end of the output, which has no end of line.
        """
        if (since := self._open_lines[frame.stream]) is not None:
            writer.append(frame.stream, b"\n", since)
        writer.append(frame.stream, frame.data, frame.time_ns)
        ends = frame.data.endswith(b"\n") or len(frame.data) == _PIECE
        self._open_lines[frame.stream] = None if ends else frame.time_ns
        if writer.dropped and not self._said_dropped:
            self._said_dropped = True
            self._on_dropped()


async def frames(response: aiohttp.ClientResponse) -> AsyncIterator[Frame]:
    """Take Docker's stream of frames apart; UnreachableError where it breaks off."""
    buffer = bytearray()
    try:
        async for chunk in response.content.iter_any():
            buffer += chunk
            start = 0
            while len(buffer) - start >= _HEADER.size:
                stream, length = _HEADER.unpack_from(buffer, start)
                end = start + _HEADER.size + length
                if len(buffer) < end:
                    break
                payload = bytes(buffer[start + _HEADER.size : end])
                # only the forgotten end of a line leaves nothing but the time
                yield Frame(_time_ns(payload), stream - 1, payload[_TIME_LENGTH:] or b"\n")
                start = end
            del buffer[:start]
    except (aiohttp.ClientError, OSError) as error:
        raise UnreachableError(str(error)) from error
    if buffer:
        raise UnreachableError("the log broke off within a line")


def _known(log: TaskLog) -> tuple[int, Counter[tuple[int, int, int]]]:
    """Say from which time (ns) on to ask for frames, and which of those are there already."""
    known: Counter[tuple[int, int, int]] = Counter()
    since = 0
    later: Piece | None = None
    for piece in log.newest_pieces():
        if later is None:
            since = max(1, piece.time_ns - _OVERLAP_NS)
        elif piece.time_ns < since - _OVERLAP_NS:
            break
        elif piece.end_in(MERGED) < later.merged_offset:
            # what was removed between them was there: it is not to come a second time
            since = max(since, later.time_ns)
            break
        known[(piece.time_ns, piece.stream, piece.length)] += 1
        later = piece
    return since, known


def _open_line(log: TaskLog, stream: int) -> int | None:
    """Find the time of a stream's last piece, where that is an unfinished line (`LogFollower._write`)."""
    if log.read(STREAMS[stream], -1) in (b"", b"\n"):
        return None
    last = log.last_piece(STREAMS[stream])
    return None if last is None or last.length == _PIECE else last.time_ns


def _time_ns(payload: bytes) -> int:
    return _seconds(payload[:19]) * 10**9 + int(payload[20:29])


@lru_cache(maxsize=16)
def _seconds(text: bytes) -> int:
    year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    return calendar.timegm((year, month, day, hour, minute, second))
