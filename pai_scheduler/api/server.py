"""The HTTP server: listens, and answers a body that is too large in a way that every client understands."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Sequence

from tornado.httpserver import HTTPServer
from tornado.httputil import (
    HTTPConnection,
    HTTPHeaders,
    HTTPMessageDelegate,
    HTTPServerConnectionDelegate,
    RequestStartLine,
    ResponseStartLine,
)
from tornado.web import Application

from ..job.messages import choose_locale, msg

#: Bytes of the largest body that is read.
MAX_BODY = 8 * 1024 * 1024
#: Seconds in which a body must have arrived, one that is thrown away too.
_BODY_SECONDS = 120.0
#: tornado's own limit, out of the way: its answer is no JSON, and cuts the connection before it can be read.
_NO_LIMIT = 1 << 50


class BoundedServer(HTTPServerConnectionDelegate):
    """Hands requests to the application unless their body is too large."""

    def __init__(self, app: Application) -> None:
        self._app = app

    def start_request(self, server_conn: object, request_conn: HTTPConnection) -> HTTPMessageDelegate:
        """Begin a request."""
        return _BoundedRequest(self._app.start_request(server_conn, request_conn), request_conn)


class _BoundedRequest(HTTPMessageDelegate):
    """Counts a body; one that is too large is refused at once and the rest of it read and thrown away.

    A connection that is closed while the client still sends loses the answer on its way.
    """

    def __init__(self, inner: HTTPMessageDelegate, connection: HTTPConnection) -> None:
        self._inner, self._connection = inner, connection
        self._received = 0
        self._refused = False

    def headers_received(
        self, start_line: RequestStartLine | ResponseStartLine, headers: HTTPHeaders
    ) -> Awaitable[None] | None:
        self._language = choose_locale(headers.get("Accept-Language", ""))
        answer = self._inner.headers_received(start_line, headers)
        length = headers.get("Content-Length", "0")
        if length.isdigit() and int(length) > MAX_BODY:
            self._refuse()
            if headers.get("Expect", "").lower() == "100-continue":
                self._connection.finish()  # the client waits with the body, so nothing is on its way
        return answer

    def data_received(self, chunk: bytes) -> Awaitable[None] | None:
        self._received += len(chunk)
        if self._received > MAX_BODY:
            self._refuse()
        return None if self._refused else self._inner.data_received(chunk)

    def finish(self) -> None:
        if self._refused:
            self._connection.finish()
        else:
            self._inner.finish()

    def on_connection_close(self) -> None:
        self._inner.on_connection_close()

    def _refuse(self) -> None:
        if self._refused:
            return
        self._refused = True
        message = msg("The body is too large: {limit} MiB at most.", limit=MAX_BODY // 1024 // 1024)
        body = json.dumps(
            {"code": "BodyTooLargeError", "message": message.in_locale(self._language)}, ensure_ascii=False
        ).encode()
        headers = HTTPHeaders(
            {
                "Content-Type": "application/json; charset=UTF-8",
                "Content-Length": str(len(body)),
                "Connection": "close",
            }
        )
        self._connection.write_headers(ResponseStartLine("HTTP/1.1", 413, "Payload Too Large"), headers, body)


def serve(app: Application, sockets: Sequence[socket.socket]) -> HTTPServer:
    """Answer on `sockets` from now on. `X-Forwarded-Proto` is believed: the Hub's proxy sets it."""
    server = HTTPServer(
        BoundedServer(app), max_body_size=_NO_LIMIT, body_timeout=_BODY_SECONDS, xheaders=True
    )
    server.add_sockets(sockets)
    return server
