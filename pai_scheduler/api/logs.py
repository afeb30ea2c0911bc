"""A task's log over REST: a part of it, or followed while it is written."""

from __future__ import annotations

import asyncio

from ..engine.logs import TaskLog
from .desk import Route
from .stream import StreamHandler

#: Bytes read and sent at once: a log of any length passes through without being held.
CHUNK = 256 * 1024
#: How soon (seconds) a followed log is looked at again: at first, and at the latest when it stays silent.
POLL_SECONDS, LONGEST_POLL_SECONDS = 0.03, 0.15


class LogHandler(StreamHandler):
    """`…/taskRoles/:R/tasks/:I/logs/{stdout,stderr,all}`. `X-Log-Offset`: where the answer begins."""

    async def get(self, user: str, name: str, role: str, index: str, stream: str) -> None:
        """Give bytes from `offset` (negative: from the end), at most `limit`; `follow=1`: until the end."""
        offset, limit = self.query_int("offset", 0) or 0, self.query_int("limit", least=0)
        attempt, follow = self.query_int("attempt", least=0), self.query_flag("follow")
        # the same attempt throughout, also when another one begins meanwhile
        task = await self.service.find_task(self.caller, user, name, role, int(index), attempt)
        log = self.service.task_log(task)
        size = await asyncio.to_thread(log.size, stream)
        start = max(0, size + offset) if offset < 0 else offset if follow else min(offset, size)
        self.set_header("Content-Type", "text/plain; charset=UTF-8")
        self.set_header("X-Log-Offset", str(start))
        if not follow:
            length = size - start if limit is None else min(limit, size - start)
            self.set_header("Content-Length", str(length))
            await self._copy(log, stream, start, length)
            return
        await self.send(b"")
        position, last_look = start, False
        poll = POLL_SECONDS
        while not self.gone.is_set():
            sent = await self._copy(
                log, stream, position, None if limit is None else start + limit - position
            )
            position += sent
            if last_look or (limit is not None and position >= start + limit):
                return
            # what was written before its end is read once more, after it is known to have ended
            last_look = self.service.task_ended(task)
            if not last_look and not sent:
                await self.pause(poll)
            poll = POLL_SECONDS if sent else min(2 * poll, LONGEST_POLL_SECONDS)

    async def _copy(self, log: TaskLog, stream: str, position: int, length: int | None) -> int:
        """Send what there is from `position` on, at most `length` bytes, in pieces; give how much it was."""
        sent = 0
        while not self.gone.is_set():
            wanted = CHUNK if length is None else min(CHUNK, length - sent)
            data = await asyncio.to_thread(log.read, stream, position + sent, wanted) if wanted > 0 else b""
            if not data:
                break
            await self.send(data)
            sent += len(data)
        return sent


ROUTES: list[Route] = [
    (
        r"/user/([^/]+)/jobs/([^/]+)/taskRoles/([^/]+)/tasks/([0-9]{1,9})/logs/(stdout|stderr|all)",
        LogHandler,
    ),
]
