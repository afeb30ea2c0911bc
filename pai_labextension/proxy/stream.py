"""One connection of a browser for everything that it follows: job events, changes of the cluster, logs.

Frames are JSON. The browser says

    {"type": "sub", "id": 1, "subject": {"kind": "log", …}, "cursor": "1234"}    `cursor`: null at first
    {"type": "unsub", "id": 1}

The server answers each subscription, by its id:

    live    from its `cursor` on everything is told
    data    something new, with the cursor after it
    gap     something was not told: read anew; a subscription without a cursor begins with one
    lost    the scheduler does not answer; `live` follows when it does, and nothing is told twice
    end     there will be no more; `error` (`status`, `code`, `message`) where the scheduler refused

and `ping` each 20 seconds.

Equal subjects of one caller are one stream of the scheduler. Of each the last 64 KB are kept: a subscriber
that takes longer than these last is told `gap`, and holds nobody back.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, ClassVar, NamedTuple
from urllib.parse import urlencode

import aiohttp
from tornado.iostream import StreamClosedError
from tornado.websocket import WebSocketClosedError, WebSocketHandler

from pai_labextension.callers import PersonHandler, Requester
from pai_labextension.messages import msg

from .forwarding import (
    NoResourceError,
    ParameterError,
    RequestTarget,
    SchedulerUnreachableError,
    Upstream,
    target,
)

_log = logging.getLogger(__name__)

#: Bytes of a subject that are kept for subscribers that are behind.
KEPT = 64 * 1024
#: Subscriptions of one connection.
MOST_SUBSCRIPTIONS = 64
#: Seconds between two pieces of one subject: what comes without a pause goes out in larger ones.
_GATHER = 0.1
#: Seconds between two versions of the cluster that are told.
_CHANGES_PAUSE = 1.0
#: Seconds until a scheduler that was lost is asked again: at first, and at most.
_SOON, _LATE = 0.5, 10.0
#: Seconds without a sign of life after which followed events count as lost; there is one each 15 s.
_SILENCE = 45.0
#: Bytes with which a log goes on that is written faster than anybody reads, and the pause (s) before that.
_TAIL, _SKIP_PAUSE = 16 * 1024, 0.25
#: Seconds between signs of life to the browser, below the idle limits of common proxies.
_BEAT = 20.0
#: Length of the time before each line of a log ("2026-01-02T03:04:05.678Z ").
_STAMP = 25


class Subscriber(NamedTuple):
    """A person, and the language of what is said to them; only what equal ones follow is joined."""

    caller: Requester
    language: str


@dataclass(frozen=True, slots=True)
class Subject:
    """A thing to follow: the events of a user's jobs, changes of the cluster, or a log."""

    kind: str
    path: str
    query: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, value: object) -> Subject:
        """Read one from a frame; ValueError: it is none."""
        match value:
            case {"kind": "events", "user": str() as user} if user:
                return cls("events", "events", (("username", user),))
            case {"kind": "changes"}:
                return cls("changes", "changes")
            case {
                "kind": "log",
                "user": str() as user,
                "job": str() as job,
                "role": str() as role,
                "index": int() as index,
                "attempt": int() as attempt,
                "stream": str() as stream,
            }:
                path = f"user/{user}/jobs/{job}/taskRoles/{role}/tasks/{index}/logs/{stream}"
                subject = cls("log", path, (("attempt", str(attempt)),))
            case _:
                raise ValueError("no subject")
        try:
            subject.target({})
        except (NoResourceError, ParameterError) as error:
            raise ValueError(str(error)) from None
        return subject

    def target(self, query: Mapping[str, str]) -> RequestTarget:
        """Return where the scheduler is asked about it."""
        return target("GET", self.path, urlencode([*self.query, *query.items()]))


@dataclass(frozen=True, slots=True)
class _Entry:
    """Something new. `position`: of what it ends with, as the subject counts; `frame`: all but the id."""

    position: int
    cursor: str
    frame: str
    size: int


