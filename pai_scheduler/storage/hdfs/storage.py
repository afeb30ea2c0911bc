"""An HDFS as the users' storage, over WebHDFS: in the user's name, and kept to HDFS's own rights."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import requests

from pai_scheduler.i18n import msg
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import (
    Checksum,
    FileStatus,
    Listing,
    OpenFile,
    Summary,
    ends_elsewhere,
    exists,
    is_folder,
    no_folder,
    not_found,
)

from .client import HdfsRefused, NameNodeAnswer, NameNodes, name_of
from .transfer import DataNodeTransfers

# Reads what a name node says about files: WebHDFS's JSON, as what the storage protocol has.


def described(path: StoragePath, told: dict[str, Any]) -> FileStatus:
    """Read WebHDFS's FileStatus; NOT_FOUND for a symbolic link, which counts for nothing."""
    if told["type"] not in ("FILE", "DIRECTORY"):
        raise not_found(path)
    is_folder = told["type"] == "DIRECTORY"
    return FileStatus(
        path=path,
        is_folder=is_folder,
        length=0 if is_folder else told["length"],
        modified=told["modificationTime"],
        accessed=told["accessTime"],
        permission=int(told["permission"], 8) & 0o777,
        owner=told["owner"],
        group=told["group"],
        children=told.get("childrenNum", 0),
        replication=told["replication"],
        block_size=told["blockSize"],
        file_id=told.get("fileId", 0),
    )


def listed(path: StoragePath, told: Sequence[dict[str, Any]], after: str = "") -> list[FileStatus]:
    """Read WebHDFS's FileStatuses, from after a name on; a file lists as itself, without a name."""
    entries = [
        described(path / one["pathSuffix"] if one["pathSuffix"] else path, one)
        for one in told
        if one["type"] != "SYMLINK" and (not one["pathSuffix"] or one["pathSuffix"] > after)
    ]
    return sorted(entries, key=lambda entry: entry.path.name)


def same_contents(one: FileStatus, other: FileStatus) -> bool:
    """Return whether nobody wrote to a file in between."""
    return (one.file_id, one.modified, one.length) == (other.file_id, other.modified, other.length)


# An HDFS as the users' storage, over WebHDFS: done in the user's name, and kept to HDFS's own rights too.
#
# The scheduler's account is a superuser of HDFS and may act for others (`hadoop.proxyuser`). Contents come
# into being below `/.pai-uploads`, which nobody can list, and get their name in one step.
#
# WebHDFS appends wherever a file ends when the data node gets to it, and nobody can hold the file's lease
# between looking and writing; what a broken connection brought may land in between. So an append that says
# where it belongs is compared with the file's length before and after: it succeeds only where nothing came
# in between. Where something did, or a connection to HDFS broke, bytes at the file's end may be wrong, and
# the append is refused: nothing that was not confirmed counts as written before its reader has compared it,
# as our clients do.

UPLOADS = StoragePath((".pai-uploads",))
#: Anybody may make a file there; who does not know its name does not find it.
_UPLOADS_MODE = 0o1733
_FILE_MODE, _FOLDER_MODE = 0o644, 0o755
#: Seconds after which an upload is taken for abandoned.
_ABANDONED = 24 * 3600
#: Seconds for which HDFS is asked again where that may help.
_PATIENCE = 10.0

#: How often it is looked whether a file has been cut, and seconds between that.
_LOOKS, _BETWEEN_LOOKS = 40, 0.5

_log = logging.getLogger(__name__)


