"""A request for users' files: what it asks for, how it is refused or answered while a body comes."""

from __future__ import annotations

import asyncio
import re
from abc import abstractmethod
from asyncio import Future
from collections.abc import AsyncIterator, Mapping
from typing import Any

from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPServerRequest
from tornado.iostream import StreamClosedError

from pai_scheduler.api.answering import AnsweringHandler
from pai_scheduler.api.server import scheme
from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.rest.webhdfs import RefusalAnswer
from pai_scheduler.storage.files import Files, Right, check
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath

from .errors import refusal_answer, refusal_of
from .parameters import Parameters, decoded_path
from .redirect_tickets import RequestScope
from .upload import SILENCE

#: Where it is, below the prefix; the second one for clients of OpenPAI.
BASE, OPENPAI_BASE = "webhdfs/v1", "webhdfs/api/v1"
#: What carries a file's contents, by method.
TRANSFERS: Mapping[str, tuple[str, ...]] = {
    "GET": ("OPEN", "ARCHIVE"),
    "PUT": ("CREATE",),
    "POST": ("APPEND",),
}
#: Of a body that nobody wants, so many bytes are read and thrown away, for so many seconds: a connection that
#: is closed while the client still sends loses the answer on its way.
_THROWN_AWAY, _THROWN_AWAY_SECONDS = 64 * 1024 * 1024, 30.0


def storage_paths(prefix: str, *, openpai_compat: bool) -> re.Pattern[str]:
    """Return the paths of URLs that are the storage's."""
    # the path of a file is no group of it: tornado would decode that
    bases = "|".join([BASE, OPENPAI_BASE] if openpai_compat else [BASE])
    return re.compile(rf"{re.escape(prefix)}(?:{bases})(?:/.*)?")


def base_of(path: str, prefix: str) -> str:
    """Return the beginning of a URL's path that is not the file's."""
    base = f"{prefix}{BASE}"
    return base if path.startswith(base) else f"{prefix}{OPENPAI_BASE}"


def scope_of(request: HTTPServerRequest, prefix: str) -> RequestScope:
    """Return what a request asks for; RequestError where that cannot be read."""
    parameters = Parameters.read(request.query_arguments)
    path = decoded_path(request.path.removeprefix(base_of(request.path, prefix)))
    return RequestScope(request.method or "", parameters.operation, path, parameters.of_the_request)


