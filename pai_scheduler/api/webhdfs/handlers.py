"""WebHDFS in front of the cluster's files, so that no client needs to reach a datanode, or HDFS at all.

Hadoop's "WebHDFS REST API", with the redirects of OPEN, CREATE and APPEND leading back here: their Location
has a ticket instead of a token. `data=true` with a token of one's own is answered at once. Beside it there
are COPY, ARCHIVE, and `limit` for LISTSTATUS_BATCH.
"""

from __future__ import annotations

import asyncio
from asyncio import Future
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing
from typing import Any
from urllib.parse import urlencode

from tornado.http1connection import HTTP1Connection
from tornado.iostream import StreamClosedError
from tornado.web import stream_request_body

from pai_scheduler.api.auth import token_or_password
from pai_scheduler.api.base_handlers import ApiHandler, HandlerContext
from pai_scheduler.job.messages import msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.service import Principal
from pai_scheduler.storage.errors import Problem, StorageError
from pai_scheduler.storage.path import StoragePath
from pai_scheduler.storage.trees import Right, check

from .answers import listing_pieces
from .archive import zipped
from .download import UnsatisfiableError, attachment, entity_tag, wanted_part
from .errors import refusal_answer, refusal_of
from .operations import OPERATIONS, Question, no_operation
from .parameters import Parameters, decoded_path
from .redirect_tickets import RequestScope
from .upload import SILENCE, BodyUpload, BrokenOffError

#: Where it is, below the prefix; the second one for clients of OpenPAI.
BASE, OPENPAI_BASE = "webhdfs/v1", "webhdfs/api/v1"
#: What carries a file's contents, by method.
_TRANSFERS: Mapping[str, tuple[str, ...]] = {
    "GET": ("OPEN", "ARCHIVE"),
    "PUT": ("CREATE",),
    "POST": ("APPEND",),
    "DELETE": (),
}
#: What may have a long answer.
_LONG: Mapping[str, tuple[str, ...]] = {"GET": ("LISTSTATUS",)}
#: Of a body that nobody wants, so many bytes are read and thrown away, for so many seconds: a connection that
#: is closed while the client still sends loses the answer on its way.
_THROWN_AWAY, _THROWN_AWAY_SECONDS = 64 * 1024 * 1024, 30.0
#: Seconds that a body may take; what counts is that it goes on.
_LONGEST_BODY = 7 * 86400.0


