"""A container's log, from Docker to the task's log on disk: nothing lost, nothing twice, across restarts.

Docker sends every line (or 16 KiB of one) as a frame with its time in ns. Each frame becomes one piece of
the task's log, so the log itself tells up to which frame it goes. Docker's own log is rotated; to follow one
over a rotation loses and doubles lines (Docker 20.10), so it is read from the newest known frame to its end,
again whenever the container has written. Where that frame was rotated away, a line in the log says so.
"""

from __future__ import annotations

import asyncio
import calendar
import contextlib
import struct
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import aiodocker
import aiohttp

from .docker_api import DockerApi, UnreachableError
from .docker_output import PIECE, Output
from .log_writer import TaskLogWriter
from .logs import MERGED, STREAMS, Piece, TaskLog

#: stream number (1 stdout, 2 stderr), length of what follows
_HEADER = struct.Struct(">BxxxL")
#: "2026-01-02T03:04:05.123456789Z " stands before each frame's bytes.
_TIME_LENGTH = 31
_RETRY_SECONDS = 0.5
#: Docker's files of one log, and the least and the largest size of one (bytes).
_FILES, _LEAST_FILE, _LARGEST_FILE = 4, 2**24, 2**28
#: How long to gather what is written before it is read; and when to look again after the last of it, as a
#: line may be heard a moment before Docker records it.
_GATHER_SECONDS, _AGAIN_SECONDS = 0.02, (0.08, 0.5)
#: How many frames to ask for beyond those that were heard of, and how many times more if that was too few.
_SPARE, _MORE, _MOST = 64, 16, 10**6

GAP = b"[some output is missing here: more was written than Docker keeps while the scheduler was away]\n"


class Frame(NamedTuple):
    """What Docker recorded at once: stream 0 stdout, 1 stderr."""

    time_ns: int
    stream: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Mark:
    """The newest known frame: the `number`-th with this time in this stream (a long line has many)."""

    time_ns: int
    stream: int
    number: int
    #: The line may go on in another frame with the same time.
    goes_on: bool


