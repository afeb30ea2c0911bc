"""Downloads files and folders: several at once, only what changed, and on from where a connection broke.

What is not whole yet is called `.<name>.<fingerprint>.part` here too. Nothing is written through a symbolic
link below the folder that was named, and nothing outside of it.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.job.messages import msg

from .client import FilesClient
from .errors import FilesError
from .models import FileInfo
from .placing import open_part, place_below, put_in_place, write_at
from .transfer import LeftOut, LocalFileError, Meter, Tell, TransferResult, Trials, part_name, side_by_side


async def download(client: FilesClient, remote: str, local: Path, tell: Tell | None = None) -> TransferResult:
    """Make `local` the same as a file or folder of the storage; what else is there already stays.

    FilesError where `remote` cannot be read; of single files in a folder the outcome tells.
    """
    info = await client.status(remote)
    if not info.is_folder:
        return await _fetch(client, [(info, local)], tell)
    root, files, left_out = info.path.rstrip("/"), [], []
    await asyncio.to_thread(local.mkdir, parents=True, exist_ok=True)
    async with aclosing(client.walk(info.path)) as entries:
        async for entry in entries:
            name = entry.path.removeprefix(root + "/")
            try:
                place = await asyncio.to_thread(place_below, local, name, is_folder=entry.is_folder)
            except LocalFileError as error:
                left_out.append(LeftOut(entry.path, error.message, failed=True))
                continue
            if not entry.is_folder:
                files.append((entry, place))
    outcome = await _fetch(client, files, tell)
    outcome.left_out[:0] = left_out
    return outcome


async def _fetch(
    client: FilesClient, files: list[tuple[FileInfo, Path]], tell: Tell | None
) -> TransferResult:
    download = _Download(client, Meter(len(files), sum(info.length for info, _ in files), tell))
    await side_by_side(files, download.one)
    return download.outcome


class _Download:
    def __init__(self, client: FilesClient, meter: Meter) -> None:
        self._client, self._meter = client, meter
        self.outcome = TransferResult()

    async def one(self, pair: tuple[FileInfo, Path]) -> None:
        """Download a file; what is wrong with it alone stands in the outcome."""
        info, local = pair
        try:
            if await asyncio.to_thread(_is_same, local, info):
                self.outcome.same += 1
                return
            await self._get(info, local)
            self.outcome.files += 1
            self.outcome.length += info.length
        except FilesError as error:
            if error.concerns_all:
                raise
            self.outcome.left_out.append(LeftOut(info.path, error, failed=True))
        except LocalFileError as error:
            self.outcome.left_out.append(LeftOut(info.path, error.message, failed=True))
        finally:
            self._meter.done(info.path, info.length)

    async def _get(self, info: FileInfo, local: Path) -> None:
        trials = Trials()
        part = local.with_name(part_name(local.name, info.length, info.modified))
        descriptor = await asyncio.to_thread(open_part, part)
        try:
            offset = os.fstat(descriptor).st_size
            if offset > info.length:
                os.ftruncate(descriptor, offset := 0)
            while offset < info.length:
                try:
                    async with self._client.read(info.path, offset, info.length - offset) as pieces:
                        async for piece in pieces:
                            await asyncio.to_thread(write_at, descriptor, piece, offset, local)
                            offset += len(piece)
                            trials.got_on()
                            self._meter.at(info.path, offset)
                    if offset < info.length:
                        raise _changed(info)
                except (UnreachableError, FilesError) as error:
                    await trials.after(error)
            now = await self._client.status(info.path)
            if (now.length, now.modified) != (info.length, info.modified):
                part.unlink()
                raise _changed(info)
        finally:
            os.close(descriptor)
        await asyncio.to_thread(put_in_place, part, local, info.modified)


def _is_same(local: Path, info: FileInfo) -> bool:
    try:
        status = local.lstat()
    except OSError:
        return False
    is_file = not local.is_symlink() and local.is_file()
    return is_file and (status.st_size, status.st_mtime_ns // 1_000_000) == (info.length, info.modified)


def _changed(info: FileInfo) -> LocalFileError:
    return LocalFileError(
        msg("{path} has changed while it was being downloaded: download it again.", path=info.path)
    )
