"""Files of a task over SFTP: what uploads and downloads have in common."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import asyncssh
from asyncssh import SFTPClient

from pai_scheduler.client.storage.transfer import OneFileError
from pai_scheduler.i18n import msg

from .connection import RemoteError

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
