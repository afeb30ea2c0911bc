"""Answers `POST …/jobs` without tornado, which takes several times as long to read and to answer one.

Each connection begins here. As long as what comes are plain requests (`plain_request`) that submit a job,
they are answered here, by the same steps as tornado's handler does it; with the first other one the
connection is given to tornado for good, with all that came of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from http.client import responses
from typing import TYPE_CHECKING, Any

from tornado.httputil import format_timestamp

from pai_scheduler.job.messages import choose_locale
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.security.principal import Principal

from .answering import AnsweringHandler, failure, log_answer, log_failure, refusal_body, to_json
from .auth import bearer_token
from .body import read_object
from .jobs import JobsHandler
from .plain_request import Head, read_head
from .submission import submit

if TYPE_CHECKING:
    from .base_handlers import HandlerContext

_log = logging.getLogger(__name__)

#: Bytes of the largest body that is read here: nearly all jobs are smaller by far.
_LARGEST_BODY = 64 * 1024
#: bytes that are read at once, and so of what is kept of requests that come before the answer to others
_CHUNK = 128 * 1024
#: Headers that every answer has, as tornado's handlers set them.
_ALWAYS = "Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
_JSON = "Content-Type: application/json; charset=UTF-8\r\n"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a connection may take: seconds between requests, and for a body; `hold` books bytes of bodies."""

    idle_seconds: float
    body_seconds: float
    hold: Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class _Plain:
    """A request as `read_object` wants it."""

    headers: dict[str, str]
    body: bytes


class QuickSubmits:
    """Answers submits. `paths`: where jobs are submitted."""

    def __init__(self, context: HandlerContext, paths: Sequence[str]) -> None:
        self.context = context
        self.starts = tuple(f"POST {path} HTTP/1.1\r\n".encode() for path in paths)

    def is_for_us(self, head: Head) -> bool:
        """Return whether who sends this is known as tornado's handlers would know it."""
        return self.context.prefix == "/" or bool(self._peer(head, ""))

    async def answer(self, head: Head, body: bytes, address: str) -> bytes:
        """Submit the job in `body`; give the answer as it is sent. `address`: the connection's other end."""
        begin = time.monotonic()
        principal: Principal | None = None
        headers: list[tuple[str, str]] = []
        content: Any
        try:
            token = bearer_token(head.headers.get("Authorization", ""))
            principal = await self.context.holder_of(token, self._peer(head, address))
            config = read_object(_Plain(head.headers, body))
            submitted = await submit(self.context, principal, principal.name, config)
            status, headers, content = submitted.status, submitted.headers, submitted.body
        except Exception as error:
            if isinstance(error, RequestError):
                refusal = error
            else:
                refusal = failure(log_failure(f"POST {head.path}", principal, error))
            if refusal.status == 401:
                headers = [("Www-Authenticate", AnsweringHandler.challenge)]
            status = refusal.status
            content = refusal_body(refusal, choose_locale(head.headers.get("Accept-Language", "")))
        answer = _write(status, headers, to_json(content), keeps_open=head.keeps_open)
        took = time.monotonic() - begin
        self.context.service.monitor.answered(JobsHandler.__name__, status, took)
        log_answer("POST", head.path, status, took, principal)
        return answer

    def _peer(self, head: Head, address: str) -> str:
        return self.context.forwarded_peer(head.headers) or address