class _RefusedError(Exception):
    """The scheduler refuses to have the subject followed."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        with suppress(ValueError):
            refusal = json.loads(body)
            self.error = {"status": status, "code": refusal.get("code"), "message": refusal.get("message")}
            return
        self.error = {"status": status, "code": None, "message": HTTPStatus(status).phrase}


class _TooFastError(Exception):
    """More was written than anybody reads."""


class _Feed(ABC):
    """One stream of the scheduler for all who follow a subject, and the last of what came."""

    def __init__(
        self, upstream: Upstream, follower: Subscriber, subject: Subject, cursor: str | None
    ) -> None:
        self._upstream, self._follower, self._subject = upstream, follower, subject
        #: after what came last; None: not known yet
        self.cursor = cursor
        self.live = self.failed = False
        #: the last frame, once there will be no more
        self.end: str | None = None
        self.readers = 0
        self._entries: deque[_Entry] = deque()
        self._first = self._size = 0
        #: as `_Entry.position`: before the first entry
        self._base = self._position_of(cursor)
        self._news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.task = asyncio.create_task(self._run())

    # What the subscribers see.

    async def frames(self, cursor: str | None) -> AsyncGenerator[str]:
        """Give the frames of one subscription, as fast as they are taken."""
        place: int | None = None
        said = ""
        while True:
            news = self._news
            if self.live:
                if place is None:
                    place, is_whole = self._find(cursor)
                    if not is_whole:
                        # (what is read anew after it has all up to here)
                        cursor = self.cursor
                        yield _frame("gap", cursor=cursor)
                if said != "live":
                    said = "live"
                    yield _frame("live", cursor=cursor)
            elif self.failed and self.end is None and said != "lost":
                said = "lost"
                yield _frame("lost")
            while place is not None and place < self._next:
                if place < self._first:
                    place, cursor = self._first, self.cursor
                    yield _frame("gap", cursor=cursor)
                    continue
                entry = self._entries[place - self._first]
                place, cursor = place + 1, entry.cursor
                yield entry.frame
            if self.end is not None:
                yield self.end
                return
            if news is self._news:
                await asyncio.shield(news)

    @property
    def _next(self) -> int:
        return self._first + len(self._entries)

    def _find(self, cursor: str | None) -> tuple[int, bool]:
        """Return at which entry one goes on who knows all up to a cursor, and whether nothing is missing."""
        known = self._position_of(cursor)
        if known is None or self._base is None:
            return self._next, False
        if known < self._base:
            return self._first, False
        behind = sum(entry.position > known for entry in self._entries)
        return self._next - behind, True

    @abstractmethod
    def _position_of(self, cursor: str | None) -> int | None:
        """Return where a cursor is among the entries; None: not known."""

    # What the scheduler says.

    @abstractmethod
    async def _follow(self) -> None:
        """Ask the scheduler, and take what comes until there is no more."""

    async def _run(self) -> None:
        pause = _SOON
        while True:
            try:
                await self._follow()
                self._finish(None)
                return
            except _RefusedError as error:
                self._finish(error.error)
                return
            except _TooFastError:
                await asyncio.sleep(_SKIP_PAUSE)
                continue
            except (SchedulerUnreachableError, aiohttp.ClientError, OSError, TimeoutError):
                pass
            except Exception:
                _log.exception("cannot follow %s", self._subject.path)
            if self.live:
                pause = _SOON
            self.live, self.failed = False, True
            self._tell()
            await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 (no secret)
            pause = min(pause * 2, _LATE)

    async def _ask(
        self, query: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> aiohttp.ClientResponse:
        headers = {"Accept-Language": self._follower.language, **(headers or {})}
        answer = await self._upstream.ask(
            "GET", self._subject.target(query), self._follower.caller.token, headers, None
        )
        if answer.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            answer.close()
            raise SchedulerUnreachableError(f"{answer.status} {answer.reason}")
        if answer.status != HTTPStatus.OK:
            try:
                raise _RefusedError(answer.status, await answer.read())
            finally:
                answer.close()
        return answer

    def _go_live(self) -> None:
        self.live = True
        self._tell()

    def _add(self, position: int, cursor: str, data: str) -> None:
        self.cursor = cursor
        frame = f'"type": "data", "cursor": {json.dumps(cursor)}, "data": {data}'
        self._entries.append(_Entry(position, cursor, frame, len(data)))
        self._size += len(data)
        while self._size > KEPT and len(self._entries) > 1:
            gone = self._entries.popleft()
            self._size -= gone.size
            self._base = gone.position
            self._first += 1
        self._tell()

    def _finish(self, error: Mapping[str, Any] | None) -> None:
        self.end = _frame("end", **({} if error is None else {"error": error}))
        self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.get_running_loop().create_future()
        news.set_result(None)


class _EventsFeed(_Feed):
    """The events of a user's jobs; a cursor is the id of an event."""

    def _position_of(self, cursor: str | None) -> int | None:
        return int(cursor) if cursor is not None and cursor.isascii() and cursor.isdigit() else None

    async def _follow(self) -> None:
        known = {} if self.cursor is None else {"Last-Event-ID": self.cursor}
        answer = await self._ask({"follow": "1", "new": "1"}, known)
        try:
            if self.cursor is not None:
                self._go_live()
            rest = b""
            while True:
                async with asyncio.timeout(_SILENCE):
                    piece = await answer.content.readany()
                if not piece:
                    raise SchedulerUnreachableError("the stream has ended")
                *blocks, rest = (rest + piece).split(b"\n\n")
                self._take(blocks)
                await asyncio.sleep(_GATHER)
        finally:
            answer.close()

    def _take(self, blocks: list[bytes]) -> None:
        cursor, events = self.cursor, []
        for block in blocks:
            for line in block.split(b"\n"):
                name, _, value = line.partition(b": ")
                if name == b"id":
                    cursor = value.decode("ascii")
                elif name == b"data":
                    events.append(value.decode())
        if cursor is None:
            return
        if events:
            self._add(int(cursor), cursor, f"[{','.join(events)}]")
        elif self.cursor is None:
            # from here on everything is told
            self.cursor = cursor
            self._base = int(cursor)
        if not self.live:
            self._go_live()