def file_size(limit: int) -> int:
    """Give the bytes of one of Docker's files for a log of which `limit` bytes are kept."""
    return min(max(limit // _FILES, _LEAST_FILE), _LARGEST_FILE)


def log_config(limit: int) -> dict[str, Any]:
    """Tell Docker how to record: by the only driver that keeps bytes as they are; about `limit` bytes."""
    sizes = {"max-size": str(file_size(limit)), "max-file": str(_FILES), "compress": "false"}
    return {"Type": "local", "Config": sizes}


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
        self._output = Output(api, container, file_size(limit) // 2)
        self._writer: TaskLogWriter | None = None
        #: By stream: the time of a line whose end is still to be written, or None.
        self._open_lines: list[int | None] = []
        #: By stream: the newest frame; and which of them is the newest of all.
        self._marks: list[Mark | None] = []
        self._newest: Mark | None = None
        #: streams in which it is still to be said that something is missing
        self._gaps: set[int] = set()

    def close(self) -> None:
        """Close the log; what it lacks can be fetched by another follower."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    async def follow(self) -> None:
        """Copy what there is and what comes, until cancelled; breaks are bridged."""
        async with asyncio.TaskGroup() as both:
            both.create_task(self._copy_news())
            both.create_task(self._listen())

    async def drain(self) -> None:
        """Copy what is still missing of the log."""
        while True:
            try:
                await self._copy()
            except UnreachableError:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(UnreachableError, aiodocker.DockerError):
                await self._output.listen()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _copy_news(self) -> None:
        looks = 0
        while True:
            if await self._output.news(_AGAIN_SECONDS[looks] if looks < len(_AGAIN_SECONDS) else None):
                looks = 0
                await asyncio.sleep(_GATHER_SECONDS)
            else:
                looks += 1
            await self.drain()

    async def _copy(self) -> None:
        """Copy from the newest known frame on to the present end."""
        # one for as long as possible: to open a long log means to look for its end
        if self._writer is None:
            self._open()
        tail = min(self._output.frames + _SPARE, _MOST)
        self._output.reading()
        try:
            while not await self._read(tail):
                tail = tail * _MORE if 0 < tail * _MORE <= _MOST else 0
        except aiodocker.DockerError as error:
            if error.status != 404:
                raise UnreachableError(error.message) from error

    def _open(self) -> None:
        self._writer = TaskLogWriter(self._folder, self._limit)
        log = TaskLog(self._folder)
        self._open_lines = [_open_line(log, stream) for stream in range(len(STREAMS))]
        self._newest = _newest(log)
        self._marks = [None] * len(STREAMS)
        if self._newest is not None:
            self._marks[self._newest.stream] = self._newest

    async def _read(self, tail: int) -> bool:
        """Read the last `tail` frames (0: all), keep the new ones; False where they are too few to tell."""
        mark = self._newest
        found = mark is None
        seen = total = 0
        preceded = False
        params = {"follow": "0", "stdout": "1", "stderr": "1", "timestamps": "1"}
        params["tail"] = str(tail) if tail and mark is not None else "all"
        async with self._api.log_stream(self._container, **params) as response:
            async for frame in frames(response):
                total += 1
                if found or mark is None:
                    self._keep(frame)
                elif frame.stream == mark.stream:
                    if frame.time_ns == mark.time_ns:
                        if tail and not preceded and (mark.goes_on or mark.number > 1):
                            return False  # it may begin within a long line
                        seen += 1
                        found = seen == mark.number
                    elif seen:  # Docker has less of that line than there was
                        found = True
                        self._keep(frame)
                    else:
                        preceded = True
        if found or seen:
            return True
        if tail and total >= tail:
            return False
        if total:
            self._newest = None
            self._gaps = set(range(len(STREAMS)))
            return await self._read(0)
        return True

    def _keep(self, frame: Frame) -> None:
        """Add a frame to the log.

        Docker 20.10 forgets the end of a line that it recorded in pieces. It is added as soon as something
        follows; until then the piece may as well be the end of the output, which has no end of line.
        """
        writer, stream = self._writer, frame.stream
        if writer is None:
            raise RuntimeError("the log is closed")
        if (since := self._open_lines[stream]) is not None:
            writer.append(stream, b"\n", since)
        if stream in self._gaps:
            self._gaps.discard(stream)
            writer.append(stream, GAP, frame.time_ns)
        writer.append(stream, frame.data, frame.time_ns)
        ends = frame.data.endswith(b"\n") or len(frame.data) == PIECE
        self._open_lines[stream] = None if ends else frame.time_ns
        before = self._marks[stream]
        again = before is not None and before.time_ns == frame.time_ns
        number = before.number + 1 if before is not None and again else 1
        self._newest = self._marks[stream] = Mark(frame.time_ns, stream, number, len(frame.data) == PIECE)
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


def _newest(log: TaskLog) -> Mark | None:
    """Find the newest frame that a log has."""
    first: Piece | None = None
    later: Piece | None = None
    number = 0
    for piece in log.newest_pieces():
        if first is None:
            first = piece
        elif later is not None and piece.end_in(MERGED) < later.merged_offset:
            if number > 1:  # of one line, a part of which was removed: nobody knows how many there were
                number = sys.maxsize
            break
        later = piece
        if piece.stream == first.stream:
            if piece.time_ns != first.time_ns:
                break
            number += 1
    return None if first is None else Mark(first.time_ns, first.stream, number, first.length == PIECE)


def _open_line(log: TaskLog, stream: int) -> int | None:
    """Find the time of a stream's last piece, where that is an unfinished line (`LogFollower._write`)."""
    if log.read(STREAMS[stream], -1) in (b"", b"\n"):
        return None
    last = log.last_piece(STREAMS[stream])
    return None if last is None or last.length == PIECE else last.time_ns


def _time_ns(payload: bytes) -> int:
    return _seconds(payload[:19]) * 10**9 + int(payload[20:29])


@lru_cache(maxsize=16)
def _seconds(text: bytes) -> int:
    year, month, day = int(text[0:4]), int(text[5:7]), int(text[8:10])
    hour, minute, second = int(text[11:13]), int(text[14:16]), int(text[17:19])
    return calendar.timegm((year, month, day, hour, minute, second))
