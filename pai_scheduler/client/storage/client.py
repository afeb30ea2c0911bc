"""The typed, asynchronous client of the scheduler's WebHDFS."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote, urlencode

import httpx

from pai_scheduler.client.http import Connections, trusted_by
from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.address import DEFAULT_URL
from pai_scheduler.rest.webhdfs import (
    BooleanAnswer,
    ContentSummary,
    DirectoryListing,
    FileStatus,
    ListingAnswer,
    PathAnswer,
    StatusAnswer,
    SummaryAnswer,
)

# Why the storage did not do something: what WebHDFS answers, and the sentence for people.


class FilesError(Exception):
    """The storage answered, and refused. `exception` is WebHDFS's name for it (`FileNotFoundException`)."""

    def __init__(self, status: int, exception: str, message: Message | str) -> None:
        super().__init__(str(message))
        self.status = status
        self.exception = exception
        self._message = message

    def in_locale(self, locale: str) -> str:
        """Return the sentence; what the scheduler wrote is in the language that the client asked for."""
        return self._message.in_locale(locale) if isinstance(self._message, Message) else self._message

    @property
    def may_pass(self) -> bool:
        """Return whether it may go better when it is tried again: the storage is there, but not ready."""
        return self.status in (429, 502, 503, 504)

    @property
    def concerns_all(self) -> bool:
        """Return whether the next file would fare no better: storage not ready or full, token unknown."""
        return self.may_pass or self.status in (401, 507)


def raise_for(response: httpx.Response) -> None:
    """Raise what an answer says: FilesError, or UnreachableError of a standby."""
    if not response.is_error:
        return
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, dict):
        body = {}
    refusal = body.get("RemoteException")
    if not isinstance(refusal, dict):
        # where the storage was not reached, the scheduler answers as everywhere else
        refusal = {"exception": body.get("code"), "message": body.get("message")}
    if "StandbyError" in body.values() or refusal["exception"] == "StandbyException":
        raise UnreachableError(str(refusal["message"]))
    raise FilesError(
        response.status_code,
        str(refusal.get("exception") or "UnknownError"),
        str(refusal.get("message") or f"{response.status_code} {response.reason_phrase}"),
    )


# What the storage's client gives of what WebHDFS answers: files and folders, a page of a listing, a tree.


