"""A task's log over REST: a part of it, or followed while it is written."""

from __future__ import annotations

import asyncio
import time
from contextlib import nullcontext
from dataclasses import dataclass

from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.rest.errors import log_removed
from pai_scheduler.rest.models import Count

from .base import Route, routes
from .operations import (
    ATTEMPT,
    FLAG,
    FOLLOW,
    NO_JOB,
    TEXT,
    TOO_MANY_STREAMS,
    Answer,
    DocumentedRefusal,
    Header,
    operation,
    query,
)
from .streaming import StreamHandler

#: Bytes read and sent at once: a log of any length passes through without being held.
CHUNK = 256 * 1024
#: The shortest time (seconds) between two looks at a followed log: one that is written without a pause goes
#: out in pieces. It grows while what is told of it is nothing to send.
_GATHER_SECONDS, _LONGEST_GATHER_SECONDS = 0.01, 0.15
#: When (seconds) a log of which nothing is told is looked at all the same, where the kernel cannot tell; and
#: where it can, but the file system may not be one of which it hears everything.
_TURN_SECONDS, _SILENCE_SECONDS = 0.15, 10.0


@dataclass(slots=True)
class _Reading:
    """Progress of a log response. `gap`: what was removed of the log, and `notice` what is said instead."""

    log: TaskLog
    stream: str
    position: int
    end: int | None
    gap: range | None = None
    notice: bytes = b""
    timestamps: bool = False
    line_begins: bool = True


