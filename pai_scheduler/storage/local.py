"""A folder of this machine as the users' storage: each user has a tree in it, and all share the public one.

A path is never pasted together and hoped for: it is walked from the root, one opened folder after the other,
and no symbolic link is followed, so nothing can be exchanged between the check and the reading.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from pathlib import Path
from urllib.parse import unquote, urlsplit

from ..job.messages import Message, msg

#: What everybody may read.
PUBLIC = "Public"
#: Where the results of jobs are, below it by user (the default of a job's outputDir).
OUTPUT = "Output"
#: Bytes of the largest file that the scheduler reads for itself.
SMALL = 64 * 1024

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# without O_NONBLOCK a named pipe would keep us waiting
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class StorageError(Exception):
    """A file cannot be had; `message` says which, why, and what to do."""

    def __init__(self, message: Message) -> None:
        super().__init__(str(message))
        self.message = message


class LocalStorage:
    """The storage whose root is the folder that `root_uri` (`file:///…`) names."""

    def __init__(self, root_uri: str) -> None:
        self._root_uri = root_uri.rstrip("/")
        self._root = Path(unquote(urlsplit(self._root_uri).path) or "/")

    async def read_small(self, uri: str, user: str) -> bytes:
        """Give the contents of a user's file, or of a public one; StorageError.

        `uri` has its variables filled in already. What is read must be an ordinary file of 64 KiB at most.
        """
        parts = self._parts(uri, user)
        return await asyncio.to_thread(_read, self._root, parts, uri)

    def _parts(self, uri: str, user: str) -> list[str]:
        """Give the way from the root to what a URI names, where this user may go it."""
        if not uri.startswith(f"{self._root_uri}/"):
            raise StorageError(
                msg("{uri} is not in the cluster's storage, which is {root}.", uri=uri, root=self._root_uri)
            )
        rest = unquote(uri.removeprefix(self._root_uri), errors="surrogateescape")
        parts = [part for part in rest.split("/") if part]
        if ".." in parts or "." in parts or "\0" in rest:
            raise StorageError(msg("{uri} is no plain path: leave out . and .. in it.", uri=uri))
        name = user_folder(user)
        mine = [[PUBLIC], [OUTPUT, name]] + ([[name]] if name not in (PUBLIC, OUTPUT) else [])
        if not any(parts[: len(tree)] == tree and len(parts) > len(tree) for tree in mine):
            raise StorageError(
                msg(
                    "User {user} may not read {uri}. Put the file below {own}.",
                    user=user,
                    uri=uri,
                    own=f"{self._root_uri}/{name}/",
                )
            )
        return parts


def storage_for(default_fs_uri: str) -> LocalStorage | None:
    """Give the storage behind the cluster's `PAI_DEFAULT_FS_URI`; None where the scheduler cannot read it."""
    return LocalStorage(default_fs_uri) if default_fs_uri.startswith("file:///") else None


def user_folder(user: str) -> str:
    """Name a user's folder: the user's name, where a file may be called so."""
    name = user.replace("%", "%25").replace("/", "%2F")
    return name.replace(".", "%2E") if name in (".", "..") else name


def _read(root: Path, parts: list[str], uri: str) -> bytes:
    opened: list[int] = []
    try:
        opened.append(os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        for part in parts[:-1]:
            opened.append(os.open(part, _FOLDER, dir_fd=opened[-1]))
        opened.append(os.open(parts[-1], _FILE, dir_fd=opened[-1]))
        if not stat.S_ISREG(os.fstat(opened[-1]).st_mode):
            raise StorageError(msg("{uri} is no ordinary file.", uri=uri))
        contents = os.read(opened[-1], SMALL + 1)
    except OSError as error:
        raise StorageError(_unreadable(uri, error)) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)
    if len(contents) > SMALL:
        raise StorageError(msg("{uri} is longer than {limit} KiB.", uri=uri, limit=SMALL // 1024))
    return contents


def _unreadable(uri: str, error: OSError) -> Message:
    match error.errno:
        case errno.ENOENT:
            return msg("There is no file {uri}.", uri=uri)
        case errno.ELOOP | errno.ENOTDIR:
            return msg(
                "{uri} cannot be reached: a part of it is no folder, or a symbolic link, which is not "
                "followed.",
                uri=uri,
            )
        case errno.ENXIO | errno.EISDIR:
            return msg("{uri} is no ordinary file.", uri=uri)
        case _:
            return msg("{uri} cannot be read: {error}.", uri=uri, error=error.strerror)