class _ChangesFeed(_Feed):
    """The versions of the cluster, each a cursor that can only be compared with others."""

    _number = 0

    def _position_of(self, cursor: str | None) -> int | None:
        # one that is another version than the present one has missed something, whatever that was
        return None if cursor is None or cursor != self.cursor else self._number

    async def _follow(self) -> None:
        while True:
            answer = await self._ask({} if self.cursor is None else {"after": self.cursor})
            try:
                version = str(json.loads(await answer.read())["version"])
            finally:
                answer.close()
            if self.cursor is None:
                self.cursor, self._base = version, 0
            elif version != self.cursor:
                self._number += 1
                self._add(self._number, version, "null")
            if not self.live:
                self._go_live()
            await asyncio.sleep(_CHANGES_PAUSE)


class _LogFeed(_Feed):
    """A task's log, with times; a cursor is an offset. Each piece is as an answer that begins at its `start`.

    A log that is written faster than 64 KB in a tenth of a second goes on near its end.
    """

    _is_behind = False

    def _position_of(self, cursor: str | None) -> int | None:
        return int(cursor) if cursor is not None and cursor.isascii() and cursor.isdigit() else None

    async def _follow(self) -> None:
        offset = str(-_TAIL) if self._is_behind or self.cursor is None else self.cursor
        answer = await self._ask({"follow": "1", "timestamps": "1", "offset": offset})
        try:
            lines = _Lines(int(answer.headers.get("X-Log-Offset", "0")))
            skipped = 0
            if (removed := answer.headers.get("X-Log-Removed")) is not None:
                if lines.end < int(removed.partition("-")[2]):
                    self._skip()
                # (the sentence that stands for what was removed is no part of the log)
                skipped = int(answer.headers.get("X-Log-Notice", "0"))
            self._is_behind = False
            if self._base is None:
                self._base = lines.end
            self._go_live()
            while piece := await answer.content.readany():
                if len(piece) >= KEPT:
                    self._skip()
                notice, skipped = skipped, max(0, skipped - len(piece))
                start = lines.end
                if text := lines.feed(piece[notice:]):
                    data = json.dumps({"start": start, "text": text.decode("latin-1")}, ensure_ascii=False)
                    self._add(lines.end, str(lines.end), data)
                await asyncio.sleep(_GATHER)
        finally:
            answer.close()

    def _skip(self) -> None:
        self._is_behind = True
        raise _TooFastError


class _Lines:
    """Puts pieces of a log with times together so that each begins with the time of its first line.

    `end`: the offset after what was given out last.
    """

    def __init__(self, offset: int) -> None:
        self.end = offset
        self._stamp = self._rest = b""
        self._begins = True

    def feed(self, piece: bytes) -> bytes:
        """Return what is ready: whole characters, and times."""
        data, at, length = self._rest + piece, 0, 0
        ready = [] if self._begins else [self._stamp]
        while at < len(data):
            if self._begins:
                if len(data) - at <= _STAMP:
                    break
                self._stamp = data[at : at + _STAMP]
                self._begins = False
                ready.append(self._stamp)
                at += _STAMP
            found = data.find(b"\n", at)
            stop = found + 1 if found >= 0 else len(data) - _unfinished(data[at:])
            ready.append(data[at:stop])
            length += stop - at
            at = stop
            if found < 0:
                break
            self._begins = True
        self._rest = data[at:]
        self.end += length
        return b"".join(ready) if length else b""


