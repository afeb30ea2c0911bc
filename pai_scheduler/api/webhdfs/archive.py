"""A folder as a zip file, written while it is read: nothing of it is held but the list of its files."""

from __future__ import annotations

import io
import stat
import zipfile
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from datetime import UTC, datetime

from pai_scheduler.i18n import msg
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus

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
