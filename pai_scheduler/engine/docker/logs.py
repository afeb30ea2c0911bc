"""A container's log, from Docker to the task's log on disk: nothing lost, nothing twice, across restarts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import aiodocker
import aiohttp

from pai_scheduler.core.events import Notice
from pai_scheduler.engine.logs.reader import MERGED, STREAMS, Piece, TaskLog
from pai_scheduler.engine.logs.writer import TaskLogWriter

from .client import DaemonUnreachableError, DockerApi
from .log_files import (
    CURRENT,
    DockerFiles,
    FileNews,
    Frame,
    Mark,
    RecordedLog,
    Search,
    UnreadableLogError,
    parse_frames,
)

# How far a container's output is ahead of what was copied of its log; one that runs away has to wait.
#
# Docker's log is rotated, so that it stays bounded, and what is not copied in time is gone. Docker itself
# lets a container wait whose attached listener does not read on: so one listens, and counts, but keeps
# nothing.

#: Docker records each line with its time, its stream and some marks.
_LINE_COST = 64
#: Docker records a longer line in pieces of this size.
PIECE = 2**14
#: How long the output waits for its reader at most: a container is slowed down, never stopped.
_WAIT_SECONDS = 1.0
#: How long it may write between two waits.
_FREE_SECONDS = 0.02


class Output:
    """Listens to one container. `window`: bytes of Docker's log that may be written between two readings."""

    def __init__(self, api: DockerApi, container: str, window: int) -> None:
        self._api, self._container, self._window = api, container, window
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._cost = self._unsaid = 0
        #: frames that Docker may have recorded since the last reading, rather too many than too few
        self.frames = 0

    def reading(self) -> None:
        """Note that the log is about to be read to its present end."""
        self._cost = self.frames = 0
        self._news.clear()
        self._room.set()

    async def news(self, seconds: float | None) -> bool:
        """Wait until something was written that Docker records; False where nothing was for so long."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._news.wait()
        return self._news.is_set()

    async def listen(self) -> None:
        """Listen until Docker closes the stream, which need not be the container's end; UnreachableError."""
        async with self._api.output_stream(self._container) as response:
            self._news.set()
            try:
                async for chunk in response.content.iter_any():
                    self._count(chunk)
                    if self._cost > self._window:
                        await self._wait_for_reader()
            except (aiohttp.ClientError, OSError) as error:
                raise DaemonUnreachableError(str(error)) from error
            finally:
                self._news.set()

    async def hold(self) -> None:
        """Have the container wait again and again, until cancelled, for one who reads its log itself."""
        while True:
            with contextlib.suppress(DaemonUnreachableError, aiodocker.DockerError):
                async with self._api.output_stream(self._container):
                    await asyncio.sleep(_WAIT_SECONDS)
            await asyncio.sleep(_FREE_SECONDS)

    def _count(self, chunk: bytes) -> None:
        lines = chunk.count(b"\n")
        self._unsaid += len(chunk)
        self._cost += len(chunk) + _LINE_COST * lines
        self.frames += lines + len(chunk) // PIECE + 1
        # of a line that is neither ended nor long Docker records nothing yet
        if lines or self._unsaid >= PIECE:
            self._unsaid = 0
            self._news.set()

    async def _wait_for_reader(self) -> None:
        self._room.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_WAIT_SECONDS):
                await self._room.wait()
        self._cost = 0


# A container's log, from Docker to the task's log on disk: nothing lost, nothing twice, across restarts.
#
# Docker sends every line (or 16 KiB of one) as a frame with its time in ns. Each frame becomes one piece of
# the task's log, so the log itself tells up to which frame it goes. Docker's own log is rotated; to follow
# one over a rotation loses and doubles lines (Docker 20.10), so it is read from the newest known frame to
# its end, again whenever the container has written. Where that frame was rotated away, a line in the log
# says so.
#
# Where Docker's files are open to this process they are read themselves (`log_files.py`), from the same
# frame on, and Docker is asked as soon as anything about them is not as it should be.