@stream_request_body
class WebHdfsHandler(ApiHandler):
    """`/webhdfs/v1/…`: what is refused or redirected is answered before the body is read."""

    challenge = 'Bearer realm="PAI", Basic realm="PAI"'

    def initialize(self, context: HandlerContext) -> None:
        """Take what tornado hands to each new handler."""
        super().initialize(context)
        headers = self.request.headers
        self._has_body = headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers
        #: where a body is still to come, an answer waits for its end
        self._goes_on = True
        #: whoever asks first has nothing on its way
        self._asks = headers.get("Expect", "").lower() == "100-continue"
        self._upload: BodyUpload | None = None
        self._answered = False
        self._thrown_away = 0

    # -- who asks for what -----------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Find out who asks for what; begin to take a file, or answer what needs no body."""
        try:
            self.parameters = Parameters.read(self.request.query_arguments)
            self.operation = self.parameters.operation
            await super().prepare()
            await self._begin()
        except Exception as error:
            self._refuse(error)
        self._asks = False

    async def identify(self) -> Principal:
        """Know the caller by a ticket, or by a token of one's own or of a job."""
        self.path = decoded_path(self.request.path.removeprefix(self._base))
        authorization = self.request.headers.get("Authorization", "")
        if ticket := self.parameters.text("ticket"):
            principal = self.context.tickets.redeem(ticket, self._scope)
            if principal is not None:
                return principal
            if not authorization:
                raise _bad_ticket()
        if not authorization and (token := self.parameters.text("delegation")):
            # how fsspec and Hadoop's own clients say who they are
            authorization = f"Bearer {token}"
        token = token_or_password(authorization)
        return await self.service.job_holder(token) or await self.identify_token(token)

    @property
    def _method(self) -> str:
        return self.request.method or ""

    @property
    def _base(self) -> str:
        """Return the path under which we were asked."""
        base = f"{self.context.prefix}{BASE}"
        return base if self.request.path.startswith(base) else f"{self.context.prefix}{OPENPAI_BASE}"

    @property
    def _here(self) -> str:
        """Return the address under which we were asked, without the query."""
        return f"{self.request.protocol}://{self.request.host}{self._base}{self.path.encoded}"

    @property
    def _scope(self) -> RequestScope:
        return RequestScope(self._method, self.operation, self.path, self.parameters.of_the_request)

    async def _begin(self) -> None:
        if self.operation not in _TRANSFERS.get(self._method, ()):
            if self.operation not in (*_LONG.get(self._method, ()), *OPERATIONS.get(self._method, ())):
                raise no_operation(self.operation, self._method, _TRANSFERS, _LONG, OPERATIONS)
            return
        at_once = self.parameters.flag("data")
        if self._method == "GET":
            if self.operation == "ARCHIVE" or not at_once:
                status = await self.service.files.status(self.principal, self.path)
                if status.is_folder is not (self.operation == "ARCHIVE"):
                    raise _wrong_kind(self.path, is_folder=status.is_folder)
        else:
            await self._check_target()
        if not at_once:
            self._redirect()
        elif self._method != "GET":
            if isinstance(self.request.connection, HTTP1Connection):
                self.request.connection.set_body_timeout(_LONGEST_BODY)
            self._upload = BodyUpload(self._store)
            self._upload.task.add_done_callback(self._stored)
            await self._upload.accepted()

    async def _check_target(self) -> None:
        """Refuse, before the file comes, what is going to be refused."""
        check(self.principal, self.path, Right.WRITE)
        self.parameters.permission()
        overwrite = self.parameters.flag("overwrite")
        try:
            status = await self.service.files.status(self.principal, self.path)
        except StorageError as error:
            if error.problem is not Problem.NOT_FOUND or self.operation == "APPEND":
                raise
            return
        if self.operation == "CREATE" and (status.is_folder or not overwrite):
            raise StorageError(
                Problem.EXISTS,
                msg(
                    "There is something called {path} already: choose another name, or overwrite it.",
                    path=str(self.path),
                ),
            )
        if status.is_folder:
            raise _wrong_kind(self.path, is_folder=True)

    def _redirect(self) -> None:
        """Send the client to ourselves again, with a ticket."""
        ticket = self.context.tickets.issue(self.principal, self._scope)
        values = [*sorted(self.parameters.of_the_request), ("data", "true"), ("ticket", ticket)]
        location = f"{self._here}?{urlencode(values, errors='surrogateescape')}"
        if self.parameters.flag("noredirect"):
            self.answer({"Location": location})
            return
        self.set_status(307)
        self.set_header("Location", location)
        self._answer_nothing()

    # -- doing it --------------------------------------------------------------------------------------------

    async def _act(self) -> None:
        self._goes_on = False
        if self._answered:
            self.finish()
            return
        try:
            if self._upload is not None:
                await self._complete(self._upload)
            elif self.operation == "OPEN":
                await self._send_file()
            elif self.operation == "ARCHIVE":
                await self._send_archive()
            elif self.operation == "LISTSTATUS":
                await self._send_listing()
            else:
                ask = Question(self.service.files, self.principal, self.path, self.parameters)
                body = await OPERATIONS[self._method][self.operation](ask)
                self._answer_nothing() if body is None else self.answer(body)
        except StorageError as error:
            raise refusal_of(error) from error

    get = put = post = delete = _act
    # there are no such methods: `prepare` has refused them, and here that answer comes to its end
    head = patch = options = _act

    # -- a file comes ----------------------------------------------------------------------------------------

    async def data_received(self, chunk: bytes) -> None:
        """Take a part of the body."""
        if self._upload is not None and not self._answered:
            await self._upload.receive(chunk)
            return
        self._thrown_away += len(chunk)
        if self._thrown_away > _THROWN_AWAY:
            self._cut()

    def on_connection_close(self) -> None:
        """Stop taking what comes no more."""
        super().on_connection_close()
        if self._upload is not None and self._goes_on:
            self._upload.break_off()

    async def _store(self, pieces: AsyncIterator[bytes]) -> None:
        files = self.service.files
        async with self.context.transfers.counted(self.principal):
            if self.operation == "APPEND":
                await files.append(self.principal, self.path, pieces)
                return
            overwrite, permission = self.parameters.flag("overwrite"), self.parameters.permission()
            await files.create(self.principal, self.path, pieces, overwrite=overwrite, permission=permission)

    def _stored(self, task: asyncio.Task[None]) -> None:
        """Say at once that the storage refused the rest of a file."""
        error = None if task.cancelled() else task.exception()
        if isinstance(error, BrokenOffError):
            self._cut()
        elif isinstance(error, Exception) and self._goes_on:
            self._refuse(error)

    async def _complete(self, upload: BodyUpload) -> None:
        self.timed = False
        await upload.finish()
        if self.operation == "CREATE":
            self.set_status(201)
            self.set_header("Location", self._here)
        self._answer_nothing()

    # -- a file goes -----------------------------------------------------------------------------------------

    async def _send_file(self) -> None:
        offset, length = self.parameters.number("offset"), self.parameters.number("length")
        whole = offset is None and length is None
        async with self.context.transfers.counted(self.principal):
            if whole and (header := self.request.headers.get("Range")):
                status = await self.service.files.status(self.principal, self.path)
                try:
                    part = wanted_part(header, status.length)
                except UnsatisfiableError:
                    self._answer_unsatisfiable(status.length)
                    return
                if part and self.request.headers.get("If-Range") in (None, entity_tag(status)):
                    offset, length = part.offset, part.length
                    self.set_status(206)
                    self.set_header("Content-Range", part.content_range(status.length))
            async with self.service.files.open(self.principal, self.path, offset or 0, length) as file:
                self.set_header("Content-Length", str(file.length))
                self.set_header("Accept-Ranges", "bytes")
                self.set_header("ETag", entity_tag(file.status))
                await self._send(self.path.name, "application/octet-stream", file.pieces)

    async def _send_archive(self) -> None:
        async with (
            self.context.transfers.counted(self.principal),
            aclosing(zipped(self.service.files, self.principal, self.path)) as pieces,
        ):
            await self._send(f"{self.path.name or 'files'}.zip", "application/zip", pieces)

    async def _send_listing(self) -> None:
        """List a folder of any length, beside everybody else's requests."""
        listing = await self.service.files.list(self.principal, self.path)
        self.set_header("Content-Type", "application/json; charset=UTF-8")
        await self._send_pieces(_one_by_one(listing_pieces(listing, self.path)))

    async def _send(self, name: str, kind: str, pieces: AsyncIterator[bytes]) -> None:
        """Send what is to be kept as a file."""
        self.set_header("Content-Type", kind)
        self.set_header("Content-Disposition", attachment(name))
        await self._send_pieces(pieces)

    async def _send_pieces(self, pieces: AsyncIterator[bytes]) -> None:
        """Send pieces as fast as they are taken; who takes nothing for minutes is cut off."""
        self.timed = False
        try:
            async for piece in pieces:
                self.write(piece)
                self.service.monitor.sent(type(self).__name__, len(piece))
                async with asyncio.timeout(SILENCE):
                    await self.flush()
            self.finish()
        except StreamClosedError:
            return
        except TimeoutError:
            self._cut()

    # -- answers ---------------------------------------------------------------------------------------------

    def finish(self, chunk: str | bytes | dict[str, Any] | None = None) -> Future[None]:
        """Answer; while a body comes, the rest of it is read and thrown away before that is the end.

        A connection that is closed while the client still sends loses the answer on its way.
        """
        if self._has_body and not self._headers_written and self._goes_on:
            self.set_header("Connection", "close")
        if self._asks or not self._goes_on:
            return super().finish(chunk)
        if not self._answered:
            self._answered = True
            self.set_header("Content-Length", str(len(chunk or b"")))
            if chunk is not None:
                self.write(chunk)
            self._flushed = self.flush()
            if self._has_body:
                asyncio.get_running_loop().call_later(_THROWN_AWAY_SECONDS, self._cut_body)
        return self._flushed

    def error_body(self, refusal: RequestError) -> dict[str, Any]:
        """Return a refusal as WebHDFS has it."""
        if refusal.status in (429, 503):
            self.set_header("Retry-After", "5")
        return refusal_answer(refusal, self.in_words(refusal.message))

    def _refuse(self, error: Exception) -> None:
        if self._answered or self._finished:
            return
        refusal = refusal_of(error) if isinstance(error, StorageError) else error
        info = (type(refusal), refusal, refusal.__traceback__)
        self.log_exception(*info)
        self.send_error(500, exc_info=info)

    def _answer_nothing(self) -> None:
        self.set_header("Content-Type", "application/octet-stream")
        self.finish()

    def _answer_unsatisfiable(self, size: int) -> None:
        self.set_header("Content-Range", f"bytes */{size}")
        message = msg("{path} is {size:,} bytes long and has no such part.", path=str(self.path), size=size)
        self.answer(self.error_body(RequestError(416, "IOException", message)), 416)

    def _cut_body(self) -> None:
        if self._goes_on:
            self._cut()

    def _cut(self) -> None:
        if isinstance(self.request.connection, HTTP1Connection):
            self.request.connection.close()


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def _bad_ticket() -> RequestError:
    message = msg("This ticket is for something else, or has expired. Ask for the file again.")
    return RequestError(403, "InvalidToken", message)


def _wrong_kind(path: StoragePath, *, is_folder: bool) -> StorageError:
    if is_folder:
        return StorageError(Problem.IS_A_FOLDER, msg("{path} is a folder, not a file.", path=str(path)))
    return StorageError(Problem.NOT_A_FOLDER, msg("{path} is a file, not a folder.", path=str(path)))
