"""Copies files and folders into a task: only what changed, and on from where a connection broke.

As on the way into the storage, what is not whole yet is called `.<name>.<fingerprint>.part`.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
import stat
from dataclasses import replace
from pathlib import Path

import asyncssh
from asyncssh import SFTPClient

from pai_scheduler.client.storage.local_tree import LocalFile, look_at, look_through
from pai_scheduler.client.storage.transfer import (
    LeftOut,
    LocalFileError,
    Meter,
    Tell,
    TransferResult,
    part_name,
    side_by_side,
)
from pai_scheduler.job.messages import Message, msg

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
        upload = _Upload(files, folder, Meter(1, file.length, tell))
        await upload.one(file)
        return upload.outcome
    tree = await asyncio.to_thread(look_through, local)
    await make_folder(files, remote, await asyncio.to_thread(_mode, local))
    upload = _Upload(files, remote, Meter(len(tree.files), sum(file.length for file in tree.files), tell))
    upload.outcome.left_out += tree.left_out
    # those above first
    for name in tree.folders:
        try:
            await make_folder(
                files, posixpath.join(remote, name), await asyncio.to_thread(_mode, local / name)
            )
        except (RemoteFileError, OSError) as error:
            reason = error.message if isinstance(error, RemoteFileError) else _unreadable(local / name, error)
            upload.outcome.left_out.append(LeftOut(str(local / name), reason, failed=True))
    await side_by_side(tree.files, upload.one)
    return upload.outcome


class _Upload:
    def __init__(self, files: SFTPClient, folder: str, meter: Meter) -> None:
        self._files, self._folder, self._meter = files, folder, meter
        self.outcome = TransferResult()

    async def one(self, file: LocalFile) -> None:
        """Upload a file; what is wrong with it alone stands in the outcome."""
        target = posixpath.join(self._folder, file.name)
        try:
            if await self._put(file, target):
                self.outcome.files += 1
                self.outcome.length += file.length
            else:
                self.outcome.same += 1
        except (LocalFileError, RemoteFileError) as error:
            self.outcome.left_out.append(LeftOut(str(file.path), error.message, failed=True))
        finally:
            self._meter.done(file.name, file.length)

    async def _put(self, file: LocalFile, target: str) -> bool:
        """Send a file; False: it is there already."""
        there = await attributes(self._files, target)
        descriptor, status = await asyncio.to_thread(_open, file.path)
        try:
            mode, modified = status.st_mode & 0o777, int(status.st_mtime)
            if there is not None and not is_file(there):
                raise RemoteFileError(msg("{path} in the task is no file.", path=target))
            if there is not None and (there.size, there.mtime) == (status.st_size, modified):
                if there.permissions is not None and there.permissions & 0o777 != mode:
                    with about(target):
                        await self._files.chmod(target, mode)
                return False
            part = posixpath.join(
                posixpath.dirname(target),
                part_name(posixpath.basename(target), status.st_size, status.st_mtime_ns // 1_000_000),
            )
            with about(part):
                await self._send(descriptor, file, part, status.st_size)
            after = os.fstat(descriptor)
            if (after.st_size, after.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
                with about(part):
                    await self._files.remove(part)
                raise LocalFileError(
                    msg("{path} has changed while it was being copied: copy it again.", path=str(file.path))
                )
        finally:
            os.close(descriptor)
        with about(target):
            attrs = asyncssh.SFTPAttrs(permissions=mode, atime=int(status.st_atime), mtime=modified)
            await self._files.setstat(part, attrs)
            await self._files.posix_rename(part, target)
        return True

    async def _send(self, descriptor: int, file: LocalFile, part: str, length: int) -> None:
        there = await attributes(self._files, part)
        begin = there.size or 0 if there is not None else 0
        flags = asyncssh.FXF_WRITE | asyncssh.FXF_CREAT
        private = asyncssh.SFTPAttrs(permissions=0o600)
        async with await self._files.open(part, flags, private, encoding=None) as handle:
            pieces = offsets(begin, length)
            done = pieces.start

            async def piece(offset: int) -> None:
                nonlocal done
                data = await asyncio.to_thread(os.pread, descriptor, PIECE, offset)
                await handle.write(data, offset)
                done += len(data)
                self._meter.at(file.name, done)

            await side_by_side(pieces, piece, PIECES)


def _open(path: Path) -> tuple[int, os.stat_result]:
    try:
        # what has become a pipe since it was looked at must not hold us up
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        raise LocalFileError(_unreadable(path, error)) from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise LocalFileError(msg("{file} is no ordinary file: it is left out.", file=str(path)))
    return descriptor, status


def _mode(folder: Path) -> int:
    return folder.stat().st_mode & 0o777


def _unreadable(path: Path, error: OSError) -> Message:
    return msg("{file} cannot be read: {reason}.", file=str(path), reason=error.strerror or str(error))
