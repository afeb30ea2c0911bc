"""A file server: takes connections one after another, answers each, and says when it has ended."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass

from tornado.http1connection import HTTP1Connection, HTTP1ServerConnection
from tornado.httpserver import HTTPServer
from tornado.iostream import IOStream
from tornado.web import Application, stream_request_body

from pai_scheduler.api.answering import log_request
from pai_scheduler.api.http_server import STREAMED, BoundedServer, reading
from pai_scheduler.api.webhdfs.handover import Transfer
from pai_scheduler.api.webhdfs.request import WebHdfsRequest, storage_paths
from pai_scheduler.api.webhdfs.transfer import (
    BodyUpload,
    BrokenOffError,
    UnsatisfiableError,
    attachment,
    entity_tag,
    wanted_part,
    zipped,
)
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.storage.files import Files

from .messages import Answered, Report, Sent

# A connection that was passed on: first what the scheduler has read of it, then what the client sends.


class PassedOnStream(IOStream):
    """Reads the beginning of `transfer` again, then from its socket. `number`: as the scheduler calls it."""

    def __init__(self, number: int, connection: socket.socket, transfer: Transfer, chunk: int) -> None:
        self.number, self.transfer = number, transfer
        self._beginning = memoryview(transfer.head + transfer.begun)
        super().__init__(connection, read_chunk_size=chunk)

    def read_from_fd(self, buf: bytearray | memoryview) -> int | None:
        """Read into `buf`; return how many bytes, None where there are none yet."""
        if self._beginning:
            part = self._beginning[: len(buf)]
            buf[: len(part)] = part
            self._beginning = self._beginning[len(part) :]
            return len(part)
        return super().read_from_fd(buf)


# Handlers of a file server: a file or an archive goes, a file comes (OPEN, ARCHIVE, CREATE, APPEND).


#: Seconds that a body may take; what counts is that it goes on.
_LONGEST_BODY = 7 * 86400.0


@dataclass(frozen=True, slots=True)
class TransferContext:
    """The cluster's files, the path under which users reach us, and who is told what was done."""

    files: Files
    prefix: str
    report: Callable[[Report], None]


@stream_request_body
class TransferHandler(WebHdfsRequest):
    """A request whose connection the scheduler has passed on."""

    def initialize(self, context: TransferContext) -> None:  # type: ignore[override]
        """Take what tornado hands to each new handler."""
        super().initialize()
        self.context = context
        self.prefix = context.prefix
        self._upload: BodyUpload | None = None

    @property
    def files(self) -> Files:
        """Return the cluster's files."""
        return self.context.files

    async def identify(self) -> Principal:
        """Return who asks, as the scheduler has found out."""
        connection = self.request.connection
        stream = connection.stream if isinstance(connection, HTTP1Connection) else None
        if not isinstance(stream, PassedOnStream):
            raise TypeError("this connection was not passed on by the scheduler")
        admitted = stream.transfer.admitted
        if isinstance(admitted, Principal):
            return admitted
        raise RequestError(*admitted)

    async def begin(self) -> None:
        """Begin to take a file, where the storage wants it."""
        await self.check_transfer()
        if self.request.method != "GET":
            if isinstance(self.request.connection, HTTP1Connection):
                self.request.connection.set_body_timeout(_LONGEST_BODY)
            self._upload = BodyUpload(self._store)
            self._upload.task.add_done_callback(self._stored)
            await self._upload.accepted()

    async def act(self) -> None:
        """Do the rest once the body has come."""
        if self._upload is not None:
            await self._complete(self._upload)
        elif self.operation == "OPEN":
            await self._send_file()
        else:
            async with aclosing(zipped(self.files, self.principal, self.path)) as pieces:
                await self._send(f"{self.path.name or 'files'}.zip", "application/zip", pieces)

    def count(self, status: int, seconds: float | None) -> None:
        """Have an answer counted, and how long it took; None: that is its reader's business."""
        self.context.report(Answered(status, seconds))

    def sent(self, size: int) -> None:
        """Have bytes counted that were sent."""
        self.context.report(Sent(size))

    # -- a file comes ----------------------------------------------------------------------------------------

    async def data_received(self, chunk: bytes) -> None:
        """Take a part of the body."""
        if self._upload is not None and not self.answered:
            await self._upload.receive(chunk)
            return
        await super().data_received(chunk)

    def on_connection_close(self) -> None:
        """Stop taking what comes no more."""
        super().on_connection_close()
        if self._upload is not None and self.goes_on:
            self._upload.break_off()

    async def _store(self, pieces: AsyncIterator[bytes]) -> None:
        if self.operation == "APPEND":
            offset = self.parameters.number("offset")
            await self.files.append(self.principal, self.path, pieces, offset=offset)
            return
        overwrite, permission = self.parameters.flag("overwrite"), self.parameters.permission()
        await self.files.create(self.principal, self.path, pieces, overwrite=overwrite, permission=permission)

    def _stored(self, task: asyncio.Task[None]) -> None:
        """Answer at once where the storage refused the rest of a file."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, BrokenOffError):
            self.cut()
        elif isinstance(error, Exception) and self.goes_on:
            self.refuse(error)

    async def _complete(self, upload: BodyUpload) -> None:
        self.timed = False
        await upload.finish()
        if self.operation == "CREATE":
            self.set_status(201)
            self.set_header("Location", self.here)
        self.answer_nothing()

    # -- a file goes -----------------------------------------------------------------------------------------

    async def _send_file(self) -> None:
        offset, length = self.parameters.number("offset"), self.parameters.number("length")
        if offset is None and length is None and (header := self.request.headers.get("Range")):
            status = await self.files.status(self.principal, self.path)
            try:
                part = wanted_part(header, status.length)
            except UnsatisfiableError:
                self._answer_unsatisfiable(status.length)
                return
            if part and self.request.headers.get("If-Range") in (None, entity_tag(status)):
                offset, length = part.offset, part.length
                self.set_status(206)
                self.set_header("Content-Range", part.content_range(status.length))
        async with self.files.open(self.principal, self.path, offset or 0, length) as file:
            self.set_header("Content-Length", str(file.length))
            self.set_header("Accept-Ranges", "bytes")
            self.set_header("ETag", entity_tag(file.status))
            await self._send(self.path.name, "application/octet-stream", file.pieces)

    async def _send(self, name: str, kind: str, pieces: AsyncIterator[bytes]) -> None:
        """Send what is to be kept as a file."""
        self.set_header("Content-Type", kind)
        self.set_header("Content-Disposition", attachment(name))
        await self.send_pieces(pieces)

    def _answer_unsatisfiable(self, size: int) -> None:
        self.set_header("Content-Range", f"bytes */{size}")
        message = msg("{path} is {size:,} bytes long and has no such part.", path=str(self.path), size=size)
        self.answer(self.error_body(RequestError(416, "IOException", message)), 416)


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
