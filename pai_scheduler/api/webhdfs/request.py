"""A WebHDFS request: its query, its answers as JSON, its refusals, and a body while it comes."""

from __future__ import annotations

import asyncio
import json
import re
from abc import abstractmethod
from asyncio import Future
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote_to_bytes

from tornado.http1connection import HTTP1Connection
from tornado.httputil import HTTPServerRequest
from tornado.iostream import StreamClosedError

from pai_scheduler.api.answering import AnsweringHandler
from pai_scheduler.api.http_server import scheme
from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.rest.webhdfs import (
    BooleanAnswer,
    ListingAnswer,
    PathAnswer,
    RefusalAnswer,
    StatusAnswer,
    SummaryAnswer,
)
from pai_scheduler.rest.webhdfs import FileStatus as Status
from pai_scheduler.storage.files import Files, Right, check
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import Checksum, FileStatus, Listing, Summary

from .redirect_tickets import RequestScope
from .transfer import SILENCE

# The query of a WebHDFS request, read as Hadoop reads it: names in any case, the first of doubled ones.

#: Parameters outside the scope of a ticket: they say who asks and how the answer is wanted, not what is to be
#: done. `user.name` and `doas` count for nothing here: clients send them always, and who asks is known
#: otherwise.
_OUTSIDE_THE_SCOPE = frozenset({"data", "ticket", "noredirect", "user.name", "doas", "delegation"})
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Parameters:
    """The values by name; an empty one is as good as none. What cannot be read is refused (RequestError)."""

    values: Mapping[str, str]

    @classmethod
    def read(cls, arguments: Mapping[str, Sequence[bytes]]) -> Parameters:
        """Take the query as tornado has split it."""
        values: dict[str, str] = {}
        for name, given in arguments.items():
            if given and given[0]:
                values.setdefault(name.lower(), given[0].decode("utf-8", "surrogateescape"))
        return cls(values)

    @property
    def of_the_request(self) -> frozenset[tuple[str, str]]:
        """Return those that say what is to be done, whether known or not."""
        return frozenset(item for item in self.values.items() if item[0] not in _OUTSIDE_THE_SCOPE)

    @property
    def operation(self) -> str:
        """Return `op`, in capitals; empty where there is none."""
        return self.text("op").upper()

    def text(self, name: str) -> str:
        """Return a value as it is; empty where there is none."""
        return self.values.get(name, "")

    def flag(self, name: str) -> bool:
        """Return a yes or no (`true`, `false`); no where there is none."""
        text = self.text(name).lower() or "false"
        if text not in ("true", "false"):
            raise wrong_parameter(name, msg("{text} is neither true nor false.", text=text))
        return text == "true"

    def number(self, name: str) -> int | None:
        """Return a whole number from 0 on; None where there is none."""
        number = self.signed(name)
        if number is not None and number < 0:
            raise wrong_parameter(name, msg("{value} is too small: at least {least}.", value=number, least=0))
        return number

    def signed(self, name: str) -> int | None:
        """Return a whole number; None where there is none."""
        text = self.text(name)
        if not text:
            return None
        digits = text.removeprefix("-")
        # int() reads more than Java does, and takes long over a long one
        if not (digits.isascii() and digits.isdigit() and len(digits) < 20 and int(digits) <= _LARGEST):
            raise wrong_parameter(name, msg("{text} is not a whole number.", text=text[:40]))
        return int(text)

    def permission(self, name: str = "permission") -> int | None:
        """Return the nine bits of an octal number; None where there is none."""
        text = self.text(name)
        if not text:
            return None
        # a leading digit may be the sticky bit, which nobody has here
        if len(text) > 4 or not set(text) <= set("01234567"):
            raise wrong_parameter(name, msg("{text} is no octal number such as 644.", text=text[:40]))
        return int(text, 8) & 0o777

    def path(self, name: str) -> StoragePath:
        """Return an absolute path; StorageError where it is none."""
        return _absolute(name, self.text(name))

    def paths(self, name: str) -> list[StoragePath]:
        """Return absolute paths with commas between them; StorageError where one is none."""
        return [_absolute(name, text) for text in self.text(name).split(",")]


