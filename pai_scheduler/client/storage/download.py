"""Downloads files and folders of the storage."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path

from pai_scheduler.client.rest import UnreachableError

from .client import FilesClient
from .errors import FilesError
from .local_tree import changed
from .models import FileInfo
from .placing import write_at
from .receiving import RemoteFile, receive, receive_tree
from .transfer import Tell, TransferResult, Trials


async def download(client: FilesClient, remote: str, local: Path, tell: Tell | None = None) -> TransferResult:
    """Make `local` the same as a file or folder of the storage; what else is there already stays.

    FilesError where `remote` cannot be read; of single files in a folder the outcome tells.
    """
    info = await client.status(remote)
    source = _Storage(client)
    if not info.is_folder:
        return await receive(source, [(_file(info, info.name), local)], tell)
    async with aclosing(client.walk(info.path)) as entries:
        return await receive_tree(source, _files(entries, info.path), local, [], tell)


class _Storage:
    exact = 1

    def __init__(self, client: FilesClient) -> None:
        self._client = client

    async def fetch(self, file: RemoteFile, descriptor: int, local: Path, at: Callable[[int], None]) -> None:
        trials, offset = Trials(), os.fstat(descriptor).st_size
        if offset > file.length:
            os.ftruncate(descriptor, offset := 0)
        while offset < file.length:
            try:
                async with self._client.read(file.path, offset, file.length - offset) as pieces:
                    async for piece in pieces:
                        await asyncio.to_thread(write_at, descriptor, piece, offset, local)
                        offset += len(piece)
                        trials.got_on()
                        at(offset)
                if offset < file.length:
                    raise changed(file.path)
            except (UnreachableError, FilesError) as error:
                await trials.after(error)

    async def is_unchanged(self, file: RemoteFile) -> bool:
        now = await self._client.status(file.path)
        return (now.length, now.modified) == (file.length, file.modified)


async def _files(entries: AsyncIterator[FileInfo], root: str) -> AsyncIterator[RemoteFile]:
    async for info in entries:
        yield _file(info, info.path.removeprefix(root.rstrip("/") + "/"))


def _file(info: FileInfo, name: str) -> RemoteFile:
    return RemoteFile(info.path, name, info.is_folder, info.length, info.modified)
