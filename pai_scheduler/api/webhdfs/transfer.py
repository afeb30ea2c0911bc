"""Contents of files on their way: a body into the storage, a file or a zip of a folder to a reader."""

from __future__ import annotations

import asyncio
import io
import re
import stat
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote

from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus

# A file on its way from a request's body into the storage: bounded: a faster sender waits.

#: Bytes that are handed to the storage at once: each handing over is a thread's turn.
PIECE = 1024 * 1024
#: Seconds without a byte after which the sender counts as gone.
SILENCE = 180.0


class BrokenOffError(Exception):
    """The sender of the file left in the middle, or said nothing for too long."""


class BodyUpload:
    """Joins a sender, who calls `receive` and `finish`, with the storage, which takes `pieces`.

    Three pieces are held at most: one that fills, one that waits, one that the storage has.
    """

    def __init__(self, store: Callable[[AsyncIterator[bytes]], Awaitable[None]]) -> None:
        self._filling: list[bytes] = []
        self._size = 0
        self._waiting: bytes | None = None
        self._complete = self._broken = False
        self._heard = asyncio.get_running_loop().time()
        #: set when there may be something for the storage: a piece, the end, the break
        self._news = asyncio.Event()
        #: set while another piece may wait
        self._room = asyncio.Event()
        self._room.set()
        self._wanted = asyncio.Event()
        self.task = asyncio.create_task(self._store(store))

    async def accepted(self) -> None:
        """Wait until the storage wants the first byte; raises what it refuses the file with."""
        await self._wanted.wait()
        if self.task.done():
            self.task.result()

    async def receive(self, chunk: bytes) -> None:
        """Take the next bytes; they lead nowhere once the storage has refused the file."""
        self._heard = asyncio.get_running_loop().time()
        self._filling.append(chunk)
        self._size += len(chunk)
        if self._size >= PIECE:
            await self._hand_over()

    async def finish(self) -> None:
        """End the file; raises what the storage refuses it with."""
        if self._filling:
            await self._hand_over()
        self._complete = True
        self._news.set()
        await self.task

    def break_off(self) -> None:
        """Break the file off: nothing more will come."""
        self._broken = True
        self._news.set()

    async def _store(self, store: Callable[[AsyncIterator[bytes]], Awaitable[None]]) -> None:
        try:
            await store(self._pieces())
        finally:
            self._wanted.set()
            self._room.set()

    async def _hand_over(self) -> None:
        await self._room.wait()
        self._waiting = b"".join(self._filling)
        self._filling.clear()
        self._size = 0
        if not self.task.done():
            self._room.clear()
        self._news.set()

    async def _pieces(self) -> AsyncIterator[bytes]:
        self._wanted.set()
        while True:
            await self._hear()
            if (piece := self._waiting) is not None:
                self._waiting = None
                self._room.set()
                yield piece
            elif self._complete:
                return
            else:
                # what had come counts, for a file that is written on
                if rest := b"".join(self._filling):
                    self._filling.clear()
                    yield rest
                raise BrokenOffError

    async def _hear(self) -> None:
        """Wait for a piece, the end, or the break; a long silence is one."""
        loop = asyncio.get_running_loop()
        while self._waiting is None and not self._complete and not self._broken:
            self._news.clear()
            try:
                async with asyncio.timeout_at(self._heard + SILENCE):
                    await self._news.wait()
            except TimeoutError:
                self._broken = loop.time() >= self._heard + SILENCE


# What a file's reader is told before the first byte: which part comes, under which name it is kept.

_RANGE = re.compile(r"bytes=(\d*)-(\d*)", re.ASCII)
#: More digits than any file is long.
_LONGEST = 18


class UnsatisfiableError(Exception):
    """A part was asked for that the file does not have."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """A part of a file, as `Range` names it; bytes."""

    offset: int
    length: int

    def content_range(self, size: int) -> str:
        """Return which part of how much it is."""
        return f"bytes {self.offset}-{self.offset + self.length - 1}/{size}"


def wanted_part(header: str, size: int) -> ByteRange | None:
    """Read a `Range`; None: the whole file, also where several parts are asked for (RFC 9110, 14.2)."""
    found = _RANGE.fullmatch(header.strip().replace(" ", ""))
    if found is None or found[1] == found[2] == "" or max(len(found[1]), len(found[2])) > _LONGEST:
        return None
    if not found[1]:
        offset, end = max(0, size - int(found[2])), size
        if not int(found[2]):
            raise UnsatisfiableError
    else:
        offset, end = int(found[1]), min(size, int(found[2]) + 1) if found[2] else size
        if found[2] and int(found[2]) < offset:
            return None
    if offset >= size:
        raise UnsatisfiableError
    return ByteRange(offset, end - offset)


def entity_tag(status: FileStatus) -> str:
    """Name a file's contents: the same as long as nobody writes to it."""
    return f'"{status.file_id:x}-{status.modified:x}-{status.length:x}"'