def _absolute(name: str, text: str) -> StoragePath:
    if not text.startswith("/"):
        raise wrong_parameter(name, msg("{text} is no absolute path: it must begin with /.", text=text))
    return StoragePath.parse(text)


def decoded_path(raw: str) -> StoragePath:
    """Read the path of a URL, which is decoded once; StorageError where it is no plain path."""
    return StoragePath.parse(unquote_to_bytes(raw.encode("latin-1")).decode("utf-8", "surrogateescape"))


def wrong_parameter(name: str, reason: Message) -> RequestError:
    """Return what is wrong with a parameter."""
    message = msg("The query parameter {name} is wrong: {reason}", name=name, reason=reason)
    return RequestError(400, "IllegalArgumentException", message)


# What WebHDFS answers, as JSON: the schemas of Hadoop's "WebHDFS REST API".

#: Entries of a long listing that are put into JSON at once, while everybody else waits.
_PIECE = 1000


def status_answer(status: FileStatus) -> StatusAnswer:
    """Describe one file or folder."""
    return {"FileStatus": _status(status, "")}


def listing_pieces(listing: Listing, folder: StoragePath) -> Iterator[bytes]:
    """List a folder, in pieces that take a moment each; a file lists as itself, without a name."""
    yield b'{"FileStatuses":{"FileStatus":['
    for begin in range(0, len(listing.entries), _PIECE):
        part = Listing(listing.entries[begin : begin + _PIECE])
        text = json.dumps(_entries(part, folder), ensure_ascii=False, separators=(",", ":"))
        yield (b"," if begin else b"") + text[1:-1].encode("utf-8", "surrogatepass")
    yield b"]}}"


def batch_answer(listing: Listing, folder: StoragePath) -> ListingAnswer:
    """List a part of a folder."""
    return {
        "DirectoryListing": {
            "partialListing": {"FileStatuses": {"FileStatus": _entries(listing, folder)}},
            "remainingEntries": listing.remaining,
        }
    }


def summary_answer(summary: Summary) -> SummaryAnswer:
    """Return what a tree holds."""
    return {
        "ContentSummary": {
            "directoryCount": summary.folders,
            "fileCount": summary.files,
            "length": summary.length,
            "quota": summary.quota,
            "spaceConsumed": summary.space_consumed,
            "spaceQuota": summary.space_quota,
        }
    }


def checksum_answer(checksum: Checksum) -> dict[str, Any]:
    """Return a file's checksum."""
    return {
        "FileChecksum": {
            "algorithm": checksum.algorithm,
            "bytes": checksum.bytes,
            "length": checksum.length,
        }
    }


def acl_answer(status: FileStatus) -> dict[str, Any]:
    """Return the rights where there are no others than the nine bits."""
    return {
        "AclStatus": {
            "entries": [],
            "group": status.group,
            "owner": status.owner,
            "permission": f"{status.permission:o}",
            "stickyBit": False,
        }
    }


def path_answer(path: StoragePath) -> PathAnswer:
    """Return the JSON that has a path in it."""
    return {"Path": str(path)}


def boolean_answer(value: bool) -> BooleanAnswer:
    """Return whether something was done."""
    return {"boolean": value}


def _entries(listing: Listing, folder: StoragePath) -> list[Status]:
    return [_status(entry, "" if entry.path == folder else entry.path.name) for entry in listing.entries]


def _status(status: FileStatus, name: str) -> Status:
    return {
        "accessTime": status.accessed,
        "blockSize": 0 if status.is_folder else status.block_size,
        "childrenNum": status.children,
        "fileId": status.file_id,
        "group": status.group,
        "length": status.length,
        "modificationTime": status.modified,
        "owner": status.owner,
        "pathSuffix": name,
        "permission": f"{status.permission:o}",
        "replication": 0 if status.is_folder else status.replication,
        "storagePolicy": 0,
        "type": "DIRECTORY" if status.is_folder else "FILE",
    }


