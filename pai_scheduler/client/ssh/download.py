"""Copies files and folders out of a task: only what changed, and on from where a connection broke.

A task is not trusted: nothing is written through a symbolic link here, and nothing outside of the folder.
"""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import asyncssh
from asyncssh import SFTPClient

from pai_scheduler.client.storage.placing import open_part, place_below, put_in_place, write_at
from pai_scheduler.client.storage.transfer import (
    LeftOut,
    LocalFileError,
    Meter,
    Tell,
    TransferResult,
    part_name,
    side_by_side,
)
from pai_scheduler.job.messages import msg

from .sftp import PIECE, PIECES, RemoteFileError, about, attributes, is_file, is_folder, offsets


@dataclass(frozen=True, slots=True)
class _Found:
    """Something in a folder of a task; `name`: its path below the folder. `modified` in seconds."""

    path: str
    name: str
    folder: bool
    length: int
    modified: int
    mode: int


async def download(files: SFTPClient, remote: str, local: Path, tell: Tell | None = None) -> TransferResult:
    """Make `local` the same as a file or folder of a task; what else is here already stays.

    RemoteFileError where `remote` cannot be read; of single files in a folder the outcome tells.
    """
    found = await attributes(files, remote)
    if found is None:
        raise RemoteFileError(msg("There is no {path} in the task.", path=remote))
    if not is_folder(found):
        if not is_file(found):
            raise RemoteFileError(msg("{path} in the task is no file.", path=remote))
        one = _found(remote, posixpath.basename(remote), found)
        download = _Download(files, Meter(1, one.length, tell))
        await download.one((one, local))
        return download.outcome
    left_out: list[LeftOut] = []
    wanted: list[tuple[_Found, Path]] = []
    await asyncio.to_thread(local.mkdir, parents=True, exist_ok=True)
    async for each in _walk(files, remote, "", left_out):
        try:
            place = await asyncio.to_thread(place_below, local, each.name, is_folder=each.folder)
        except LocalFileError as error:
            left_out.append(LeftOut(each.path, error.message, failed=True))
            continue
        if not each.folder:
            wanted.append((each, place))
    download = _Download(files, Meter(len(wanted), sum(each.length for each, _ in wanted), tell))
    download.outcome.left_out += left_out
    await side_by_side(wanted, download.one)
    return download.outcome


async def _walk(
    files: SFTPClient, folder: str, prefix: str, left_out: list[LeftOut]
) -> AsyncIterator[_Found]:
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


def _found(path: str, name: str, attrs: asyncssh.SFTPAttrs) -> _Found:
    mode = attrs.permissions if attrs.permissions is not None else 0o644
    return _Found(path, name, is_folder(attrs), attrs.size or 0, attrs.mtime or 0, mode & 0o777)


class _Download:
    def __init__(self, files: SFTPClient, meter: Meter) -> None:
        self._files, self._meter = files, meter
        self.outcome = TransferResult()

    async def one(self, pair: tuple[_Found, Path]) -> None:
        """Download a file; what is wrong with it alone stands in the outcome."""
        found, local = pair
        try:
            if await asyncio.to_thread(_is_same, local, found):
                self.outcome.same += 1
                return
            await self._get(found, local)
            self.outcome.files += 1
            self.outcome.length += found.length
        except (LocalFileError, RemoteFileError) as error:
            self.outcome.left_out.append(LeftOut(found.path, error.message, failed=True))
        finally:
            self._meter.done(found.path, found.length)

    async def _get(self, found: _Found, local: Path) -> None:
        part = local.with_name(part_name(local.name, found.length, found.modified * 1000))
        descriptor = await asyncio.to_thread(open_part, part)
        try:
            with about(found.path):
                await self._fetch(descriptor, found, local)
                now = await self._files.stat(found.path)
            if (now.size, now.mtime) != (found.length, found.modified):
                part.unlink()
                raise _changed(found)
        finally:
            os.close(descriptor)
        await asyncio.to_thread(put_in_place, part, local, found.modified * 1000, found.mode)

    async def _fetch(self, descriptor: int, found: _Found, local: Path) -> None:
        begin = min(os.fstat(descriptor).st_size, found.length)
        os.ftruncate(descriptor, begin)
        async with await self._files.open(found.path, asyncssh.FXF_READ, encoding=None) as handle:
            pieces = offsets(begin, found.length)
            done = pieces.start

            async def piece(offset: int) -> None:
                nonlocal done
                wanted = min(PIECE, found.length - offset)
                data = cast(bytes, await handle.read(wanted, offset))
                if len(data) != wanted:
                    raise _changed(found)
                await asyncio.to_thread(write_at, descriptor, data, offset, local)
                done += wanted
                self._meter.at(found.path, done)

            await side_by_side(pieces, piece, PIECES)


def _is_same(local: Path, found: _Found) -> bool:
    """Return whether a file is here already; its mode is set then, which may be all that has changed."""
    try:
        status = local.lstat()
    except OSError:
        return False
    if local.is_symlink() or not local.is_file():
        return False
    if (status.st_size, int(status.st_mtime)) != (found.length, found.modified):
        return False
    if status.st_mode & 0o777 != found.mode:
        local.chmod(found.mode)
    return True


def _changed(found: _Found) -> LocalFileError:
    return LocalFileError(
        msg("{path} has changed while it was being copied: copy it again.", path=found.path)
    )
