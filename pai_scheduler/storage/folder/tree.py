"""Lists, makes, moves, removes and counts what is in a storage's folder. It all blocks: for threads."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import suppress

from pai_scheduler.i18n import msg
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus, Listing, Summary, closing, exists, no_link

from .resolve import (
    FOLDER_MODE,
    READ,
    SEARCH,
    UPLOADS,
    WRITE,
    Entry,
    Walk,
    describe,
    is_plain,
    make_folder,
    naming,
    place,
    refusal,
)

#: Seconds after which what a killed service left among the uploads is removed.
_FORGOTTEN = 24 * 3600
#: What the names of things begin with that are being removed.
_GONE = "gone-"

_READABLE = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class FolderTree:
    """The folders and names of a storage. Every method may raise StorageError."""

    def __init__(self, walk: Walk) -> None:
        self._walk = walk
        self._closed = False

    def make_root(self) -> None:
        """Make the root."""
        with naming(StoragePath()):
            self._walk.root.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
            with suppress(FileExistsError):
                (self._walk.root / UPLOADS).mkdir(mode=0o700)

    def tidy(self) -> None:
        """Remove what was never finished."""
        uploads = self._walk.uploads()
        try:
            with naming(StoragePath()):
                for name in _names(uploads):
                    # another service may be at it too
                    with suppress(FileNotFoundError):
                        age = time.time() - os.lstat(name, dir_fd=uploads).st_mtime
                        if name.startswith(_GONE) or age > _FORGOTTEN:
                            self._remove(uploads, name)
        finally:
            os.close(uploads)

    def close(self) -> None:
        """Break off what takes long."""
        self._closed = True

    def status(self, path: StoragePath, actor: str) -> FileStatus:
        """Describe a file or folder, and say how many are in it."""
        with self._walk.entry(path, actor) as entry:
            children = 0
            if entry.is_folder:
                # who may not read a folder is not told what is in it, but still that it is there
                with suppress(PermissionError):
                    children = sum(1 for _ in _plain(entry))
            return describe(path, entry.stat, children)

    def listing(self, path: StoragePath, actor: str, after: str, limit: int | None) -> Listing:
        """List a folder. What is in the folders of it is not counted."""
        with self._walk.entry(path, actor) as entry, naming(path):
            if not entry.is_folder:
                return Listing([describe(path, entry.stat)] if path.name > after else [])
            entry.permit(actor, READ)
            names = sorted(name for name, _ in _plain(entry) if name > after)
            wanted = names if limit is None else names[: max(0, limit)]
            found = []
            for name in wanted:
                # it may be gone, or be another, by now
                with suppress(FileNotFoundError):
                    status = os.lstat(name, dir_fd=entry.descriptor)
                    if is_plain(status):
                        found.append(describe(path / name, status))
            return Listing(found, len(names) - len(wanted))

    def mkdirs(self, path: StoragePath, actor: str, permission: int) -> None:
        """Make a folder, and those above it."""
        if not path.parts:
            return
        with self._walk.parent(path, actor, make=True) as parent, naming(path):
            if make_folder(parent, path, actor, permission):
                return
            there = os.lstat(path.name, dir_fd=parent.descriptor)
            if not stat.S_ISDIR(there.st_mode):
                raise exists(path)

    def rename(self, source: StoragePath, target: StoragePath, actor: str, overwrite: bool) -> None:
        """Move in one step."""
        if target.is_within(source):
            raise StorageError(Problem.INVALID, msg("{path} cannot be moved into itself.", path=str(source)))
        if not overwrite and self._walk.is_folder(target, actor):
            target = target / source.name
        if not target.parts or target.is_within(source):
            raise exists(target)
        with (
            self._walk.parent(source, actor) as left,
            self._walk.parent(target, actor) as entered,
        ):
            with naming(source):
                there = os.lstat(source.name, dir_fd=left.descriptor)
                if not is_plain(there):
                    raise no_link(source)
                left.permit(actor, WRITE)
                entered.permit(actor, WRITE)
            with naming(target):
                place(left.descriptor, source.name, entered.descriptor, target.name, overwrite=overwrite)

    def delete(self, path: StoragePath, actor: str, recursive: bool) -> bool:
        """Remove; a folder with all that is in it vanishes in one step."""
        if not path.parts:
            raise StorageError(
                Problem.DENIED,
                msg("{path} stays as it is: only what is in it can be moved or deleted.", path="/"),
            )
        try:
            with self._walk.entry(path, actor) as entry, self._walk.parent(path, actor) as parent:
                parent.permit(actor, WRITE)
                with naming(path):
                    if not entry.is_folder:
                        os.unlink(path.name, dir_fd=parent.descriptor)
                    elif not recursive:
                        os.rmdir(path.name, dir_fd=parent.descriptor)
                    else:
                        if actor:
                            self._check_below(path, actor)
                        self._delete_folder(parent, entry)
        except StorageError as error:
            if error.problem is Problem.NOT_FOUND:
                return False
            raise
        return True

    def set_permission(self, path: StoragePath, actor: str, permission: int) -> None:
        """Change the nine bits."""
        if not 0 <= permission <= 0o777:
            raise StorageError(
                Problem.INVALID,
                msg(
                    "{permission} is no permission: it is three digits from 0 to 7.",
                    permission=f"{permission:o}",
                ),
            )
        with self._walk.entry(path, actor) as entry, naming(path):
            os.chmod(entry.proc, permission)  # noqa: PTH101 - by descriptor

    def check_access(self, path: StoragePath, actor: str, access: str) -> None:
        """Refuse what a permission does not let its user do; `access`: as `rw-`."""
        wanted = sum(bit for bit, sign in ((READ, "r"), (WRITE, "w"), (SEARCH, "x")) if sign in access)
        with self._walk.entry(path, actor) as entry:
            entry.permit(actor, wanted)

    def set_times(self, path: StoragePath, actor: str, modified: int | None, accessed: int | None) -> None:
        """Change when it was last changed and read."""
        with self._walk.entry(path, actor) as entry, naming(path):
            entry.permit(actor, WRITE)
            times = (
                entry.stat.st_atime_ns if accessed is None else accessed * 1_000_000,
                entry.stat.st_mtime_ns if modified is None else modified * 1_000_000,
            )
            try:
                os.utime(entry.proc, ns=times)
            except OverflowError as error:
                raise refusal(path, OSError(errno.EINVAL, os.strerror(errno.EINVAL))) from error

    def summary(self, path: StoragePath, actor: str) -> Summary:
        """Count what is in a tree."""
        with self._walk.entry(path, actor) as entry:
            if not entry.is_folder:
                return Summary(
                    files=1, folders=0, length=entry.stat.st_size, space_consumed=entry.stat.st_size
                )
        files = folders = length = 0
        for folder, entries in self._folders(path, actor):
            folder.permit(actor, READ)
            folders += 1
            for name, is_folder in entries:
                with suppress(FileNotFoundError):
                    if not is_folder:
                        length += os.lstat(name, dir_fd=folder.descriptor).st_size
                        files += 1
        return Summary(files=files, folders=folders, length=length, space_consumed=length)

    def _folders(self, path: StoragePath, actor: str) -> Iterator[tuple[Entry, list[tuple[str, bool]]]]:
        """Go through the folders of a tree, the upper ones first, whatever happens to it meanwhile.

        Each is walked to anew, so that a tree of any depth needs two descriptors.
        """
        waiting = [path]
        while waiting:
            if self._closed:
                raise closing(path)
            here = waiting.pop()
            try:
                with self._walk.folder(here, actor) as folder, naming(here):
                    found = list(_plain(folder))
                    yield folder, found
                    waiting += [here / name for name, is_folder in found if is_folder]
            except StorageError as error:
                if here == path or error.problem not in (Problem.NOT_FOUND, Problem.NOT_A_FOLDER):
                    raise

    def _check_below(self, path: StoragePath, actor: str) -> None:
        """Refuse to remove what its user has protected: a folder with something in it that may not change."""
        for folder, entries in self._folders(path, actor):
            if entries:
                folder.permit(actor, READ | WRITE | SEARCH)

    def _delete_folder(self, parent: Entry, folder: Entry) -> None:
        uploads = self._walk.uploads()
        try:
            gone = _GONE + secrets.token_hex(8)
            # who is not root may move only a folder that may be written to
            os.chmod(folder.proc, 0o700)  # noqa: PTH101 - by descriptor
            os.rename(folder.path.name, gone, src_dir_fd=parent.descriptor, dst_dir_fd=uploads)
            self._remove(uploads, gone)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            # on another disk: it cannot vanish in one step
            shutil.rmtree(folder.path.name, dir_fd=parent.descriptor)
        finally:
            os.close(uploads)

    def _remove(self, uploads: int, name: str) -> None:
        """Remove what is in the folder of uploads; the folders in it are moved there, so it is never deep."""
        waiting = [name]
        while waiting:
            if self._closed:
                # the next start goes on
                return
            folder = waiting.pop()
            try:
                descriptor = _open_own(uploads, folder)
            except NotADirectoryError:
                os.unlink(folder, dir_fd=uploads)
                continue
            except FileNotFoundError:
                continue
            try:
                for entry in _names(descriptor):
                    below = _GONE + secrets.token_hex(8)
                    with suppress(FileNotFoundError):
                        if stat.S_ISDIR(os.lstat(entry, dir_fd=descriptor).st_mode):
                            # a folder that may not be written to may not be moved
                            os.close(_open_own(descriptor, entry))
                            os.rename(entry, below, src_dir_fd=descriptor, dst_dir_fd=uploads)
                            waiting.append(below)
                        else:
                            os.unlink(entry, dir_fd=descriptor)
                os.rmdir(folder, dir_fd=uploads)
            except FileNotFoundError:
                # another service is at it too
                continue
            except OSError as error:
                if error.errno != errno.ENOTEMPTY:
                    raise
                # who had it open has just put something into it
                waiting.append(folder)
            finally:
                os.close(descriptor)


def _open_own(parent: int, name: str) -> int:
    """Open a folder that is to be removed, whatever its permission."""
    look = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{look}", 0o700)  # noqa: PTH101 - by descriptor
        return os.open(".", _READABLE, dir_fd=look)
    finally:
        os.close(look)


def _names(folder: int) -> list[str]:
    """Read the names in a folder; the descriptor may have been opened for looking only."""
    readable = os.open(".", _READABLE, dir_fd=folder)
    try:
        return os.listdir(readable)  # noqa: PTH208 - by descriptor
    finally:
        os.close(readable)


def _plain(folder: Entry) -> Iterator[tuple[str, bool]]:
    """Read the names in a folder, and which are folders, leaving out what counts for nothing."""
    readable = os.open(".", _READABLE, dir_fd=folder.descriptor)
    try:
        with os.scandir(readable) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                hidden = not folder.path.parts and entry.name == UPLOADS
                if not hidden and (is_folder or entry.is_file(follow_symlinks=False)):
                    yield entry.name, is_folder
    finally:
        os.close(readable)
