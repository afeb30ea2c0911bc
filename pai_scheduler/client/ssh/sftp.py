"""Files into tasks and out of them over SFTP: only what changed, on from where a connection broke."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, cast

import asyncssh
from asyncssh import SFTPClient

from pai_scheduler.client.storage.download import RemoteFile, receive, receive_tree, write_at
from pai_scheduler.client.storage.transfer import (
    FileOutcome,
    LeftOut,
    OneFileError,
    Tell,
    TransferResult,
    TransferTally,
    part_name,
    side_by_side,
)
from pai_scheduler.client.storage.upload import (
    LocalFile,
    changed,
    is_unchanged,
    look_at,
    look_through,
    open_unchanged,
    unreadable,
)
from pai_scheduler.i18n import msg

from .connection import RemoteError

# Files of a task over SFTP: what uploads and downloads have in common.

#: Bytes of a file that are asked for or sent together, and how many such pieces are under way.
PIECE, PIECES = 4 * 2**20, 2
#: Bytes at the end of a part of a file that may have holes: pieces come in any order.
UNSURE = PIECE * PIECES
#: What means that nothing can be transferred any more, whatever the file.
_LOST = (asyncssh.SFTPConnectionLost, asyncssh.SFTPNoConnection, asyncssh.DisconnectError, OSError)


class RemoteFileError(OneFileError):
    """One file or folder of a task cannot be read or written."""


@asynccontextmanager
async def files_of(connection: asyncssh.SSHClientConnection) -> AsyncIterator[SFTPClient]:
    """Open a task's files; RemoteError where that cannot be, or the connection breaks."""
    try:
        # names that are no UTF-8 are passed through as they are
        opened = await connection.start_sftp_client(path_errors="surrogateescape")
    except (asyncssh.SFTPError, asyncssh.DisconnectError, asyncssh.ChannelOpenError) as error:
        raise RemoteError(
            msg("The task's files cannot be opened: {reason}.", reason=error.reason.rstrip("."))
        ) from error
    try:
        async with opened as files:
            yield files
    except (asyncssh.SFTPError, asyncssh.DisconnectError, asyncssh.ChannelOpenError) as error:
        raise _broken_off(error.reason) from error
    except ConnectionError as error:  # what the library says where it was just about to read
        raise _broken_off(error.strerror or type(error).__name__) from error


def _broken_off(reason: str) -> RemoteError:
    return RemoteError(
        msg(
            "The connection to the task broke off: {reason}. The same command goes on from here.",
            reason=reason.rstrip("."),
        )
    )


@contextmanager
def about(path: str) -> Iterator[None]:
    """Make a refusal of this file out of the protocol's errors; a lost connection concerns all files."""
    try:
        yield
    except _LOST:
        raise
    except asyncssh.SFTPError as error:
        raise RemoteFileError(
            msg("{path} in the task: {reason}.", path=path, reason=error.reason.rstrip("."))
        ) from None


async def attributes(files: SFTPClient, path: str) -> asyncssh.SFTPAttrs | None:
    """Describe what is there, through links; None where nothing is."""
    with about(path):
        try:
            return await files.stat(path)
        except (asyncssh.SFTPNoSuchFile, asyncssh.SFTPNoSuchPath):
            return None


async def make_folder(files: SFTPClient, path: str, mode: int = 0o777) -> None:
    """Make a folder and those above it; one that is there is left as it is."""
    found = await attributes(files, path)
    if found is not None:
        if not is_folder(found):
            raise RemoteFileError(msg("{path} in the task is no folder.", path=path))
        return
    above = path.rstrip("/").rpartition("/")[0]
    if above:
        await make_folder(files, above)
    with about(path):
        # the copy must be able to write into it
        await files.mkdir(path, asyncssh.SFTPAttrs(permissions=mode & 0o777 | 0o700))


def is_folder(found: asyncssh.SFTPAttrs) -> bool:
    """Return whether this is a folder."""
    return found.type == asyncssh.FILEXFER_TYPE_DIRECTORY


def is_file(found: asyncssh.SFTPAttrs) -> bool:
    """Return whether this is an ordinary file."""
    return found.type == asyncssh.FILEXFER_TYPE_REGULAR