# Refusals as WebHDFS has them: the status, the exception that programs know, and the sentence for people.

_BY_PROBLEM: Mapping[Problem, tuple[int, str]] = {
    Problem.NOT_FOUND: (404, "FileNotFoundException"),
    # as Hadoop says it of what is opened: "Path is not a file"
    Problem.IS_A_FOLDER: (404, "FileNotFoundException"),
    Problem.EXISTS: (403, "FileAlreadyExistsException"),
    Problem.DENIED: (403, "AccessControlException"),
    Problem.NOT_A_FOLDER: (403, "ParentNotDirectoryException"),
    Problem.NOT_EMPTY: (403, "PathIsNotEmptyDirectoryException"),
    Problem.INVALID: (400, "IllegalArgumentException"),
    Problem.UNSUPPORTED: (400, "UnsupportedOperationException"),
    Problem.TOO_LARGE: (403, "IOException"),
    Problem.NO_SPACE: (507, "IOException"),
    Problem.UNAVAILABLE: (503, "RetriableException"),
}

#: For refusals that are not the storage's own. A status that is not here: RuntimeException.
_BY_STATUS: Mapping[int, str] = {
    400: "IllegalArgumentException",
    401: "SecurityException",
    403: "AccessControlException",
    404: "FileNotFoundException",
    405: "UnsupportedOperationException",
    429: "RetriableException",
    503: "RetriableException",
}

_CLASSES: Mapping[str, str] = {
    "AccessControlException": "org.apache.hadoop.security.AccessControlException",
    "FileAlreadyExistsException": "org.apache.hadoop.fs.FileAlreadyExistsException",
    "FileNotFoundException": "java.io.FileNotFoundException",
    "IOException": "java.io.IOException",
    "IllegalArgumentException": "java.lang.IllegalArgumentException",
    "InvalidToken": "org.apache.hadoop.security.token.SecretManager$InvalidToken",
    "ParentNotDirectoryException": "org.apache.hadoop.fs.ParentNotDirectoryException",
    "PathIsNotEmptyDirectoryException": "org.apache.hadoop.fs.PathIsNotEmptyDirectoryException",
    "RetriableException": "org.apache.hadoop.ipc.RetriableException",
    "RuntimeException": "java.lang.RuntimeException",
    "SecurityException": "java.lang.SecurityException",
    "StandbyException": "org.apache.hadoop.ipc.StandbyException",
    "UnsupportedOperationException": "java.lang.UnsupportedOperationException",
}

# The `hdfs` library looks for these words to tell whether something is there, and shows the whole to people.
_MISSING = "does not exist"


class StorageRefusal(RequestError):
    """Storage error as a response; `missing`: there is nothing at the path."""

    def __init__(self, status: int, exception: str, message: Message, *, missing: bool = False) -> None:
        super().__init__(status, exception, message)
        self.missing = missing


def refusal_of(error: StorageError) -> StorageRefusal:
    """Put what a storage said into an answer."""
    status, exception = _BY_PROBLEM[error.problem]
    return StorageRefusal(status, exception, error.message, missing=error.problem is Problem.NOT_FOUND)


def refusal_answer(refusal: RequestError, sentence: str) -> RefusalAnswer:
    """Return the body of a refusal whose message is `sentence` in the caller's language."""
    exception = refusal.code if refusal.code in _CLASSES else _BY_STATUS.get(refusal.status)
    if isinstance(refusal, StorageRefusal) and refusal.missing and _MISSING not in sentence:
        sentence = f"{sentence} (File {_MISSING}.)"
    return remote_exception(exception or "RuntimeException", sentence)


def remote_exception(exception: str, sentence: str) -> RefusalAnswer:
    """Return a body that names an exception of Hadoop's."""
    return {
        "RemoteException": {
            "exception": exception,
            "javaClassName": _CLASSES[exception],
            "message": sentence,
        }
    }


# A request for users' files: what it asks for, how it is refused or answered while a body comes.

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
    """Base handler for WebHDFS requests: refusals and redirects are sent before the body is read."""

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