class LogHandler(StreamHandler):
    """`…/taskRoles/:R/tasks/:I/logs/{stdout,stderr,all}`. `X-Log-Offset`: where the answer begins.

    Where a part was removed because the log is too long, one line in the answer says so; `X-Log-Removed`
    has its offsets (`from-to`, the second one is where the log goes on), `X-Log-Notice` the length of the
    line. `timestamps=1`: before each line when it began; the first line of the answer has it in any case.
    """

    @operation(
        "GET /user/{user}/jobs/{job}/taskRoles/{role}/tasks/{index}/logs/{stream}",
        "log",
        "watching",
        "What a task has written",
        {
            200: Answer(
                "The bytes; followed, until the task has ended. A log that grew too long keeps its "
                "beginning and its newest part, each byte at its offset; one line stands for what was "
                "removed between them.",
                others={"text/plain": TEXT},
                headers={
                    "X-Log-Offset": Header(
                        "Where the answer begins", {"type": "integer", "minimum": 0}, required=True
                    ),
                    "X-Log-Removed": Header(
                        "Where a part was left out of this answer, `from-to`: from which offset, and at "
                        "which one it goes on",
                        {"type": "string", "pattern": "^[0-9]+-[0-9]+$"},
                    ),
                    "X-Log-Notice": Header(
                        "Length in bytes of the line that stands for it", {"type": "integer", "minimum": 1}
                    ),
                },
            )
        },
        parameters=[
            ATTEMPT,
            query("offset", int, "Byte to begin at; negative, from the end", 0),
            query("limit", Count, "Bytes at most"),
            query(
                "since",
                Count,
                "Time (ms since the epoch): begin with the first line that did not begin before it, instead "
                "of at `offset`; where there is none, at the end",
            ),
            FOLLOW,
            query(
                "timestamps",
                FLAG,
                "Before each line when it began (UTC, ms; 25 bytes with the space after it), before the "
                "first one of the answer in any case. Offsets and the limit count the bytes without these.",
                "0",
            ),
        ],
        refusals=[
            NO_JOB,
            DocumentedRefusal(
                410, ["LogRemovedError"], "The log was removed some time after the end of its task."
            ),
            TOO_MANY_STREAMS,
        ],
    )
    async def get(self, user: str, name: str, role: str, index: str, stream: str) -> None:
        """Return bytes from `offset` (negative: from the end) or `since` on; `follow=1`: until the end."""
        offset, limit = self.query_int("offset", 0) or 0, self.query_int("limit", least=0)
        since = self.query_int("since", least=0)
        attempt, follow = self.query_int("attempt", least=0), self.query_flag("follow")
        timestamps = self.query_flag("timestamps")
        # the same attempt throughout, also when another one begins meanwhile
        task = await self.service.tasks.find(self.principal, user, name, role, int(index), attempt)
        log = self.service.tasks.log(task)
        if await self.service.tasks.is_log_expired(task, log):
            raise log_removed(self.service.tasks.log_keeping.keep_days)
        with self.counted() if follow else nullcontext():
            if since is not None:
                offset = await asyncio.to_thread(log.since, stream, since)
            size = await asyncio.to_thread(log.size, stream)
            start = max(0, size + offset) if offset < 0 else offset if follow else min(offset, size)
            end = None if limit is None else start + limit
            reading = _Reading(log, stream, start, end, timestamps=timestamps)
            if not follow:
                reading.end = size if end is None else min(end, size)
            await self._see_gap(reading, size)
            self.set_header("Content-Type", "text/plain; charset=UTF-8")
            self.set_header("X-Log-Offset", str(reading.position))
            if follow:
                await self._follow(task, reading)
                return
            if not timestamps:
                self.set_header("Content-Length", str(_length(reading)))
            await self._copy(reading)

    async def _see_gap(self, reading: _Reading, size: int) -> None:
        """Find out whether the answer comes upon a part that was removed; say it before the first byte."""
        gap = await asyncio.to_thread(reading.log.removed, reading.stream)
        if gap is None or reading.position >= gap.stop:
            return
        if reading.end is not None and reading.end <= max(gap.start, reading.position):
            return
        text = msg(
            "[{size:,} bytes were left out here: a log longer than {most:,} MB keeps its beginning and its "
            "newest part]",
            size=len(gap),
            most=self.service.tasks.log_keeping.max_mb_per_task,
        )
        reading.gap, reading.notice = gap, self.in_words(text).encode() + b"\n"
        if reading.position < gap.start:
            last = await asyncio.to_thread(reading.log.read, reading.stream, gap.start - 1, 1)
            reading.notice = (b"" if last == b"\n" else b"\n") + reading.notice
        elif reading.end is not None:
            # who asks for something that is gone gets as much of what there is
            reading.end = min(reading.end + gap.stop - reading.position, max(size, gap.stop))
        reading.position = gap.stop if reading.position >= gap.start else reading.position
        self.set_header("X-Log-Removed", f"{gap.start}-{gap.stop}")
        self.set_header("X-Log-Notice", str(len(reading.notice)))

    async def _follow(self, task: TaskRef, reading: _Reading) -> None:
        await self.send(b"")
        last_look = False
        gather = _GATHER_SECONDS
        with self.service.tasks.following(task, reading.log) as follower:
            while not self.gone.is_set():
                # before it is read: what is written meanwhile is told of
                told = follower.arm()
                looked, before = time.monotonic(), reading.position
                await self._copy(reading)
                if last_look or (reading.end is not None and reading.position >= reading.end):
                    return
                # what was written before its end is read once more, after it is known to have ended
                last_look = self.service.tasks.has_ended(task)
                if last_look:
                    continue
                sent = reading.position > before
                gather = _GATHER_SECONDS if sent else min(2 * gather, _LONGEST_GATHER_SECONDS)
                await self.pause(_SILENCE_SECONDS if told else _TURN_SECONDS, follower.news)
                if (early := looked + gather - time.monotonic()) > 0:
                    await self.pause(early)

    async def _copy(self, reading: _Reading) -> None:
        """Send what there is from its position on, in pieces."""
        gap = reading.gap
        while not self.gone.is_set():
            until = reading.end
            if gap is not None and reading.notice:
                if reading.position >= gap.start:
                    reading.position = gap.stop
                    await self._send_notice(reading)
                    continue
                until = gap.start if until is None else min(until, gap.start)
            wanted = CHUNK if until is None else min(CHUNK, until - reading.position)
            if wanted <= 0 or not await self._send_part(reading, wanted):
                return

    async def _send_part(self, reading: _Reading, wanted: int) -> bool:
        """Send a piece; False where there is nothing now."""
        log, stream, position = reading.log, reading.stream, reading.position
        if reading.timestamps:
            begins = reading.line_begins
            part, text = await asyncio.to_thread(
                lambda: log.read_lines(stream, position, wanted, line_begins=begins)
            )
        else:
            part = await asyncio.to_thread(log.read_part, stream, position, wanted)
            text = part.data
        if not part.data:
            return False
        if part.offset != position:
            # its reader is so slow that what comes next was removed: who asks anew is told how much that is
            self.break_off()
            return False
        reading.position, reading.line_begins = part.end, part.data.endswith(b"\n")
        await self.send(text)
        return True

    async def _send_notice(self, reading: _Reading) -> None:
        notice, reading.notice, reading.line_begins = reading.notice, b"", True
        await self.send(notice)


def _length(reading: _Reading) -> int:
    """Return the length of an answer without times."""
    length = max(0, (reading.end or 0) - reading.position)
    if reading.gap is not None and reading.position < reading.gap.start:
        length -= min(len(reading.gap), max(0, (reading.end or 0) - reading.gap.start))
    return length + len(reading.notice)


ROUTES: list[Route] = routes(LogHandler)