def offsets(begin: int, length: int) -> range:
    """Return where the pieces of a file of `length` bytes begin, whose part is `begin` bytes long already."""
    return range(max(0, begin - UNSURE), length, PIECE)


# Copies files and folders into a task: only what changed, and on from where a connection broke.
#
# As on the way into the storage, what is not whole yet is called `.<name>.<fingerprint>.part`.


async def upload(files: SFTPClient, local: Path, remote: str, tell: Tell | None = None) -> TransferResult:
    """Make `remote` the same as a file or folder of this machine; what else is there already stays.

    RemoteFileError, LocalFileError where the whole cannot be; of single files in a folder the outcome tells.
    """
    if not await asyncio.to_thread(local.is_dir):
        folder, name = posixpath.split(remote)
        file = replace(await asyncio.to_thread(look_at, local), name=name)
        there = await attributes(files, folder or ".")
        if there is None or not is_folder(there):
            raise RemoteFileError(msg("There is no folder {path} in the task.", path=folder))
        return await _send(files, [file], folder, [], tell)
    tree = await asyncio.to_thread(look_through, local)
    await make_folder(files, remote, await asyncio.to_thread(_mode, local))
    left_out = list(tree.left_out)
    # those above first
    for name in tree.folders:
        try:
            mode = await asyncio.to_thread(_mode, local / name)
            await make_folder(files, posixpath.join(remote, name), mode)
        except OneFileError as error:
            left_out.append(LeftOut(str(local / name), error.message, failed=True))
        except OSError as error:
            left_out.append(LeftOut(str(local / name), unreadable(local / name, error).message, failed=True))
    return await _send(files, tree.files, remote, left_out, tell)


async def _send(
    files: SFTPClient, sent: Sequence[LocalFile], folder: str, left_out: list[LeftOut], tell: Tell | None
) -> TransferResult:
    tally = TransferTally(len(sent), sum(file.length for file in sent), tell)
    tally.result.left_out += left_out
    upload = _Upload(files, folder, tally)
    await side_by_side(
        sent, lambda file: tally.count(file.name, str(file.path), file.length, upload.one(file))
    )
    return tally.result


class _Upload:
    def __init__(self, files: SFTPClient, folder: str, tally: TransferTally) -> None:
        self._files, self._folder, self._tally = files, folder, tally

    async def one(self, found: LocalFile) -> FileOutcome:
        """Send a file as it is by now."""
        target = posixpath.join(self._folder, found.name)
        there = await attributes(self._files, target)
        file, stream = await asyncio.to_thread(_opened, found)
        modified = file.modified // 1000
        with stream:
            if there is not None and not is_file(there):
                raise RemoteFileError(msg("{path} in the task is no file.", path=target))
            if there is not None and (there.size, there.mtime) == (file.length, modified):
                if there.permissions is not None and there.permissions & 0o777 != file.mode:
                    with about(target):
                        await self._files.chmod(target, file.mode)
                return "same"
            folder, name = posixpath.split(target)
            part = posixpath.join(folder, part_name(name, file.length, file.modified))
            with about(part):
                await self._send(stream.fileno(), file, part)
                if not is_unchanged(stream, file):
                    await self._files.remove(part)
                    raise changed(str(file.path))
        with about(target):
            attrs = asyncssh.SFTPAttrs(permissions=file.mode, atime=modified, mtime=modified)
            await self._files.setstat(part, attrs)
            await self._files.posix_rename(part, target)
        return "moved"

    async def _send(self, descriptor: int, file: LocalFile, part: str) -> None:
        there = await attributes(self._files, part)
        begin = there.size or 0 if there is not None else 0
        flags = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT
        private = asyncssh.SFTPAttrs(permissions=0o600)
        async with await self._files.open(part, flags, private, encoding=None) as handle:
            pieces = offsets(begin, file.length)
            done = pieces.start

            async def piece(offset: int) -> None:
                nonlocal done
                data = await asyncio.to_thread(os.pread, descriptor, PIECE, offset)
                await handle.write(data, offset)
                done += len(data)
                self._tally.at(file.name, done)

            await side_by_side(pieces, piece, PIECES)