class HdfsStorage:
    """The HDFS whose name nodes answer at `urls` (`http://name:9870`; several: a high-availability pair).

    `account` is the service's own user; with `kerberos` it proves that with its process's ticket.
    """

    def __init__(
        self, urls: Sequence[str], account: str, *, kerberos: bool = False, patience: float = _PATIENCE
    ) -> None:
        self.root_uri = urls[0].rstrip("/")
        self._names = NameNodes(urls, account, kerberos=kerberos, patience=patience)
        self._transfers = DataNodeTransfers(account, kerberos=kerberos, patience=patience)
        #: the group that new files below `/.pai-uploads` have; empty until that is known to be there
        self._uploads_group = ""
        #: the name node knows LISTSTATUS_BATCH (Hadoop 3); None: not tried yet
        self._batches: bool | None = None
        self._tidying: asyncio.Task[None] | None = None
        #: done when what a write began has its name, or is removed
        self._writing: set[asyncio.Future[None]] = set()

    def host_folder(self, path: StoragePath) -> None:
        """Return where a folder is on this machine: nowhere."""

    async def start(self) -> None:
        """Begin to remove what was uploaded in vain."""
        self._tidying = asyncio.create_task(self._tidy())

    async def close(self) -> None:
        """Close the storage; transfers under way are broken off."""
        if self._tidying is not None:
            self._tidying.cancel()
            await asyncio.wait([self._tidying])
        await self._transfers.close()
        if self._writing:
            # they remove what they began
            await asyncio.wait(self._writing)
        await self._names.close()

    async def make_tree(self, path: StoragePath, owner: str, group: str, permission: int) -> None:
        """Make the root of a tree and return it to its owner; it is never seen without its owner."""
        if await self._find(path, "") is not None:
            return
        await self._make_uploads()
        fresh = UPLOADS / secrets.token_hex(16)
        await self._names.ask("MKDIRS", fresh, "", {"permission": f"{permission:o}"})
        try:
            if owner or group:
                given = {"owner": owner or None, "group": group or None}
                await self._names.ask("SETOWNER", fresh, "", given)
            await self.set_permission(fresh, "", permission)
            await self.mkdirs(path.parent, "")
            with suppress(_Exists):
                await self._place(fresh, path, "", overwrite=False)
        finally:
            await self._drop(fresh)

    async def status(self, path: StoragePath, actor: str) -> FileStatus:
        """Describe a file or folder."""
        answer = await self._ask_below("GETFILESTATUS", path, actor)
        return described(path, answer.json("FileStatus"))

    async def list(self, path: StoragePath, actor: str, after: str = "", limit: int | None = None) -> Listing:
        """List a folder, in batches where the name node can."""
        entries: list[FileStatus] = []
        remaining = 1
        while remaining and (limit is None or len(entries) < limit):
            part, remaining = await self._list_part(path, actor, entries[-1].path.name if entries else after)
            entries += part
        if limit is not None and len(entries) > limit:
            remaining += len(entries) - limit
        return Listing(entries[:limit], remaining)

    @asynccontextmanager
    async def open(
        self, path: StoragePath, actor: str, offset: int = 0, length: int | None = None
    ) -> AsyncIterator[OpenFile]:
        """Read a file from `offset` on; where a connection breaks, it goes on with another."""
        status = await self.status(path, actor)
        if status.is_folder:
            raise is_folder(path)
        left = status.length - offset
        if offset < 0 or left < 0 or (length is not None and length < 0):
            raise StorageError(
                Problem.INVALID,
                msg(
                    "{path} has {size} bytes: nothing can be read from byte {offset} on.",
                    path=str(path),
                    size=status.length,
                    offset=offset,
                ),
            )
        wanted = left if length is None else min(length, left)
        if not wanted:
            await self.check_access(path, actor, "r--")
            yield OpenFile(status, 0, _nothing())
            return
        async with self._transfers.downloads:

            async def begin(done: int) -> requests.Response:
                if done and not same_contents(status, await self.status(path, actor)):
                    raise StorageError(
                        Problem.UNAVAILABLE,
                        msg("{path} was changed while it was read: read it again.", path=str(path)),
                    )

                async def locate(silent: str | None) -> requests.Response:
                    part = {"offset": offset + done, "length": wanted - done, "excludedatanodes": silent}
                    return (await self._names.ask("OPEN", path, actor, part, at=_at(path, status))).response

                return await self._transfers.begin(path, locate)

            pieces = self._transfers.read(path, await begin(0), wanted, begin)
            try:
                yield OpenFile(status, wanted, pieces)
            finally:
                await pieces.aclose()  # type: ignore[attr-defined] # it is a generator

    async def create(
        self,
        path: StoragePath,
        actor: str,
        pieces: AsyncIterator[bytes],
        *,
        overwrite: bool = False,
        permission: int | None = None,
    ) -> None:
        """Write a file; it has its name only when it is whole."""
        await self._write(path, actor, pieces, overwrite, permission)

    async def append(
        self, path: StoragePath, actor: str, pieces: AsyncIterator[bytes], *, offset: int | None = None
    ) -> None:
        """Write on at a file's end, at `offset`; UNAVAILABLE while somebody else does, or did."""
        status = await self.status(path, actor)
        if status.is_folder:
            raise is_folder(path)
        if offset is not None and offset != status.length:
            raise ends_elsewhere(path, status.length, offset)
        # once contents are on their way, a refusal may get lost
        await self.check_access(path, actor, "-w-")

        async def locate(silent: str | None) -> requests.Response:
            left_out = {"excludedatanodes": silent}
            return (await self._names.ask("APPEND", path, actor, left_out, at=_at(path, status))).response

        sent = 0

        async def counted() -> AsyncIterator[bytes]:
            nonlocal sent
            async for piece in pieces:
                sent += len(piece)
                yield piece

        await self._transfers.send("POST", path, locate, counted())
        if offset is not None:
            length = (await self.status(path, actor)).length
            if length != offset + sent:
                raise ends_elsewhere(path, length, offset + sent)

    async def truncate(self, path: StoragePath, actor: str, length: int) -> bool:
        """Cut a file to its first `length` bytes; within a block that takes HDFS some seconds."""
        status = await self.status(path, actor)
        if status.is_folder:
            raise is_folder(path)
        if length > status.length:
            raise StorageError(
                Problem.INVALID,
                msg(
                    "{path} has {size} bytes: it cannot be cut to {length}.",
                    path=str(path),
                    size=status.length,
                    length=length,
                ),
            )
        answer = await self._names.ask("TRUNCATE", path, actor, {"newlength": length})
        if answer.json("boolean"):
            return True
        for _ in range(_LOOKS):
            await asyncio.sleep(_BETWEEN_LOOKS)
            if (await self.status(path, actor)).length == length:
                return True
        return False

    async def concat(self, target: StoragePath, sources: Sequence[StoragePath], actor: str) -> None:
        """Put files at the end of another in one step, without their contents being moved."""
        for path in (target, *sources):
            if (await self.status(path, actor)).is_folder:
                raise is_folder(path)
            # HDFS does not look at the rights of the files themselves
            await self.check_access(path, actor, "-w-" if path == target else "r--")
        names = ",".join(map(name_of, sources))
        try:
            await self._names.ask("CONCAT", target, actor, {"sources": names})
        except HdfsRefused as error:
            if not (error.uncertain and await self._find(sources[0], actor) is None):
                raise

    async def check_access(self, path: StoragePath, actor: str, access: str) -> None:
        """Check with HDFS (DENIED) whether somebody has access (as `rw-`) to what is there."""
        await self._ask_below("CHECKACCESS", path, actor, {"fsaction": access})

    async def mkdirs(self, path: StoragePath, actor: str, permission: int | None = None) -> None:
        """Make a folder, and those above it."""
        if permission is not None:
            there = await self._find(path, actor)
            if there is not None and there.is_folder:
                return
            await self.mkdirs(path.parent, actor)
        await self._names.ask("MKDIRS", path, actor, {"permission": f"{_FOLDER_MODE:o}"})
        if permission is not None:
            await self.set_permission(path, actor, permission)

    async def rename(
        self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool = False
    ) -> None:
        """Move in one step."""
        if target.is_within(source) and (await self.status(source, actor)).is_folder:
            raise _into_itself(source)
        if overwrite:
            await self._place(source, target, actor, overwrite=True)
            return
        answer = await self._names.ask("RENAME", source, actor, {"destination": name_of(target)})
        if answer.json("boolean"):
            return
        # this call of HDFS gives no reason
        await self._why_not_moved(source, target, actor, answer.uncertain)

    async def delete(self, path: StoragePath, actor: str, *, recursive: bool = False) -> bool:
        """Remove; False where there was nothing."""
        answer = await self._names.ask("DELETE", path, actor, {"recursive": str(recursive).lower()})
        return bool(answer.json("boolean")) or answer.uncertain

    async def copy(
        self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool = False
    ) -> None:
        """Copy a file within the storage, with its times and permission; the contents come through here."""
        async with self.open(source, actor) as file:
            await self._write(
                target, actor, file.pieces, overwrite, file.status.permission, times_of=file.status
            )

    async def set_permission(self, path: StoragePath, actor: str, permission: int) -> None:
        """Change the nine bits."""
        await self._names.ask("SETPERMISSION", path, actor, {"permission": f"{permission:o}"})

    async def set_times(
        self, path: StoragePath, actor: str, modified: int | None, accessed: int | None
    ) -> None:
        """Change when it was last changed and read (ms since the epoch; None: stays)."""
        times = {"modificationtime": modified, "accesstime": accessed}
        await self._names.ask("SETTIMES", path, actor, times)

    async def summary(self, path: StoragePath, actor: str) -> Summary:
        """Count what is in a tree."""
        told = (await self._ask_below("GETCONTENTSUMMARY", path, actor)).json("ContentSummary")
        return Summary(
            files=told["fileCount"],
            folders=told["directoryCount"],
            length=told["length"],
            space_consumed=told["spaceConsumed"],
            quota=told.get("quota", -1),
            space_quota=told.get("spaceQuota", -1),
        )

    async def checksum(self, path: StoragePath, actor: str) -> Checksum:
        """Return a file's checksum, as HDFS makes it of those of its blocks."""
        status = await self.status(path, actor)
        if status.is_folder:
            raise is_folder(path)
        answer = await self._names.ask("GETFILECHECKSUM", path, actor, at=_at(path, status))
        told = answer.json("FileChecksum")
        # bytes of padding may follow
        return Checksum(told["algorithm"], told["bytes"][: 2 * told["length"]], told["length"])

    async def _write(
        self,
        path: StoragePath,
        actor: str,
        pieces: AsyncIterator[bytes],
        overwrite: bool,
        permission: int | None,
        times_of: FileStatus | None = None,
    ) -> None:
        if not path.parts:
            raise is_folder(path)
        there = await self._find(path, actor)
        if there is not None and there.is_folder:
            raise is_folder(path)
        if there is not None and not overwrite:
            raise exists(path)
        if there is not None:
            await self.check_access(path, actor, "-w-")
        parent = await self._make_parent(path, actor)
        await self._make_uploads()
        fresh = UPLOADS / secrets.token_hex(16)
        mode = _FILE_MODE if permission is None else permission

        async def locate(silent: str | None) -> requests.Response:
            given = {"overwrite": "true", "permission": f"{mode:o}", "excludedatanodes": silent}
            return (await self._names.ask("CREATE", fresh, actor, given)).response

        written = asyncio.get_running_loop().create_future()
        self._writing.add(written)
        try:
            await self._transfers.send("PUT", path, locate, pieces)
            if parent.group != self._uploads_group:
                await self._names.ask("SETOWNER", fresh, "", {"group": parent.group})
            if times_of is not None:
                await self.set_times(fresh, "", times_of.modified, times_of.accessed)
            try:
                await self._place(fresh, path, actor, overwrite=overwrite)
            except StorageError as error:
                if error.problem is not Problem.NOT_FOUND:
                    raise
                # the folder was removed meanwhile
                await self._make_parent(path, actor)
                await self._place(fresh, path, actor, overwrite=overwrite)
        except BaseException:
            await asyncio.shield(self._drop(fresh))
            raise
        finally:
            written.set_result(None)
            self._writing.discard(written)

    async def _make_parent(self, path: StoragePath, actor: str) -> FileStatus:
        parent = await self._find(path.parent, actor)
        if parent is None:
            await self.mkdirs(path.parent, actor)
            parent = await self.status(path.parent, actor)
        if not parent.is_folder:
            raise no_folder(path.parent)
        return parent

    async def _place(self, source: StoragePath, target: StoragePath, actor: str, *, overwrite: bool) -> None:
        """Move to exactly this name, with a reason where that cannot be."""
        given = {"destination": name_of(target), "renameoptions": "OVERWRITE" if overwrite else "NONE"}
        try:
            await self._names.ask("RENAME", source, actor, given)
        except HdfsRefused as error:
            if error.problem is Problem.NOT_FOUND and error.uncertain and await self._find(target, actor):
                return
            if error.problem is Problem.EXISTS:
                raise _Exists(error.problem, error.message) from error
            if error.problem is Problem.UNAVAILABLE:
                await self._explain_kinds(source, target, actor)
            raise

    async def _why_not_moved(
        self, source: StoragePath, target: StoragePath, actor: str, uncertain: bool
    ) -> None:
        there = await self._find(target, actor)
        if there is not None and there.is_folder:
            target = target / source.name
            there = await self._find(target, actor)
        if await self._find(source, actor) is None:
            if uncertain and there is not None:
                return
            raise not_found(source)
        if target.is_within(source):
            raise _into_itself(source)
        if there is not None:
            raise exists(target)
        parent = await self._find(target.parent, actor)
        if parent is None:
            raise not_found(target.parent)
        if not parent.is_folder:
            raise no_folder(target.parent)
        raise StorageError(
            Problem.UNAVAILABLE,
            msg("HDFS did not move {path}, and gave no reason. Try again.", path=str(source)),
        )

    async def _explain_kinds(self, source: StoragePath, target: StoragePath, actor: str) -> None:
        """Raise StorageError where a file and a folder cannot replace each other, if that is why."""
        moved, there = await self._find(source, actor), await self._find(target, actor)
        if moved is not None and there is not None and moved.is_folder != there.is_folder:
            raise is_folder(target) if there.is_folder else no_folder(target)

    async def _list_part(self, path: StoragePath, actor: str, after: str) -> tuple[Sequence[FileStatus], int]:
        """List what comes after a name, at least some of it, and tell how many follow."""
        if self._batches is not False:
            try:
                answer = await self._ask_below("LISTSTATUS_BATCH", path, actor, {"startAfter": after or None})
            except StorageError as error:
                if self._batches or error.problem is not Problem.INVALID:
                    raise
            else:
                self._batches = True
                told = answer.json("DirectoryListing")
                statuses = told["partialListing"]["FileStatuses"]["FileStatus"]
                return listed(path, statuses), int(told["remainingEntries"])
        answer = await self._ask_below("LISTSTATUS", path, actor)
        self._batches = False
        return listed(path, answer.json("FileStatuses", "FileStatus"), after), 0

    async def _ask_below(
        self, operation: str, path: StoragePath, actor: str, parameters: Mapping[str, object] | None = None
    ) -> NameNodeAnswer:
        """Ask about something; below a file there is nothing."""
        try:
            return await self._names.ask(operation, path, actor, parameters)
        except StorageError as error:
            raise not_found(path) if error.problem is Problem.NOT_A_FOLDER else error from None

    async def _find(self, path: StoragePath, actor: str) -> FileStatus | None:
        try:
            return await self.status(path, actor)
        except StorageError as error:
            if error.problem is Problem.NOT_FOUND:
                return None
            raise

    async def _make_uploads(self) -> None:
        if not self._uploads_group:
            await self._names.ask("MKDIRS", UPLOADS, "")
            await self.set_permission(UPLOADS, "", _UPLOADS_MODE)
            self._uploads_group = (await self.status(UPLOADS, "")).group

    async def _drop(self, path: StoragePath) -> None:
        """Remove what was not finished; what cannot be removed now is, another day."""
        try:
            await self.delete(path, "", recursive=True)
        except StorageError as error:
            _log.warning("%s stays until it is removed as too old: %s", path, error)

    async def _tidy(self) -> None:
        try:
            await self._make_uploads()
            for entry in (await self.list(UPLOADS, "")).entries:
                if entry.modified < (time.time() - _ABANDONED) * 1000:
                    await self.delete(entry.path, "", recursive=True)
        except StorageError as error:
            _log.warning("uploads that were broken off cannot be removed: %s", error)


class _Exists(StorageError):
    """The name is taken already."""


async def _nothing() -> AsyncIterator[bytes]:
    return
    yield b""


def _at(path: StoragePath, status: FileStatus) -> str:
    """Name a file for a data node: by its number, unless its path is of plain characters.

    On the way there Hadoop decodes some twice, and composes the parts of letters.
    """
    return "" if path.encoded == str(path) or not status.file_id else f"/.reserved/.inodes/{status.file_id}"


def _into_itself(path: StoragePath) -> StorageError:
    return StorageError(Problem.INVALID, msg("{path} cannot be moved into itself.", path=str(path)))
