"""Copies files and folders out of a task, which is not trusted: what is written where, see `receiving`."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import asyncssh
from asyncssh import SFTPClient

from pai_scheduler.client.storage.local_tree import changed
from pai_scheduler.client.storage.placing import write_at
from pai_scheduler.client.storage.receiving import RemoteFile, receive, receive_tree
from pai_scheduler.client.storage.transfer import LeftOut, Tell, TransferResult, side_by_side
from pai_scheduler.i18n import msg

from .sftp import PIECE, PIECES, RemoteFileError, about, attributes, is_file, is_folder, offsets


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