def attachment(name: str) -> str:
    """Return the Content-Disposition of what is kept as a file and never shown (RFC 6266)."""
    plain = "".join(c if " " <= c <= "~" and c not in '"\\%;' else "_" for c in name)
    value = f'attachment; filename="{plain}"'
    if plain != name:
        value += f"; filename*=UTF-8''{quote(name.encode('utf-8', 'surrogateescape'), safe='')}"
    return value


# A folder as a zip file, written while it is read: nothing of it is held but the list of its files.

#: Entries of the largest archive: the list of them stands at its end, so it is in memory until then.
MOST = 100_000
#: Entries that are listed at a time.
_PAGE = 1000
#: The years that a zip file can say.
_FIRST, _LAST = (1980, 1, 1, 0, 0, 0), (2107, 12, 31, 23, 59, 58)


class _Sink(io.RawIOBase):
    """Takes what zipfile writes, until it is sent; it cannot go back."""

    def __init__(self) -> None:
        self._written = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self._written += data
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        taken = bytes(self._written)
        self._written.clear()
        return taken


async def zipped(files: Files, principal: Principal, folder: StoragePath) -> AsyncGenerator[bytes, None]:
    """Return a zip file of all in a folder that the caller may read, not compressed, in pieces.

    What is deleted while this goes on is left out. StorageError, at first TOO_LARGE.
    """
    summary = await files.summary(principal, folder)
    if summary.files + summary.folders > MOST:
        raise StorageError(
            Problem.TOO_LARGE,
            msg(
                "{path} holds more than {most:,} files, too many for one archive. Take its folders singly.",
                path=str(folder),
                most=MOST,
            ),
        )
    sink, names = _Sink(), _Names(folder)
    with zipfile.ZipFile(sink, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        async for status in _walk(files, principal, folder):
            entry = _entry(status, names.of(status))
            if status.is_folder:
                archive.writestr(entry, b"")
                yield sink.take()
                continue
            begun = False
            try:
                async with files.open(principal, status.path) as file:
                    begun = True
                    with archive.open(entry, "w", force_zip64=True) as member:
                        async for piece in file.pieces:
                            member.write(piece)
                            yield sink.take()
            except StorageError as error:
                if begun or error.problem is not Problem.NOT_FOUND:
                    raise
    yield sink.take()


async def _walk(files: Files, principal: Principal, folder: StoragePath) -> AsyncIterator[FileStatus]:
    """Return everything in a tree, folders before what is in them."""
    waiting = [folder]
    while waiting:
        here, inner, after = waiting.pop(), [], ""
        while True:
            try:
                page = await files.list(principal, here, after, _PAGE)
            except StorageError as error:
                if error.problem is not Problem.NOT_FOUND or here == folder:
                    raise
                break
            for status in page.entries:
                yield status
                if status.is_folder:
                    inner.append(status.path)
            if not page.remaining or not page.entries:
                break
            after = page.entries[-1].path.name
        waiting.extend(reversed(inner))


class _Names:
    """Names the entries: below the folder's own name, with nothing that another system takes for a path."""

    def __init__(self, folder: StoragePath) -> None:
        self._above = len(folder.parent.parts)
        self._used: set[str] = set()

    def of(self, status: FileStatus) -> str:
        """Return a name that no other entry has."""
        plain = "/".join(_plain(part) for part in status.path.parts[self._above :])
        name = next(spelling for spelling in _spellings(plain) if spelling not in self._used)
        self._used.add(name)
        return name


def _plain(part: str) -> str:
    """Return a name without backslashes, which are slashes elsewhere, and without what is no text."""
    text = part.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    return "".join("_" if c == "\\" or not c.isprintable() else c for c in text)


def _spellings(name: str) -> Iterator[str]:
    yield name
    for number in range(2, MOST + 2):
        yield f"{name}~{number}"


def _entry(status: FileStatus, name: str) -> zipfile.ZipInfo:
    moment = datetime.fromtimestamp(max(0, status.modified) / 1000, UTC)
    entry = zipfile.ZipInfo(
        f"{name}/" if status.is_folder else name,
        min(max(moment.timetuple()[:6], _FIRST), _LAST),
    )
    entry.create_system = 3  # Unix: so that the rights below count
    kind = stat.S_IFDIR if status.is_folder else stat.S_IFREG
    entry.external_attr = (kind | status.permission) << 16
    return entry