def _unfinished(data: bytes) -> int:
    """Return how many bytes at the end are the beginning of a character in UTF-8."""
    for back in range(1, min(3, len(data)) + 1):
        byte = data[-back]
        if byte < 0x80:
            return 0
        if byte >= 0xC0:
            needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2
            return back if needed > back else 0
    return 0


class JoinedStreams:
    """All that is followed by anybody of this process."""

    _kinds: ClassVar[dict[str, type[_Feed]]] = {
        "events": _EventsFeed,
        "changes": _ChangesFeed,
        "log": _LogFeed,
    }

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._feeds: dict[tuple[Subscriber, Subject], _Feed] = {}

    async def follow(self, follower: Subscriber, subject: Subject, cursor: str | None) -> AsyncGenerator[str]:
        """Give the frames of a subscription, each without its id and the braces."""
        key = follower, subject
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._kinds[subject.kind](self._upstream, follower, subject, cursor)
            self._feeds[key] = feed
        feed.readers += 1
        try:
            async with aclosing(feed.frames(cursor)) as frames:
                async for frame in frames:
                    yield frame
        finally:
            feed.readers -= 1
            if not feed.readers:
                feed.task.cancel()
                if self._feeds.get(key) is feed:
                    del self._feeds[key]

    async def close(self) -> None:
        """End all."""
        tasks = [feed.task for feed in self._feeds.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


class PageSubscriptions:
    """The subscriptions of one connection. `send` returns when the other side has taken a frame."""

    def __init__(
        self, streams: JoinedStreams, follower: Subscriber, send: Callable[[str], Awaitable[None]]
    ) -> None:
        self._streams, self._follower, self._send = streams, follower, send
        self._following: dict[int, asyncio.Task[None]] = {}

    def take(self, frame: object) -> None:
        """Do what the other side says; what is no frame is not for us."""
        match frame:
            case {"type": "sub", "id": int() as number, "subject": subject, **others}:
                cursor = others.get("cursor")
                self._drop(number)
                self._following[number] = asyncio.create_task(
                    self._follow(number, subject, cursor if isinstance(cursor, str) else None)
                )
            case {"type": "unsub", "id": int() as number}:
                self._drop(number)

    def close(self) -> None:
        """End all subscriptions."""
        for number in list(self._following):
            self._drop(number)

    def _drop(self, number: int) -> None:
        following = self._following.pop(number, None)
        if following is not None:
            following.cancel()

    async def _follow(self, number: int, value: object, cursor: str | None) -> None:
        try:
            subject = Subject.read(value)
            if len(self._following) > MOST_SUBSCRIPTIONS:
                raise ValueError
        except ValueError:
            message = msg("This cannot be followed.").in_locale(self._follower.language)
            error = {"status": HTTPStatus.BAD_REQUEST, "code": "InvalidParametersError", "message": message}
            await self._tell(number, _frame("end", error=error))
            return
        async with aclosing(self._streams.follow(self._follower, subject, cursor)) as frames:
            async for frame in frames:
                if not await self._tell(number, frame):
                    return

    async def _tell(self, number: int, frame: str) -> bool:
        try:
            await self._send(f'{{"id": {number}, {frame}}}')
        except (WebSocketClosedError, StreamClosedError):
            return False
        return True


def _frame(kind: str, **content: Any) -> str:
    return json.dumps({"type": kind, **content}, ensure_ascii=False)[1:-1]


class FollowingSocket(WebSocketHandler, PersonHandler):
    """Gives a WebSocket its conversation; `_streams` is what is followed through it."""

    _streams: JoinedStreams
    _conversation: PageSubscriptions | None = None
    _beating: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin to follow, for whoever asks."""
        self._conversation = PageSubscriptions(
            self._streams, Subscriber(self.caller, self.locale_asked), self._write
        )
        self._beating = asyncio.create_task(self._beat())

    def take(self, message: str | bytes) -> None:
        """Do what a message says."""
        if self._conversation is not None:
            with suppress(ValueError):
                self._conversation.take(json.loads(message))

    def end(self) -> None:
        """Follow no more."""
        if self._conversation is not None:
            self._conversation.close()
        if self._beating is not None:
            self._beating.cancel()

    async def _write(self, frame: str) -> None:
        # waits until the browser has taken it, so that a slow one is told of a gap
        await self.write_message(frame)

    async def _beat(self) -> None:
        with suppress(WebSocketClosedError, StreamClosedError):
            while True:
                await asyncio.sleep(_BEAT)
                await self.write_message('{"type": "ping"}')
