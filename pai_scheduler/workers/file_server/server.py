"""A file server: takes connections one after another, answers each, and says when it has ended."""

from __future__ import annotations

import socket
from collections.abc import Callable

from tornado.http1connection import HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.web import Application

from pai_scheduler.api.answering import log_request
from pai_scheduler.api.http_server import STREAMED, BoundedServer, reading
from pai_scheduler.api.webhdfs.handover import Transfer
from pai_scheduler.api.webhdfs.request import storage_paths
from pai_scheduler.storage.files import Files

from .handlers import TransferContext, TransferHandler
from .messages import Report
from .stream import PassedOnStream

#: Bytes of the longest head; the scheduler itself reads half of that.
_HEAD = 128 * 1024


class FileServer:
    """Serves the `files` of the storage to those whom the scheduler lets in.

    `report` gets what was done, `ended` the number of each connection when it has ended.
    """

    def __init__(
        self,
        files: Files,
        prefix: str,
        report: Callable[[Report], None],
        ended: Callable[[int], None],
        *,
        openpai_compat: bool = False,
    ) -> None:
        paths = storage_paths(prefix, openpai_compat=openpai_compat)
        settings = {"context": TransferContext(files, prefix, report)}
        app = Application([(paths.pattern, TransferHandler, settings)], log_function=log_request)
        app.settings[STREAMED] = paths
        # what the scheduler has read is written anew, so it may be some bytes longer
        self._server = _Server(BoundedServer(app), no_keep_alive=True, max_header_size=_HEAD, **reading())
        self._server.streams, self._server.ended = {}, ended

    def take(self, number: int, connection: socket.socket, about: Transfer) -> None:
        """Answer the request on a connection, and close it."""
        connection.setblocking(False)
        stream = PassedOnStream(number, connection, about, int(reading()["chunk_size"]))
        self._server.streams[number] = stream
        self._server.handle_stream(stream, about.peer)

    def break_off(self, number: int) -> None:
        """End a connection, unless it has ended."""
        if (stream := self._server.streams.get(number)) is not None:
            stream.close()

    async def close(self) -> None:
        """Break off what goes on."""
        await self._server.close_all_connections()


class _Server(HTTPServer):
    """One request for each connection: another one on it would be nobody's."""

    streams: dict[int, PassedOnStream]
    ended: Callable[[int], None]

    def on_close(self, server_conn: object) -> None:
        """Tell that a connection has ended."""
        super().on_close(server_conn)
        if isinstance(server_conn, HTTP1ServerConnection) and isinstance(server_conn.stream, PassedOnStream):
            del self.streams[server_conn.stream.number]
            self.ended(server_conn.stream.number)