class QuickConnection:
    """A connection as long as only jobs are submitted over it.

    `give_away` takes it, with the bytes that came and were not answered; `closed` is told of its end instead.
    """

    def __init__(
        self,
        quick: QuickSubmits,
        connection: socket.socket,
        address: str,
        limits: Limits,
        give_away: Callable[[QuickConnection, bytes], None],
        closed: Callable[[QuickConnection], None],
    ) -> None:
        self._quick, self._socket, self._address, self._limits = quick, connection, address, limits
        self._give_away, self._closed = give_away, closed
        self._loop = asyncio.get_running_loop()
        self._come = bytearray()
        #: the head of the request whose body is still to come, or that is being answered
        self._head: Head | None = None
        #: the head before that one as it came, and what it says: a client sends the same many times
        self._last: tuple[bytes, Head] | None = None
        self._task: asyncio.Task[None] | None = None
        self._reads = True
        self._held = 0
        # (what it sends is small, and whole)
        with contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._deadline = self._loop.time() + limits.idle_seconds
        self._timer = self._loop.call_at(self._deadline, self._ring)
        #: rings when a body takes too long
        self._body_timer: asyncio.TimerHandle | None = None
        self._loop.add_reader(connection, self._readable)

    def close(self) -> None:
        """Close it; a job that is being written down is none the less."""
        self._let_go()
        self._socket.close()
        self._closed(self)

    def _readable(self) -> None:
        if self._task is not None:
            # it sends on before it has its answer: that waits
            self._loop.remove_reader(self._socket)
            self._reads = False
            return
        try:
            chunk = self._socket.recv(_CHUNK)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            chunk = b""
        if not chunk:
            self.close()
            return
        self._come += chunk
        self._look()

    def _look(self) -> None:
        """Answer what has come, if it is whole; give the connection away if it is for tornado."""
        if self._head is None:
            head = self._read_head()
            if (
                head is None
                or head.body_size > _LARGEST_BODY
                or not self._quick.is_for_us(head)
                or not self._limits.hold(head.body_size)
            ):
                self._pass_on()
                return
            self._head, self._held = head, head.body_size
        head = self._head
        end = head.size + head.body_size
        if len(self._come) < end:
            if self._body_timer is None:
                self._body_timer = self._loop.call_later(self._limits.body_seconds, self._cut_off)
            return
        self._forget_body_timer()
        body = bytes(self._come[head.size : end])
        del self._come[:end]
        self._task = self._loop.create_task(self._answer(head, body))

    def _read_head(self) -> Head | None:
        """Read the head of a plain request that submits a job; None where it is another one."""
        if self._last is not None and self._come.startswith(self._last[0]):
            return self._last[1]
        head = read_head(self._come) if self._come.startswith(self._quick.starts) else None
        if not isinstance(head, Head):
            return None
        self._last = bytes(self._come[: head.size]), head
        return head

    async def _answer(self, head: Head, body: bytes) -> None:
        answer = await self._quick.answer(head, body, self._address)
        if self._socket.fileno() < 0:
            return
        try:
            sent = self._socket.send(answer)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            self.close()
            return
        if sent == len(answer) or await self._send_rest(answer[sent:]):
            if head.keeps_open:
                self._next()
            else:
                self.close()

    async def _send_rest(self, rest: bytes) -> bool:
        """Send to a client that reads slowly; tell whether the connection is still open."""
        try:
            async with asyncio.timeout(self._limits.idle_seconds):
                await self._loop.sock_sendall(self._socket, rest)
        except (OSError, TimeoutError):
            if self._socket.fileno() >= 0:
                self.close()
        return self._socket.fileno() >= 0

    def _next(self) -> None:
        self._limits.hold(-self._held)
        self._task = self._head = None
        self._held = 0
        self._deadline = self._loop.time() + self._limits.idle_seconds
        if not self._reads:
            self._reads = True
            self._loop.add_reader(self._socket, self._readable)
        if self._come:
            self._look()

    def _ring(self) -> None:
        """Close a connection on which nothing came for too long."""
        if self._head is not None:
            self._deadline = self._loop.time() + self._limits.idle_seconds
        if self._loop.time() >= self._deadline:
            self.close()
        else:
            # (there were requests since it was set)
            self._timer = self._loop.call_at(self._deadline, self._ring)

    def _cut_off(self) -> None:
        _log.info("a body took longer than %g s", self._limits.body_seconds)
        self.close()

    def _forget_body_timer(self) -> None:
        if self._body_timer is not None:
            self._body_timer.cancel()
            self._body_timer = None

    def _pass_on(self) -> None:
        self._let_go()
        self._give_away(self, bytes(self._come))

    def _let_go(self) -> None:
        self._timer.cancel()
        self._forget_body_timer()
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket)
        self._limits.hold(-self._held)
        self._held = 0


def _write(status: int, headers: Sequence[tuple[str, str]], body: bytes, *, keeps_open: bool) -> bytes:
    own = "".join([f"{name}: {value}\r\n" for name, value in headers])
    close = "" if keeps_open else "Connection: close\r\n"
    head = (
        f"HTTP/1.1 {status} {responses[status]}\r\n{_date(int(time.time()))}{_ALWAYS}{_JSON}{own}{close}"
        f"Content-Length: {len(body)}\r\n\r\n"
    )
    return head.encode("latin-1") + body


@lru_cache(maxsize=1)
def _date(now: int) -> str:
    return f"Date: {format_timestamp(now)}\r\n"