class WebHdfsRequest(AnsweringHandler):
    """What is refused or redirected is answered before the body is read."""

    challenge = 'Bearer realm="PAI", Basic realm="PAI"'
    prefix: str
    parameters: Parameters
    operation: str
    path: StoragePath

    def initialize(self, **_settings: Any) -> None:
        """Look at what tells whether a body comes."""
        headers = self.request.headers
        self._has_body = headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers
        #: where a body is still to come, an answer waits for its end
        self.goes_on = True
        #: a client that asks first has no body on its way
        self._asks = headers.get("Expect", "").lower() == "100-continue"
        self.answered = False
        self._thrown_away = 0

    @property
    @abstractmethod
    def files(self) -> Files:
        """Return the cluster's files."""

    @abstractmethod
    async def identify(self) -> Principal:
        """Find out who asks; refuses who cannot be known."""

    @abstractmethod
    async def begin(self) -> None:
        """Do what comes before the body, for somebody who is known."""

    @abstractmethod
    async def act(self) -> None:
        """Do the rest once the body has come."""

    # -- in which order --------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Find out who asks for what, and begin."""
        try:
            self.parameters = Parameters.read(self.request.query_arguments)
            self.identified = await self.identify()
            self.operation = self.parameters.operation
            if self.request.method not in self.allowed_methods():
                raise self._wrong_method()
            self.path = decoded_path(self.request.path.removeprefix(base_of(self.request.path, self.prefix)))
            await self.begin()
        except Exception as error:
            self.refuse(error)
        self._asks = False

    async def _act(self) -> None:
        self.goes_on = False
        if self.answered:
            self.finish()
            return
        try:
            await self.act()
        except StorageError as error:
            raise refusal_of(error) from error

    get = put = post = delete = _act
    # there are no such methods: `prepare` has refused them, and here that answer comes to its end
    head = patch = options = _act

    async def check_transfer(self) -> None:
        """Refuse, before the file comes or goes, what is going to be refused."""
        if self.request.method == "GET":
            # a file that is opened at once says so itself
            if self.operation == "ARCHIVE" or not self.parameters.flag("data"):
                status = await self.files.status(self.principal, self.path)
                if status.is_folder is not (self.operation == "ARCHIVE"):
                    raise _wrong_kind(self.path, is_folder=status.is_folder)
            return
        check(self.principal, self.path, Right.WRITE)
        self.parameters.permission()
        if self.operation == "APPEND":
            self.parameters.number("offset")
        overwrite = self.parameters.flag("overwrite")
        try:
            status = await self.files.status(self.principal, self.path)
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

    # -- answers ---------------------------------------------------------------------------------------------

    @property
    def here(self) -> str:
        """Return the address under which we were asked, without the query."""
        base = base_of(self.request.path, self.prefix)
        return f"{scheme(self.request)}://{self.request.host}{base}{self.path.encoded}"

    async def data_received(self, chunk: bytes) -> None:
        """Throw a part of the body away."""
        self._thrown_away += len(chunk)
        if self._thrown_away > _THROWN_AWAY:
            self.cut()

    def finish(self, chunk: str | bytes | dict[str, Any] | None = None) -> Future[None]:
        """Answer; while a body comes, the rest of it is read and thrown away before that is the end.

        A connection that is closed while the client still sends loses the answer on its way.
        """
        if self._has_body and not self._headers_written and self.goes_on:
            self.set_header("Connection", "close")
        if self._asks or not self.goes_on:
            return super().finish(chunk)
        if not self.answered:
            self.answered = True
            self.set_header("Content-Length", str(len(chunk or b"")))
            if chunk is not None:
                self.write(chunk)
            self._flushed = self.flush()
            if self._has_body:
                asyncio.get_running_loop().call_later(_THROWN_AWAY_SECONDS, self._cut_body)
        return self._flushed

    def error_body(self, refusal: RequestError) -> RefusalAnswer:
        """Return a refusal as WebHDFS has it."""
        if refusal.status in (429, 503):
            self.set_header("Retry-After", "5")
        return refusal_answer(refusal, self.in_words(refusal.message))

    def refuse(self, error: Exception) -> None:
        """Answer with a refusal, unless there is an answer already."""
        if self.answered or self._finished:
            return
        refusal = refusal_of(error) if isinstance(error, StorageError) else error
        info = (type(refusal), refusal, refusal.__traceback__)
        self.log_exception(*info)
        self.send_error(500, exc_info=info)

    def answer_nothing(self) -> None:
        """Answer that it is done, where there is nothing to say."""
        self.set_header("Content-Type", "application/octet-stream")
        self.finish()

    async def send_pieces(self, pieces: AsyncIterator[bytes]) -> None:
        """Send pieces as fast as they are taken; who takes nothing for minutes is cut off."""
        self.timed = False
        try:
            async for piece in pieces:
                self.write(piece)
                self.sent(len(piece))
                async with asyncio.timeout(SILENCE):
                    await self.flush()
            self.finish()
        except StreamClosedError:
            return
        except TimeoutError:
            self.cut()

    @abstractmethod
    def sent(self, size: int) -> None:
        """Count bytes that were sent."""

    def cut(self) -> None:
        """Close the connection."""
        if isinstance(self.request.connection, HTTP1Connection):
            self.request.connection.close()

    def _cut_body(self) -> None:
        if self.goes_on:
            self.cut()


def _wrong_kind(path: StoragePath, *, is_folder: bool) -> StorageError:
    if is_folder:
        return StorageError(Problem.IS_A_FOLDER, msg("{path} is a folder, not a file.", path=str(path)))
    return StorageError(Problem.NOT_A_FOLDER, msg("{path} is a file, not a folder.", path=str(path)))