def _opened(found: LocalFile) -> tuple[LocalFile, BinaryIO]:
    file = replace(look_at(found.path), name=found.name)
    return file, open_unchanged(file)


def _mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


# Copies files and folders out of a task, which is not trusted: what is written where, see `receiving`.


async def download(files: SFTPClient, remote: str, local: Path, tell: Tell | None = None) -> TransferResult:
    """Make `local` the same as a file or folder of a task; what else is here already stays.

    RemoteFileError where `remote` cannot be read; of single files in a folder the outcome tells.
    """
    source, found = _Task(files), await attributes(files, remote)
    if found is None:
        raise RemoteFileError(msg("There is no {path} in the task.", path=remote))
    if not is_folder(found):
        if not is_file(found):
            raise RemoteFileError(msg("{path} in the task is no file.", path=remote))
        one = _found(remote, posixpath.basename(remote), found)
        return await receive(source, [(one, local)], tell)
    left_out: list[LeftOut] = []
    return await receive_tree(source, _walk(files, remote, "", left_out), local, left_out, tell)


async def _walk(
    files: SFTPClient, folder: str, prefix: str, left_out: list[LeftOut]
) -> AsyncIterator[RemoteFile]:
    """Return what is in a folder, each folder before what is in it. A link to a file counts as a file."""
    try:
        with about(folder):
            entries = [entry async for entry in files.scandir(folder)]
    except RemoteFileError as error:
        if not prefix:
            raise
        left_out.append(LeftOut(folder, error.message, failed=True))
        return
    for entry in sorted(entries, key=lambda entry: str(entry.filename)):
        name, attrs = str(entry.filename), entry.attrs
        if name in (".", ".."):
            continue
        path = posixpath.join(folder, name)
        if attrs.type == asyncssh.FILEXFER_TYPE_SYMLINK:
            try:
                target = await attributes(files, path)
            except RemoteFileError:
                target = None
            if target is None or not is_file(target):
                reason = msg("{path} is a link to no file: it is left out.", path=path)
                left_out.append(LeftOut(path, reason, failed=False))
                continue
            attrs = target
        if is_folder(attrs):
            yield _found(path, prefix + name, attrs)
            async for inner in _walk(files, path, f"{prefix}{name}/", left_out):
                yield inner
        elif is_file(attrs):
            yield _found(path, prefix + name, attrs)
        else:
            reason = msg("{file} is no ordinary file: it is left out.", file=path)
            left_out.append(LeftOut(path, reason, failed=False))


def _found(path: str, name: str, attrs: asyncssh.SFTPAttrs) -> RemoteFile:
    mode = attrs.permissions if attrs.permissions is not None else 0o644
    modified = (attrs.mtime or 0) * 1000
    return RemoteFile(path, name, is_folder(attrs), attrs.size or 0, modified, mode & 0o777)


class _Task:
    exact = 1000

    def __init__(self, files: SFTPClient) -> None:
        self._files = files

    async def fetch(self, file: RemoteFile, descriptor: int, local: Path, at: Callable[[int], None]) -> None:
        begin = min(os.fstat(descriptor).st_size, file.length)
        os.ftruncate(descriptor, begin)
        with about(file.path):
            async with await self._files.open(file.path, asyncssh.FXF_READ, encoding=None) as handle:
                pieces = offsets(begin, file.length)
                done = pieces.start

                async def piece(offset: int) -> None:
                    nonlocal done
                    wanted = min(PIECE, file.length - offset)
                    data = cast(bytes, await handle.read(wanted, offset))
                    if len(data) != wanted:
                        raise changed(file.path)
                    await asyncio.to_thread(write_at, descriptor, data, offset, local)
                    done += wanted
                    at(done)

                await side_by_side(pieces, piece, PIECES)

    async def is_unchanged(self, file: RemoteFile) -> bool:
        with about(file.path):
            now = await self._files.stat(file.path)
        return (now.size, (now.mtime or 0) * 1000) == (file.length, file.modified)
