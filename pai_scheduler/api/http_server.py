"""The HTTP server: listens, bounds what clients hold of it, and refuses bodies so that all understand it."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import resource
import socket
import time
from collections.abc import Awaitable, Sequence
from http.client import responses
from typing import Any, Protocol
from weakref import WeakSet

from tornado.http1connection import HTTP1Connection
from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    HTTPServerRequest,
    ParseBodyConfig,
    ParseUrlEncodedConfig,
    RequestStartLine,
    ResponseStartLine,
    set_parse_body_config,
)
from tornado.iostream import IOStream
from tornado.web import Application

from pai_scheduler.i18n import Message, choose_locale, msg

#: Bytes of the largest body that is read.
MAX_BODY = 8 * 1024 * 1024
#: Bytes of all bodies that are on their way: many of them, without a token too, fill no memory.
MAX_BODIES = 32 * MAX_BODY
#: Seconds in which a body must have arrived, one that is thrown away too.
_BODY_SECONDS = 120.0
#: Seconds in which a request must have begun and its head arrived, else the connection is closed.
_IDLE_SECONDS = 75.0
#: Seconds between two looks for requests that are late: a timer for each took a twentieth of a submit.
_LOOK_SECONDS = 1.0
#: The application's setting with the pattern of the paths whose handlers bound their bodies themselves.
STREAMED = "streamed_bodies"
#: Bytes that are read from a connection at once; of a file that comes, many.
_CHUNK = 256 * 1024
#: tornado's own limit, out of the way: its answer is no JSON, and cuts the connection before it can be read.
_NO_LIMIT = 1 << 50


_log = logging.getLogger(__name__)


class Handover(Protocol):
    """Takes connections whose request is served elsewhere."""

    def wants(self, request: HTTPServerRequest) -> bool:
        """Return whether a request of which the head has come is one of those."""

    async def take(self, request: HTTPServerRequest) -> None:
        """Take its connection away (`HTTP1Connection.detach`)."""


class BoundedServer(HTTPServerConnectionDelegate):
    """Hands requests to the application unless their body, or all bodies together, are too large."""

    def __init__(self, app: Application, handover: Handover | None = None) -> None:
        self._app = app
        self.handover = handover
        self._held = 0
        self._requests: WeakSet[_BoundedRequest] = WeakSet()

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Begin to wait for a request."""
        request = _BoundedRequest(self._app.start_request(server_conn, request_conn), request_conn, self)
        self._requests.add(request)
        return request

    async def cut_off_late_ones(self) -> None:
        """Close the connections whose request, or its body, does not come; for ever."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            now = time.monotonic()
            for request in [one for one in self._requests if one.due < now]:
                request.cut_off()

    def streams(self, path: str) -> bool:
        """Return whether a body goes where it is bound for as it comes, and is bounded there."""
        pattern: re.Pattern[str] | None = self._app.settings.get(STREAMED)
        return pattern is not None and pattern.fullmatch(path) is not None

    def hold(self, size: int) -> bool:
        """Make room for a piece of a body (a negative `size`: give it back); False where there is none."""
        if size > 0 and self._held + size > MAX_BODIES:
            return False
        self._held += size
        return True


class _BoundedRequest(HTTPMessageDelegate):
    """Counts a body; one that is too large is refused at once and the rest of it read and thrown away.

    A connection that is closed while the client still sends loses the answer on its way.
    """

    def __init__(self, inner: HTTPMessageDelegate, connection: HTTPConnection, server: BoundedServer) -> None:
        self._inner, self._connection, self._server = inner, connection, server
        self._received = self._held = 0
        self._refused = self._streamed = self._passed_on = False
        self._headers: HTTPHeaders | None = None
        #: until when its head, then its body, must have come (`time.monotonic`)
        self.due = time.monotonic() + _IDLE_SECONDS

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        self._headers, self.due = headers, math.inf
        if isinstance(start_line, RequestStartLine):
            self._streamed = self._server.streams(start_line.path.partition("?")[0])
            if self._streamed and (handover := self._server.handover) is not None:
                request = HTTPServerRequest(
                    connection=self._connection, start_line=start_line, headers=headers
                )
                if handover.wants(request):
                    self._passed_on = True
                    return handover.take(request)
        self._limit_time(headers)
        answer = self._inner.headers_received(start_line, headers)
        if self._streamed:
            return answer
        length = headers.get("Content-Length", "0")
        if length.isdigit() and int(length) > MAX_BODY:
            self._refuse(413, "BodyTooLargeError", _too_large())
            if headers.get("Expect", "").lower() == "100-continue":
                self._connection.finish()  # the client waits with the body, so nothing is on its way
        return answer

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        if self._streamed:
            return self._inner.data_received(chunk)
        self._received += len(chunk)
        if self._received > MAX_BODY:
            self._refuse(413, "BodyTooLargeError", _too_large())
        elif not self._refused and not self._server.hold(len(chunk)):
            busy = msg("The scheduler is receiving too much at once. Nothing was accepted; try again soon.")
            self._refuse(503, "TooBusyError", busy)
        if self._refused:
            return None
        self._held += len(chunk)
        return self._inner.data_received(chunk)

    def finish(self) -> None:
        self._let_go()
        if self._refused:
            self._connection.finish()
        else:
            self._inner.finish()

    def on_connection_close(self) -> None:
        self._let_go()
        if not self._passed_on:
            self._inner.on_connection_close()

    def _limit_time(self, headers: HTTPHeaders) -> None:
        """Say until when a body must have come, if one follows."""
        if self._streamed:
            # its handler may set another limit
            if isinstance(self._connection, HTTP1Connection):
                self._connection.set_body_timeout(_BODY_SECONDS)
        elif headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers:
            self.due = time.monotonic() + _BODY_SECONDS

    def cut_off(self) -> None:
        """Close the connection."""
        self.due = math.inf
        if isinstance(self._connection, HTTP1Connection):
            if self._headers is not None:
                _log.info("a body took longer than %g s", _BODY_SECONDS)
            self._connection.close()

    def _let_go(self) -> None:
        self.due = math.inf
        self._give_back()

    def _give_back(self) -> None:
        self._server.hold(-self._held)
        self._held = 0

    def _refuse(self, status: int, code: str, message: Message) -> None:
        if self._refused:
            return
        self._refused = True
        self._give_back()
        language = choose_locale(self._headers.get("Accept-Language", "") if self._headers else "")
        body = json.dumps({"code": code, "message": message.in_locale(language)}, ensure_ascii=False).encode()
        headers = HTTPHeaders(
            {
                "Content-Type": "application/json; charset=UTF-8",
                "Content-Length": str(len(body)),
                "Connection": "close",
            }
        )
        self._connection.write_headers(
            ResponseStartLine("HTTP/1.1", status, responses[status]), headers, body
        )


class _Server(HTTPServer):
    """Takes at most half as many connections as files may be open: with none left, nothing works at all."""

    _connected = 0

    def look_for_late_ones(self, requests: BoundedServer) -> None:
        """Keep the times of requests, instead of tornado."""
        self.conn_params.header_timeout = None
        self._looking = asyncio.get_running_loop().create_task(requests.cut_off_late_ones())

    def stop(self) -> None:
        """Listen no more."""
        super().stop()
        self._looking.cancel()

    def handle_stream(self, stream: IOStream, address: tuple[Any, ...]) -> None:
        """Take a connection, or close it at once."""
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2
        if self._connected >= most:
            stream.close()
            return
        self._connected += 1
        if self._connected == most:
            _log.warning("there are %d connections, half as many as open files: no more are taken", most)
        super().handle_stream(stream, address)

    def on_close(self, server_conn: object) -> None:
        """Forget a connection that was closed."""
        self._connected -= 1
        super().on_close(server_conn)


def _too_large() -> Message:
    return msg("The body is too large: {limit} MiB at most.", limit=MAX_BODY // 1024 // 1024)


def serve(app: Application, sockets: Sequence[socket.socket], handover: Handover | None = None) -> HTTPServer:
    """Answer on `sockets` from now on."""
    requests = BoundedServer(app, handover)
    server = _Server(requests, **{**reading(), "body_timeout": None})
    server.look_for_late_ones(requests)
    server.add_sockets(sockets)
    return server


def reading() -> dict[str, Any]:
    """Return how an HTTP server of ours reads requests, as tornado wants to be told."""
    # forms are read by `read_body`, which has its own bound; tornado's would refuse a job of 100 roles before
    set_parse_body_config(ParseBodyConfig(urlencoded=ParseUrlEncodedConfig(max_arguments=MAX_BODY)))
    return {
        "chunk_size": _CHUNK,
        "max_body_size": _NO_LIMIT,
        "body_timeout": _BODY_SECONDS,
        "idle_connection_timeout": _IDLE_SECONDS,
    }


def scheme(request: HTTPServerRequest) -> str:
    """Return "http" or "https", as the client sees it: the Hub's proxy says it in `X-Forwarded-Proto`."""
    forwarded = request.headers.get("X-Forwarded-Proto", "").rpartition(",")[2].strip()
    return forwarded if forwarded in ("http", "https") else request.protocol