_RETRY_SECONDS = 0.5
#: Docker's files of one log, and the least and the largest size of one (bytes).
_FILES, _LEAST_FILE, _LARGEST_FILE = 4, 2**24, 2**28
#: Seconds between two readings at least, so that of much that is written much is read at once; and from what
#: is heard after a silence to its reading. A line may be heard a moment before Docker records it: when to
#: look again where nothing was found, and in any case after the last of it.
_GATHER_SECONDS, _SOON_SECONDS, _LATE_SECONDS, _AGAIN_SECONDS = 0.02, 0.002, 0.005, (0.08, 0.5)
#: How many frames to ask for beyond those that were heard of, and how many times more if that was too few.
_SPARE, _MORE, _MOST = 64, 16, 10**6

#: Bytes of Docker's log that are taken apart and written at once, and how long to wait where few come (s).
_BATCH, _FEW, _MORE_SECONDS = 2**20, 2**16, 0.001
_NEWLINE = ord("\n")

GAP = b"[some output is missing here: more was written than Docker keeps while the scheduler was away]\n"


#: Frames are taken apart beside the loop, but never by so many threads that it has no turn.
_THREADS = ThreadPoolExecutor(2, "container-logs")

T = TypeVar("T")

_log = logging.getLogger(__name__)


def file_size(limit: int) -> int:
    """Return the bytes of one of Docker's files for a log of which `limit` bytes are kept."""
    return min(max(limit // _FILES, _LEAST_FILE), _LARGEST_FILE)


def log_config(limit: int) -> dict[str, Any]:
    """Return how Docker is to record about `limit` bytes: by the only driver that keeps them as they are."""
    sizes = {"max-size": str(file_size(limit)), "max-file": str(_FILES), "compress": "false"}
    return {"Type": "local", "Config": sizes}


class LogFollower:
    """Copies one container's log into `folder`, of which it keeps at most `limit` bytes.

    `on_notice` is called once for each thing that is to be said of it: a full disk lost some, or more was
    written than is kept. `on_output` is called when the log has grown. `files`: where Docker itself keeps
    logs (None: Docker is to be asked).
    """

    def __init__(
        self,
        api: DockerApi,
        container: str,
        folder: Path,
        limit: int,
        on_notice: Callable[[Notice], None],
        on_output: Callable[[], None] = lambda: None,
        files: DockerFiles | None = None,
    ) -> None:
        self._api, self._container, self._folder, self._limit = api, container, folder, limit
        self._on_notice, self._on_output = on_notice, on_output
        self._said: set[Notice] = set()
        self._window = file_size(limit) // 2
        self._output = Output(api, container, self._window)
        self._files = files
        self._recorded: RecordedLog | None = None
        self._search: Search | None = None
        self._holding: asyncio.Task[None] | None = None
        self._writer: TaskLogWriter | None = None
        #: By stream: the time of a line whose end is still to be written, or None.
        self._open_lines: list[int | None] = []
        #: By stream: the time of the newest frame, and how many with this time there were; the newest of all.
        self._times: list[int] = []
        self._numbers: list[int] = []
        self._newest: Mark | None = None
        #: frames that were new to us
        self._copied = 0
        #: streams in which it is still to be said that something is missing
        self._gaps: set[int] = set()

    def close(self) -> None:
        """Close the log; what it lacks can be fetched by another follower."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        self._leave_files()

    async def follow(self) -> None:
        """Copy what there is and what comes, until cancelled; breaks are bridged."""
        if self._files is not None:
            await self._follow_files(self._files.log_folder(self._container), self._files.news)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._copy_news())
            both.create_task(self._listen())

    async def drain(self) -> None:
        """Copy what is still missing of a log that does not grow any more.

        An answer may have ended because the daemon did: so it is complete when another one has no more.
        """
        await self._copy_through()
        while await self._copy_through():
            pass

    async def _copy_through(self) -> bool:
        """Copy what there is, as soon as Docker answers; tell whether something was new."""
        before = self._copied
        while True:
            try:
                await self._copy()
            except DaemonUnreachableError:
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return self._copied > before

    async def _follow_files(self, folder: Path, news: FileNews) -> None:
        """Copy from Docker's own files, until something about them is not as it should be."""
        clock = asyncio.get_running_loop().time
        grown = asyncio.Event()
        try:
            while self._files is not None:
                # before it is read: what is written meanwhile is told of
                grown.clear()
                if not news.watch(folder / CURRENT, grown):
                    self._leave_files()
                    break
                read_at = clock()
                await self._copy_through()
                await grown.wait()
                if (early := read_at + _GATHER_SECONDS - clock()) > 0:
                    await asyncio.sleep(early)
        finally:
            news.dismiss(grown)
            self._let_write()

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(DaemonUnreachableError, aiodocker.DockerError):
                await self._output.listen()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _copy_news(self) -> None:
        clock = asyncio.get_running_loop().time
        looks, read_at = 0, clock()
        while True:
            if await self._output.news(_AGAIN_SECONDS[looks] if looks < len(_AGAIN_SECONDS) else None):
                looks = 0
                await asyncio.sleep(max(_SOON_SECONDS, read_at + _GATHER_SECONDS - clock()))
            else:
                looks += 1
            read_at, heard = clock(), self._output.frames > 0
            if not await self._copy_through() and heard:
                await asyncio.sleep(_LATE_SECONDS)
                await self._copy_through()

    async def _copy(self) -> None:
        """Copy from the newest known frame on to the present end."""
        # one for as long as possible: to open a long log means to look for its end
        if self._writer is None:
            await _in_thread(self._open)
        if self._files is not None and await self._copy_files(self._files.log_folder(self._container)):
            return
        tail = min(self._output.frames + _SPARE, _MOST)
        self._output.reading()
        try:
            while not await self._read(tail):
                tail = tail * _MORE if 0 < tail * _MORE <= _MOST else 0
        except aiodocker.DockerError as error:
            if error.status != 404:
                raise DaemonUnreachableError(error.message) from error

    async def _copy_files(self, folder: Path) -> bool:
        """Copy what Docker's files have; False, and never again, where they cannot be read on."""
        try:
            while (behind := await _in_thread(self._take_recorded, folder)) is not None:
                self._say_notices()
                self._on_output()
                self._hold_back(behind)
        except UnreadableLogError as error:
            _log.info("the log of container %s is asked of Docker: %s", self._container, error)
            self._leave_files()
            return False
        self._let_write()
        return True

    def _take_recorded(self, folder: Path) -> int | None:
        """Keep what is new of the next frames in Docker's files; return the bytes beyond (None: the end)."""
        if self._recorded is None or self._search is None:
            self._search = Search(self._newest, 0)
            since = None if self._newest is None else self._newest.time_ns
            self._recorded = RecordedLog(folder, since)
        frames = self._recorded.read(_BATCH)
        if frames:
            self._keep(self._search.new_of(frames))
            return self._recorded.behind()
        if not self._search.found and not self._search.seen:
            raise UnreadableLogError("the newest known frame is not there")
        return None

    def _hold_back(self, behind: int) -> None:
        """Have the container wait where it is so far ahead that Docker might remove what was not read yet."""
        if behind < self._window // 2:
            self._let_write()
        elif behind > self._window and self._holding is None:
            self._holding = asyncio.create_task(self._output.hold())

    def _let_write(self) -> None:
        if self._holding is not None:
            self._holding.cancel()
            self._holding = None

    def _leave_files(self) -> None:
        """Read Docker's files no more."""
        self._files = self._search = None
        if self._recorded is not None:
            self._recorded.close()
            self._recorded = None

    def _open(self) -> None:
        self._writer = TaskLogWriter(self._folder, self._limit)
        log = TaskLog(self._folder)
        self._open_lines = [_open_line(log, stream) for stream in range(len(STREAMS))]
        self._newest = _newest(log)
        self._times, self._numbers = [-1] * len(STREAMS), [0] * len(STREAMS)
        if self._newest is not None:
            stream = self._newest.stream
            self._times[stream], self._numbers[stream] = self._newest.time_ns, self._newest.number

    async def _read(self, tail: int, *, again: bool = False) -> bool:
        """Read the last `tail` frames (0: all), keep the new ones; False where they are too few to tell."""
        search = Search(self._newest, tail)
        params = {"follow": "0", "stdout": "1", "stderr": "1", "timestamps": "1"}
        params["tail"] = str(tail) if tail and search.mark is not None else "all"
        rest = b""
        async with self._api.log_stream(self._container, **params) as response:
            async for received in _batches(response):
                copied = self._copied
                rest = await _in_thread(self._take, search, rest + received)
                self._say_notices()
                if self._copied > copied:
                    self._on_output()
                if search.is_in_vain:
                    return False
        if rest:
            raise DaemonUnreachableError("the log broke off within a line")
        if search.found or search.seen:
            return True
        if tail and search.total >= tail:
            return False
        if search.total:
            if not again:  # the daemon may have ended before it came to the newest known frame
                return await self._read(tail, again=True)
            self._newest = None
            self._gaps = set(range(len(STREAMS)))
            return await self._read(0)
        return True

    def _say_notices(self) -> None:
        if self._writer is None:
            return
        noticed = {Notice.LOG_LOST: self._writer.dropped > 0, Notice.LOG_SHORTENED: self._writer.shortened}
        for notice in [notice for notice, holds in noticed.items() if holds and notice not in self._said]:
            self._said.add(notice)
            self._on_notice(notice)

    def _take(self, search: Search, received: bytes) -> bytes:
        """Keep what is new of the frames received; return the beginning of one that is not whole."""
        frames, taken = parse_frames(received)
        self._keep(search.new_of(frames))
        return received[taken:]

    def _keep(self, frames: Sequence[Frame]) -> None:
        """Add frames to the log.

        Docker 20.10 forgets the end of a line that it recorded in pieces. It is added as soon as something
        follows; until then the piece may as well be the end of the output, which has no end of line.
        """
        writer = self._writer
        if writer is None:
            raise RuntimeError("the log is closed")
        pieces: list[tuple[int, bytes, int]] = []
        open_lines, times, numbers = self._open_lines, self._times, self._numbers
        for time_ns, stream, data in frames:
            if (since := open_lines[stream]) is not None:
                pieces.append((stream, b"\n", since))
            if self._gaps and stream in self._gaps:
                self._gaps.discard(stream)
                pieces.append((stream, GAP, time_ns))
            pieces.append((stream, data, time_ns))
            open_lines[stream] = None if data[-1] == _NEWLINE or len(data) == PIECE else time_ns
            numbers[stream] = numbers[stream] + 1 if times[stream] == time_ns else 1
            times[stream] = time_ns
        writer.append_all(pieces)
        self._copied += len(frames)
        if frames:
            time_ns, stream, data = frames[-1]
            self._newest = Mark(time_ns, stream, numbers[stream], len(data) == PIECE)


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


async def _batches(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    """Return what comes in large pieces, each worth a thread's while; UnreachableError on a break."""
    chunks: list[bytes] = []
    size = 0
    try:
        async for chunk in response.content.iter_any():
            chunks.append(chunk)
            size += len(chunk)
            if size >= _BATCH:
                yield b"".join(chunks)
                chunks, size = [], 0
            elif len(chunk) < _FEW:  # to read each line by itself costs more than to wait for some more
                await asyncio.sleep(_MORE_SECONDS)
    except (aiohttp.ClientError, OSError) as error:
        raise DaemonUnreachableError(str(error)) from error
    if chunks:
        yield b"".join(chunks)


async def _in_thread(function: Callable[..., T], *args: Any) -> T:
    """Call a function beside the loop; one that was begun is waited for, also when cancelled."""
    work = asyncio.get_running_loop().run_in_executor(_THREADS, function, *args)
    try:
        return await asyncio.shield(work)
    finally:
        if not work.done():
            await asyncio.wait([work])