@dataclass(frozen=True, slots=True)
class FileInfo:
    """A file or folder. `length` in bytes (0 for a folder), `modified` in ms since the epoch."""

    path: str
    is_folder: bool
    length: int
    modified: int
    #: nine bits, as of chmod
    permission: int
    owner: str
    group: str

    @property
    def name(self) -> str:
        """Return the last part of the path; empty for the root."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FolderPage:
    """A part of what is in a folder, in the order of names; `remaining`: how many follow."""

    entries: Sequence[FileInfo]
    remaining: int


@dataclass(frozen=True, slots=True)
class TreeSummary:
    """Contents of a tree, its own folder counted; `length` in bytes."""

    files: int
    folders: int
    length: int


def file_info(path: str, status: FileStatus) -> FileInfo:
    """Read a FileStatus of what is at `path`."""
    return FileInfo(
        path=path,
        is_folder=status["type"] == "DIRECTORY",
        length=status["length"],
        modified=status["modificationTime"],
        permission=int(status["permission"], 8) & 0o777,
        owner=status["owner"],
        group=status["group"],
    )


def folder_page(path: str, listing: DirectoryListing) -> FolderPage:
    """Read a DirectoryListing of the folder at `path`; a file lists as itself."""
    entries = [
        file_info(f"{path.rstrip('/')}/{status['pathSuffix']}" if status["pathSuffix"] else path, status)
        for status in listing["partialListing"]["FileStatuses"]["FileStatus"]
    ]
    return FolderPage(entries, listing["remainingEntries"])


def tree_summary(summary: ContentSummary) -> TreeSummary:
    """Read a ContentSummary."""
    return TreeSummary(summary["fileCount"], summary["directoryCount"], summary["length"])


# One typed, asynchronous client of the scheduler's WebHDFS: the command line, widgets and Lab use it.
#
# What it asks is Hadoop's "WebHDFS REST API", and what the scheduler has beside it (COPY, ARCHIVE, `limit`,
# and APPEND at an `offset`). Every request has `data=true`: the scheduler then answers with the data
# itself, without a redirect.

_ROOT = "/webhdfs/v1"
#: Entries that are asked for at a time.
PAGE = 1000
#: Seconds without a byte after which a connection counts as broken.
_SILENCE = 60.0
#: The same where the storage may have much to do before it answers: copy, count, delete, put in place.
_WORK = 900.0

Content = bytes | AsyncIterator[bytes]


class FilesClient(Connections):
    """Reads and changes the cluster's files in the name of the `token`'s user.

    Paths are those of the storage (`/alice/code`); times are ms since the epoch, lengths bytes. Defaults:
    the address is `PAI_API_URL`, then `PAI_DEFAULT_FS_URI` where that is http(s), then this machine's default
    port; the token `PAI_TOKEN`, `JUPYTERHUB_API_TOKEN`, then a job's own `PAI_STORAGE_TOKEN`. Every call
    raises `FilesError` when refused and `UnreachableError` when nobody answers or the connection breaks off.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        locale: str = "en",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.url = (url or _first("PAI_API_URL") or _storage_url() or DEFAULT_URL).rstrip("/")
        token = token or _first("PAI_TOKEN", "JUPYTERHUB_API_TOKEN", "PAI_STORAGE_TOKEN")
        self.locale = locale
        self._http = httpx.AsyncClient(
            headers={
                **({"Authorization": f"Bearer {token}"} if token else {}),
                # lengths and offsets are of the bytes themselves
                "Accept-Encoding": "identity",
                "Accept-Language": locale.replace("_", "-"),
            },
            timeout=httpx.Timeout(30.0, read=_SILENCE, write=_SILENCE, pool=None),
            transport=transport,
            verify=trusted_by(self.url),
            trust_env=False,
        )

    def resolve(self, uri: str) -> str:
        """Find the path that a URI of this storage names (`$PAI_DEFAULT_FS_URI/…` too); FilesError.

        A URI is decoded once; a path (`/alice/code`) stands for itself.
        """
        if uri.startswith("/"):
            return plain(uri)
        known = ("$PAI_DEFAULT_FS_URI", "${PAI_DEFAULT_FS_URI}", _first("PAI_DEFAULT_FS_URI"), self.url)
        for root in known:
            rest = uri.removeprefix(root.rstrip("/"))
            if root and rest != uri and (not rest or rest.startswith("/")):
                return plain(unquote(rest.removeprefix(_ROOT), errors="surrogateescape") or "/")
        raise FilesError(
            400,
            "IllegalArgumentException",
            msg("{uri} is not in the cluster's storage: begin it with $PAI_DEFAULT_FS_URI/ or /.", uri=uri),
        )

    async def home(self) -> str:
        """Return the path of the user's own tree."""
        answer: PathAnswer = await self._json("GET", "/", "GETHOMEDIRECTORY")
        return answer["Path"]

    async def status(self, path: str) -> FileInfo:
        """Describe a file or folder."""
        answer: StatusAnswer = await self._json("GET", path, "GETFILESTATUS")
        return file_info(path, answer["FileStatus"])

    async def find(self, path: str) -> FileInfo | None:
        """Describe a file or folder; None where there is none."""
        try:
            return await self.status(path)
        except FilesError as error:
            if error.status == 404:
                return None
            raise

    async def list_page(self, path: str, after: str = "", limit: int = PAGE) -> FolderPage:
        """List a folder in the order of names: `limit` entries at most that come after the name `after`."""
        answer: ListingAnswer = await self._json(
            "GET", path, "LISTSTATUS_BATCH", startAfter=after, limit=limit
        )
        return folder_page(path, answer["DirectoryListing"])

    async def iterate(self, path: str) -> AsyncGenerator[FileInfo, None]:
        """Return what is in a folder, page by page."""
        after = ""
        while True:
            page = await self.list_page(path, after, PAGE)
            for entry in page.entries:
                yield entry
            if not page.remaining or not page.entries:
                return
            after = page.entries[-1].name

    async def walk(self, path: str) -> AsyncGenerator[FileInfo, None]:
        """Return everything in a tree, each folder before what is in it; the tree's own root is left out."""
        folders = [path]
        while folders:
            inner = []
            async for entry in self.iterate(folders.pop()):
                yield entry
                if entry.is_folder:
                    inner.append(entry.path)
            folders.extend(reversed(inner))

    async def mkdirs(self, path: str) -> None:
        """Make a folder, and those above it; one that is there is no error."""
        await self._json("PUT", path, "MKDIRS")

    async def rename(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Move a file or folder in one step; a `target` that is a folder: into it, unless `overwrite`."""
        how = "OVERWRITE" if overwrite else ""
        answer = await self._json("PUT", source, "RENAME", destination=plain(target), renameoptions=how)
        if answer is not None and not answer.get("boolean", True):
            raise FilesError(
                409,
                "IOException",
                msg(
                    "{source} cannot become {target}: either it is not there, or something of that name is.",
                    source=source,
                    target=target,
                ),
            )

    async def delete(self, path: str, *, recursive: bool = False) -> bool:
        """Remove; False where there was nothing. A folder that is not empty needs `recursive`."""
        answer: BooleanAnswer = await self._json(
            "DELETE", path, "DELETE", wait=_WORK, recursive=_flag(recursive)
        )
        return answer["boolean"]

    async def copy(self, source: str, target: str, *, overwrite: bool = False) -> None:
        """Copy a file within the storage; the copy has the same time of change."""
        flag = _flag(overwrite)
        await self._json("PUT", source, "COPY", wait=_WORK, destination=plain(target), overwrite=flag)

    async def summary(self, path: str) -> TreeSummary:
        """Count what is in a tree."""
        answer: SummaryAnswer = await self._json("GET", path, "GETCONTENTSUMMARY", wait=_WORK)
        return tree_summary(answer["ContentSummary"])

    async def set_times(self, path: str, modified: int) -> None:
        """Return when a file was last changed."""
        await self._json("PUT", path, "SETTIMES", modificationtime=modified, accesstime=-1)

    async def set_permission(self, path: str, permission: int) -> None:
        """Change the nine bits, as chmod does."""
        await self._json("PUT", path, "SETPERMISSION", permission=f"{permission:o}")

    async def write(
        self,
        path: str,
        content: Content,
        *,
        overwrite: bool = False,
        length: int | None = None,
        permission: int | None = None,
    ) -> None:
        """Make a file, which has its name only when it is whole; `length` where a stream's is known."""
        bits = "" if permission is None else f"{permission:o}"
        await self._put("PUT", path, "CREATE", content, length, overwrite=_flag(overwrite), permission=bits)

    async def append(
        self, path: str, content: Content, *, length: int | None = None, offset: int | None = None
    ) -> None:
        """Write on at a file's end; what had come when the connection broke stays.

        With `offset` it is refused (503) where that is not the file's end.
        """
        await self._put("POST", path, "APPEND", content, length, offset="" if offset is None else offset)

    def read(
        self, path: str, offset: int = 0, length: int | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read a file from `offset` on, `length` bytes at most, piece by piece."""
        return self._stream(path, "OPEN", offset=offset, length="" if length is None else length)

    def archive(self, path: str) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Read a folder as a zip file, piece by piece."""
        return self._stream(path, "ARCHIVE")

    async def _put(
        self,
        method: str,
        path: str,
        operation: str,
        content: Content,
        length: int | None,
        **values: str | int,
    ) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        if length is not None:
            headers["Content-Length"] = str(length)
        url = self._address(path, operation, values)
        timeout = httpx.Timeout(30.0, read=_WORK, write=_SILENCE, pool=None)
        await self._send(
            self._http.build_request(method, url, content=content, headers=headers, timeout=timeout)
        )

    async def _json(
        self, method: str, path: str, operation: str, *, wait: float = _SILENCE, **values: str | int
    ) -> Any:
        url = self._address(path, operation, values)
        timeout = httpx.Timeout(30.0, read=wait, pool=None)
        response = await self._send(self._http.build_request(method, url, timeout=timeout))
        return response.json() if response.content else None

    async def _send(self, request: httpx.Request) -> httpx.Response:
        with _broken_is_unreachable(self.url):
            response = await self._http.send(request)
        raise_for(response)
        return response

    @asynccontextmanager
    async def _stream(
        self, path: str, operation: str, **values: str | int
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        request = self._http.build_request("GET", self._address(path, operation, values))
        with _broken_is_unreachable(self.url):
            response = await self._http.send(request, stream=True)
            try:
                if response.is_error:
                    await response.aread()
                    raise_for(response)
                yield response.aiter_bytes()
            finally:
                await response.aclose()

    def _address(self, path: str, operation: str, values: Mapping[str, str | int]) -> str:
        given = {name: value for name, value in values.items() if value != ""}
        query = urlencode({"op": operation, "data": "true", **given}, errors="surrogateescape")
        return f"{self.url}{_ROOT}{_encoded(plain(path))}?{query}"


@contextmanager
def _broken_is_unreachable(url: str) -> Iterator[None]:
    try:
        yield
    except httpx.TransportError as error:
        raise UnreachableError(f"the storage at {url} does not answer: {error!r}") from error


def plain(path: str) -> str:
    """Return a path without doubled and final slashes; FilesError if it is relative or has `.`, `..`."""
    parts = [part for part in path.split("/") if part]
    if not path.startswith("/") or "\0" in path or not {".", ".."}.isdisjoint(parts):
        raise FilesError(
            400,
            "IllegalArgumentException",
            msg("{path} is no path of the storage: write it as /user/folder/file.", path=repr(path)),
        )
    return "/" + "/".join(parts)


def _encoded(path: str) -> str:
    return quote(path, safe="/", errors="surrogateescape")


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _first(*names: str) -> str:
    return next(filter(None, (os.environ.get(name) for name in names)), "")


def _storage_url() -> str:
    uri = _first("PAI_DEFAULT_FS_URI")
    return uri if uri.startswith(("http://", "https://")) else ""
