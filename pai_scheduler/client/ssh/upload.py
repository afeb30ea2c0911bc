"""Copies files and folders into a task: only what changed, and on from where a connection broke.

As on the way into the storage, what is not whole yet is called `.<name>.<fingerprint>.part`.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import asyncssh
from asyncssh import SFTPClient

from pai_scheduler.client.storage.local_tree import (
    LocalFile,
    changed,
    is_unchanged,
    look_at,
    look_through,
    open_unchanged,
    unreadable,
)
from pai_scheduler.client.storage.transfer import (
    FileOutcome,
    LeftOut,
    OneFileError,
    Tally,
    Tell,
    TransferResult,
    part_name,
    side_by_side,
)
from pai_scheduler.i18n import msg

from .sftp import PIECE, PIECES, RemoteFileError, about, attributes, is_file, is_folder, make_folder, offsets


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
    tally = Tally(len(sent), sum(file.length for file in sent), tell)
    tally.result.left_out += left_out
    upload = _Upload(files, folder, tally)
    await side_by_side(
        sent, lambda file: tally.count(file.name, str(file.path), file.length, upload.one(file))
    )
    return tally.result


class _Upload:
    def __init__(self, files: SFTPClient, folder: str, tally: Tally) -> None:
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
