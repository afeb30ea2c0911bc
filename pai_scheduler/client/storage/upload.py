"""Upload of files and folders: several at once, only what changed, on from where a connection broke."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import stat
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.i18n import msg

from .client import FileInfo, FilesClient, FilesError
from .transfer import (
    PIECE,
    FileOutcome,
    LeftOut,
    LocalFileError,
    Tell,
    TransferResult,
    TransferTally,
    Trials,
    is_part_of,
    part_name,
    part_prefix,
    side_by_side,
)

# What there is to upload in a folder of this machine.


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A file; `name`: its path below the folder, with `/`; `length` in bytes, `modified` in ms.

    `mode`: nine bits, as of chmod.
    """

    path: Path
    name: str
    length: int
    modified: int
    mode: int = 0o644


@dataclass(frozen=True, slots=True)
class LocalTree:
    """Contents of a folder: files, folders (paths below it), and entries that cannot be uploaded."""

    files: Sequence[LocalFile]
    folders: Sequence[str]
    left_out: Sequence[LeftOut]


def look_at(path: Path) -> LocalFile:
    """Describe one file; LocalFileError where there is none, or none that can be read."""
    try:
        return _file(path, path.name, path.stat())
    except OSError as error:
        raise unreadable(path, error) from None


def open_unchanged(file: LocalFile) -> BinaryIO:
    """Open a file that must be as it was when it was looked at; LocalFileError."""
    try:
        # what has become a pipe since must not hold us up
        stream = os.fdopen(os.open(file.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb")
    except OSError as error:
        raise unreadable(file.path, error) from None
    if not is_unchanged(stream, file):
        stream.close()
        raise changed(str(file.path))
    return stream


def is_unchanged(stream: BinaryIO, file: LocalFile) -> bool:
    """Return whether an open file is still as it was when it was looked at."""
    status = os.fstat(stream.fileno())
    return (status.st_size, status.st_mtime_ns // 1_000_000) == (file.length, file.modified)


def check_unchanged(file: LocalFile) -> None:
    """Raise LocalFileError where a file is not as it was when it was looked at."""
    open_unchanged(file).close()


def changed(path: str) -> LocalFileError:
    """Return the error that says that a file did not stay as it was."""
    return LocalFileError(msg("{path} has changed while it was being copied: copy it again.", path=path))


def unreadable(path: Path, error: OSError) -> LocalFileError:
    """Return the error that says that a file here cannot be read."""
    return LocalFileError(
        msg("{file} cannot be read: {reason}.", file=str(path), reason=error.strerror or str(error))
    )


def look_through(root: Path, enters: Callable[[str], bool] = lambda _name: True) -> LocalTree:
    """Find everything in a folder, in the order of names; of its folders those that `enters` says.

    A link to a file counts as a file. A link to a folder is left out: it may lead out of the tree, or round
    in a circle. So is what is neither file nor folder.
    """
    files: list[LocalFile] = []
    folders: list[str] = []
    left_out: list[LeftOut] = []

    def enter(folder: Path, prefix: str) -> None:
        try:
            with os.scandir(folder) as listed:
                entries = sorted(listed, key=lambda entry: entry.name)
        except OSError as error:
            left_out.append(LeftOut(str(folder), unreadable(folder, error).message, failed=True))
            return
        for entry in entries:
            name = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if enters(name):
                    folders.append(name)
                    enter(folder / entry.name, f"{name}/")
                continue
            try:
                files.append(_file(folder / entry.name, name, entry.stat()))
            except LocalFileError as error:
                left_out.append(LeftOut(entry.path, error.message, failed=False))
            except OSError as error:
                reason = unreadable(folder / entry.name, error).message
                # a link that leads nowhere is no loss
                left_out.append(LeftOut(entry.path, reason, failed=not entry.is_symlink()))

    enter(root, "")
    return LocalTree(files, folders, left_out)


def _file(path: Path, name: str, status: os.stat_result) -> LocalFile:
    if stat.S_ISDIR(status.st_mode):
        raise LocalFileError(
            msg("{file} is a link to a folder, which is not followed: it is left out.", file=str(path))
        )
    if not stat.S_ISREG(status.st_mode):
        raise LocalFileError(msg("{file} is no ordinary file: it is left out.", file=str(path)))
    mode = stat.S_IMODE(status.st_mode) & 0o777
    return LocalFile(path, name, status.st_size, status.st_mtime_ns // 1_000_000, mode)


# Remembers in `.pai/last-upload.json` what was uploaded from a folder: next time only changes are sent.

_FILE = Path(".pai", "last-upload.json")
#: Folders of the storage that are remembered; a job with a name of its own has a new one each time.
_REMEMBERED = 20

#: A file's length (bytes) and time of change (ms).
State = tuple[int, int]


@dataclass(frozen=True, slots=True)
class UploadRecord:
    """Record of the files uploaded to a folder of the storage: the states of files by their names."""

    folder: str
    files: Mapping[str, State]


class UploadRecords:
    """The uploads from a folder to the storage at an address, newest first."""

    def __init__(self, folder: Path, address: str) -> None:
        self._path = folder / _FILE
        self._address = address

    def read(self) -> Sequence[UploadRecord]:
        """Return them; none where there is no record, or none that can be understood."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
            kept = json.loads(self._path.read_bytes())
            if kept["storage"] == self._address:
                return [_record(item) for item in kept["uploads"]]
        return []

    def write(self, record: UploadRecord) -> None:
        """Remember an upload as the last one; where that cannot be written, nothing is remembered."""
        others = [old for old in self.read() if old.folder != record.folder][: _REMEMBERED - 1]
        uploads = [{"folder": item.folder, "files": item.files} for item in (record, *others)]
        fresh = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError):
            self._path.parent.mkdir(exist_ok=True)
            fresh.write_text(json.dumps({"storage": self._address, "uploads": uploads}, indent=1))
            fresh.replace(self._path)


def _record(item: Mapping[str, object]) -> UploadRecord:
    files = item["files"]
    if not isinstance(files, dict):
        raise TypeError("files")
    return UploadRecord(
        str(item["folder"]), {name: (int(state[0]), int(state[1])) for name, state in files.items()}
    )


# Uploads files and folders: several at once, only what changed, and on from where a connection broke.
#
# A file that is not small grows under a name of its own, `.<name>.<fingerprint>.part` beside its place, and
# is put there when it is whole; the browser does the same, so that one may go on with what the other began.
#
# What is confirmed of it is right: each request says where it belongs. What a broken request left at its
# end may have landed late, after another: it is compared with the file before it is gone on with.

#: Bytes of the longest file that is sent whole, in one request.
SMALL = 4 * 2**20
#: Bytes of one request of a longer one: proxies before the scheduler may limit how long one is.
APPENDED = 64 * 2**20
#: So many files in one folder are asked for one by one; if there are more, the folder is listed.
_FEW = 3
#: Parts of a file that are looked for; an interrupted upload of another state of it leaves one.
_PARTS_LISTED = 20
#: After so many ms (by the storage's clock) what another upload left is not gone on with.
_STALE = 24 * 3600 * 1000


async def upload(client: FilesClient, local: Path, remote: str, tell: Tell | None = None) -> TransferResult:
    """Make `remote` the same as a file or folder of this machine; what else is there already stays.

    FilesError where the folder cannot be made or the storage is full, LocalFileError where `local` cannot be
    read; of single files in a folder the outcome tells.
    """
    if not await asyncio.to_thread(local.is_dir):
        folder, _, name = remote.rpartition("/")
        file = replace(await asyncio.to_thread(look_at, local), name=name)
        return await upload_files(client, [file], folder or "/", tell)
    tree = await asyncio.to_thread(look_through, local)
    await client.mkdirs(remote)
    left_out = list(tree.left_out)

    async def make(name: str) -> None:
        try:
            await client.mkdirs(f"{remote.rstrip('/')}/{name}")
        except FilesError as error:
            if error.concerns_all:
                raise
            left_out.append(LeftOut(str(local / name), error, failed=True))

    await side_by_side(_without_contents(tree.folders, tree.files), make)
    outcome = await upload_files(client, tree.files, remote, tell)
    outcome.left_out[:0] = left_out
    return outcome


async def upload_files(
    client: FilesClient,
    files: Sequence[LocalFile],
    folder: str,
    tell: Tell | None = None,
    *,
    twins: Mapping[str, str] | None = None,
) -> TransferResult:
    """Upload files to their names below a folder of the storage; those that are the same are not sent.

    `twins`: by name, the path in the storage of a file that is the same; it is copied there.
    """
    there = await present(client, folder, [file.name for file in files])
    tally = TransferTally(len(files), sum(file.length for file in files), tell)
    upload = _Upload(client, folder.rstrip("/"), there, twins or {}, tally)
    await side_by_side(
        files, lambda file: tally.count(file.name, str(file.path), file.length, upload.one(file))
    )
    return tally.result


async def present(client: FilesClient, folder: str, names: Sequence[str]) -> Mapping[str, FileInfo]:
    """Find which of these (paths below a folder of the storage) are there."""
    by_folder: dict[str, list[str]] = defaultdict(list)
    for name in names:
        by_folder[name.rpartition("/")[0]].append(name)
    found: dict[str, FileInfo] = {}
    root = folder.rstrip("/")

    async def look(inner: str) -> None:
        wanted = by_folder[inner]
        if len(wanted) <= _FEW:
            for name in wanted:
                with _not_found():
                    found[name] = await client.status(f"{root}/{name}")
            return
        with _not_found():
            async with aclosing(client.iterate(f"{root}/{inner}")) as entries:
                async for info in entries:
                    found[f"{inner}/{info.name}" if inner else info.name] = info

    await side_by_side(by_folder, look)
    return found


@contextmanager
def _not_found() -> Iterator[None]:
    """Take what is refused for what is not there: sending it will tell why, for this file alone."""
    try:
        yield
    except FilesError as error:
        if error.concerns_all:
            raise


def is_same(there: FileInfo | None, file: LocalFile) -> bool:
    """Return whether a file in the storage need not be sent again: the same length and time of change."""
    return (
        there is not None
        and not there.is_folder
        and (there.length, there.modified) == (file.length, file.modified)
    )


@dataclass(slots=True)
class _Confirmed:
    """Of how many bytes of a part it is known that they are the file's; None: not looked at yet."""

    length: int | None = None


class _Upload:
    def __init__(
        self,
        client: FilesClient,
        folder: str,
        there: Mapping[str, FileInfo],
        twins: Mapping[str, str],
        tally: TransferTally,
    ) -> None:
        self._client, self._folder, self._there, self._twins = client, folder, there, twins
        self._tally = tally

    async def one(self, file: LocalFile) -> FileOutcome:
        """Upload a file."""
        if is_same(self._there.get(file.name), file):
            return "same"
        if file.name in self._twins and await self._copied(self._twins[file.name], file):
            return "copied"
        await (self._whole if file.length <= SMALL else self._in_parts)(file)
        return "moved"

    async def _copied(self, twin: str, file: LocalFile) -> bool:
        try:
            await self._client.copy(twin, f"{self._folder}/{file.name}", overwrite=True)
        except (UnreachableError, FilesError):
            # it is gone meanwhile, or something else is wrong that sending it will tell
            return False
        return True

    async def _whole(self, file: LocalFile) -> None:
        target, trials = f"{self._folder}/{file.name}", Trials()
        while True:
            try:
                async with aclosing(self._pieces(file, 0, file.length)) as pieces:
                    await self._client.write(
                        target, pieces, overwrite=True, length=file.length, permission=_permission(file)
                    )
                await self._client.set_times(target, file.modified)
                return
            except (UnreachableError, FilesError) as error:
                await trials.after(error)

    async def _in_parts(self, file: LocalFile) -> None:
        target, trials = f"{self._folder}/{file.name}", Trials()
        furthest, confirmed = -1, _Confirmed()
        while True:
            try:
                part, stale = await self._find_part(target, file)
                if (
                    part is None
                    and furthest == file.length
                    and is_same(await self._client.find(target), file)
                ):
                    # it was put in place, only the answer to that got lost
                    return
                if part is None or not await self._is_beginning(part, file, confirmed.length):
                    part = await self._begin_part(target, file)
                confirmed.length = part.length
                if part.length > furthest:
                    trials.got_on()
                    furthest = part.length
                await self._append(part, file, confirmed)
                furthest = file.length
                await self._put_in_place(part.path, target, file)
                for left in stale:
                    await self._client.delete(left.path)
                return
            except (UnreachableError, FilesError) as error:
                await trials.after(error)

    async def _find_part(self, target: str, file: LocalFile) -> tuple[FileInfo | None, list[FileInfo]]:
        """Find what is there of a file already, and what is left of older uploads."""
        folder, _, name = target.rpartition("/")
        own = part_name(name, file.length, file.modified)
        try:
            page = await self._client.list_page(folder or "/", part_prefix(name), _PARTS_LISTED)
        except FilesError as error:
            if error.status != 404:
                raise
            return None, []
        parts = [entry for entry in page.entries if is_part_of(entry.name, name)]
        part = next((entry for entry in parts if entry.name == own), None)
        newest = max((entry.modified for entry in parts), default=0)
        return part, [entry for entry in parts if entry.name != own and entry.modified < newest - _STALE]

    async def _begin_part(self, target: str, file: LocalFile) -> FileInfo:
        folder, _, name = target.rpartition("/")
        path = f"{folder}/{part_name(name, file.length, file.modified)}"
        await self._client.write(path, b"", overwrite=True, permission=_permission(file))
        return await self._client.status(path)

    async def _is_beginning(self, part: FileInfo, file: LocalFile, confirmed: int | None) -> bool:
        """Compare a part with the file: what is not confirmed of it, one request's length at most."""
        if part.length > file.length:
            return False
        if confirmed is None or confirmed > part.length:
            confirmed = max(0, part.length - APPENDED)
        if confirmed == part.length:
            return True
        offset = confirmed
        with await asyncio.to_thread(open_unchanged, file) as stream:
            stream.seek(offset)
            async with self._client.read(part.path, offset, part.length - offset) as pieces:
                async for piece in pieces:
                    if piece != await asyncio.to_thread(stream.read, len(piece)):
                        return False
                    offset += len(piece)
        return offset == part.length

    async def _append(self, part: FileInfo, file: LocalFile, confirmed: _Confirmed) -> None:
        offset = part.length
        while offset < file.length:
            count = min(APPENDED, file.length - offset)
            async with aclosing(self._pieces(file, offset, count)) as pieces:
                await self._client.append(part.path, pieces, length=count, offset=offset)
            offset += count
            confirmed.length = offset

    async def _put_in_place(self, part: str, target: str, file: LocalFile) -> None:
        length = (await self._client.status(part)).length
        if length != file.length:
            # two uploads of the same at once, or an append that was thought to be broken
            raise FilesError(
                503,
                "RetriableException",
                msg(
                    "{path} has become {length} bytes long instead of {wanted}: something else writes to it.",
                    path=part,
                    length=length,
                    wanted=file.length,
                ),
            )
        await asyncio.to_thread(check_unchanged, file)
        await self._client.set_times(part, file.modified)
        await self._client.rename(part, target, overwrite=True)

    async def _pieces(self, file: LocalFile, offset: int, count: int) -> AsyncGenerator[bytes, None]:
        with await asyncio.to_thread(open_unchanged, file) as stream:
            stream.seek(offset)
            end = offset + count
            while offset < end:
                piece = await asyncio.to_thread(stream.read, min(PIECE, end - offset))
                if not piece:
                    raise changed(str(file.path))
                yield piece
                offset += len(piece)
                self._tally.at(file.name, offset)


def _permission(file: LocalFile) -> int | None:
    """Return the mode that keeps a program executable; None leaves it to the storage."""
    return 0o755 if file.mode & stat.S_IXUSR else None


def _without_contents(folders: Sequence[str], files: Sequence[LocalFile]) -> list[str]:
    """Choose the folders that do not come into being with what is in them."""
    filled = {folder.rpartition("/")[0] for folder in folders}
    filled.update(file.name.rpartition("/")[0] for file in files)
    return [folder for folder in folders if folder not in filled]
