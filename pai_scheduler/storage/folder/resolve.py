"""From a storage's root folder to what a path names: one opened folder after the other, over no link."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pai_scheduler.i18n import msg
from pai_scheduler.storage.files import Tree, tree_of
from pai_scheduler.storage.paths import Problem, StorageError, StoragePath
from pai_scheduler.storage.protocol import FileStatus, exists, is_folder, no_folder, no_link, not_found

# What the operating system refuses, in the words of a storage.


@contextmanager
def naming(path: StoragePath) -> Iterator[None]:
    """Make StorageErrors about `path` of the OSErrors within."""
    try:
        yield
    except OSError as error:
        raise refusal(path, error) from error


def refusal(path: StoragePath, error: OSError) -> StorageError:
    """Return the StorageError for what went wrong at a path."""
    where = str(path)
    match error.errno:
        case errno.ENOENT:
            return not_found(path)
        case errno.ELOOP:
            return no_link(path)
        case errno.EEXIST:
            return exists(path)
        case errno.ENOTDIR:
            return no_folder(path)
        case errno.EISDIR:
            return is_folder(path)
        case errno.ENOTEMPTY:
            return StorageError(
                Problem.NOT_EMPTY,
                msg("The folder {path} is not empty: say that what is in it is meant too.", path=where),
            )
        case errno.ENOSPC | errno.EDQUOT:
            return StorageError(
                Problem.NO_SPACE, msg("There is no space left for {path}: delete something.", path=where)
            )
        case errno.EFBIG:
            return StorageError(Problem.TOO_LARGE, msg("{path} would become too large.", path=where))
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return StorageError(
                Problem.DENIED,
                msg(
                    "The machine does not let the storage do this with {path}: {error}.", **_said(path, error)
                ),
            )
        case errno.EXDEV:
            return StorageError(
                Problem.UNSUPPORTED,
                msg("{path} is on another disk: copy it there, and delete it here.", path=where),
            )
        case errno.EINVAL | errno.ENAMETOOLONG:
            return StorageError(
                Problem.INVALID, msg("{path} cannot be used for this: {error}.", **_said(path, error))
            )
    return StorageError(
        Problem.UNAVAILABLE, msg("The storage cannot do this with {path} now: {error}.", **_said(path, error))
    )


def _said(path: StoragePath, error: OSError) -> dict[str, str]:
    return {"path": str(path), "error": error.strerror or str(error)}


# The way from a storage's root folder to what a path names: one opened folder after the other, over no
# link.
#
# A path is never pasted together and hoped for, so nothing can be exchanged between the check and the use.
# Everything here blocks, and is called in threads.

#: The folder at the root where files are until they are whole, and folders until they are removed.
UPLOADS = ".uploads"
#: Who owns what is nobody's.
SERVICE = "pai"
#: The permission of new files and folders, as in HDFS.
FILE_MODE, FOLDER_MODE = 0o644, 0o755
#: Bytes of a block, which a folder does not have: what clients of HDFS expect of a file.
BLOCK_SIZE = 128 * 2**20
#: What somebody wants to do with a file or folder, as bits of a permission.
READ, WRITE, SEARCH = 4, 2, 1

# O_PATH needs no right to what is opened, and waits for no pipe
_LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_STEP = _LOOK | os.O_DIRECTORY
_ROOT = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Entry:
    """A file or folder that was found: `descriptor` stands for it (O_PATH), whatever happens to its name."""

    path: StoragePath
    descriptor: int
    stat: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Return whether it is a folder."""
        return stat.S_ISDIR(self.stat.st_mode)

    @property
    def proc(self) -> str:
        """Name it for calls that take no O_PATH descriptor: chmod, open."""
        return f"/proc/self/fd/{self.descriptor}"

    def permit(self, actor: str, wanted: int) -> None:
        """Refuse (DENIED) what the file's permission does not let its user do."""
        if not permits(tree_of(self.path), self.stat, actor, wanted):
            raise not_permitted(self.path, self.stat, wanted)


class Walk:
    """Finds what is below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextmanager
    def folder(self, path: StoragePath, actor: str, *, make: bool = False) -> Iterator[Entry]:
        """Go to a folder (NOT_FOUND, NOT_A_FOLDER, DENIED); `make` it, and those above it, where it lacks."""
        found = self._descend(path, actor, make)
        try:
            yield found
        finally:
            os.close(found.descriptor)

    @contextmanager
    def parent(self, path: StoragePath, actor: str, *, make: bool = False) -> Iterator[Entry]:
        """Go to the folder that something is in, or is to be in."""
        _refuse_own(path)
        with self.folder(path.parent, actor, make=make) as parent:
            yield parent

    @contextmanager
    def entry(self, path: StoragePath, actor: str) -> Iterator[Entry]:
        """Go to a file or folder; NOT_FOUND also where the way leads over a file."""
        if not path.parts:
            with self.folder(path, actor) as root:
                yield root
            return
        try:
            with self.parent(path, actor) as parent, naming(path):
                descriptor = os.open(path.name, _LOOK, dir_fd=parent.descriptor)
        except StorageError as error:
            if error.problem is Problem.NOT_A_FOLDER:
                raise not_found(path) from error
            raise
        try:
            found = Entry(path, descriptor, os.fstat(descriptor))
            if not is_plain(found.stat):
                raise no_link(path)
            yield found
        finally:
            os.close(descriptor)

    def is_folder(self, path: StoragePath, actor: str) -> bool:
        """Return whether a folder is there."""
        try:
            with self.entry(path, actor) as entry:
                return entry.is_folder
        except StorageError as error:
            if error.problem is Problem.NOT_FOUND:
                return False
            raise

    def uploads(self) -> int:
        """Open the folder of what is not whole yet; the caller closes it."""
        root = self._open_root()
        try:
            with naming(StoragePath()):
                return os.open(UPLOADS, _STEP, dir_fd=root)
        finally:
            os.close(root)

    def _open_root(self) -> int:
        """Open the root; the caller closes it. UNAVAILABLE where it is another: its disk is not mounted."""
        try:
            root = os.open(self.root, _ROOT)
            try:
                os.lstat(UPLOADS, dir_fd=root)
            except BaseException:
                os.close(root)
                raise
        except OSError as error:
            raise StorageError(
                Problem.UNAVAILABLE,
                msg(
                    "The storage's folder {folder} is not there, or is another: is its disk mounted?",
                    folder=str(self.root),
                ),
            ) from error
        return root

    def _descend(self, path: StoragePath, actor: str, make: bool) -> Entry:
        _refuse_own(path)
        descriptor = self._open_root()
        tree = tree_of(path)
        try:
            for depth, name in enumerate(path.parts):
                try:
                    below = os.open(name, _STEP, dir_fd=descriptor)
                except OSError as error:
                    here = Entry(StoragePath(path.parts[:depth]), descriptor, os.fstat(descriptor))
                    below = _step(here, name, actor, make, error)
                os.close(descriptor)
                descriptor = below
                if tree is not None and depth + 1 >= len(tree.root.parts):
                    status = os.fstat(descriptor)
                    if not permits(tree, status, actor, SEARCH):
                        raise not_permitted(StoragePath(path.parts[: depth + 1]), status, SEARCH)
            return Entry(path, descriptor, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise


def _refuse_own(path: StoragePath) -> None:
    """Hide what is not whole yet, which is nobody's business."""
    if path.parts[:1] == (UPLOADS,):
        raise not_found(path)


def _step(folder: Entry, name: str, actor: str, make: bool, error: OSError) -> int:
    """Make and open a folder in a folder, or say why the `error` came; the caller closes what is opened."""
    path = folder.path / name
    with naming(path):
        if make and isinstance(error, FileNotFoundError):
            make_folder(folder, path, actor, FOLDER_MODE)
            return os.open(name, _STEP, dir_fd=folder.descriptor)
        if isinstance(error, NotADirectoryError):
            # a link looks so too
            there = os.lstat(name, dir_fd=folder.descriptor)
            raise (no_folder if stat.S_ISREG(there.st_mode) else no_link)(path)
        raise error


def make_folder(parent: Entry, path: StoragePath, actor: str, permission: int) -> bool:
    """Make a folder in a folder; False where something of that name is there."""
    parent.permit(actor, WRITE)
    try:
        os.mkdir(path.name, 0o700, dir_fd=parent.descriptor)
    except FileExistsError:
        return False
    made = os.open(path.name, _STEP, dir_fd=parent.descriptor)
    try:
        # mkdir's own would have the umask taken away
        os.chmod(f"/proc/self/fd/{made}", permission)  # noqa: PTH101 - by descriptor
    finally:
        os.close(made)
    return True


def is_plain(status: os.stat_result) -> bool:
    """Return whether it is a file or a folder, not a link, a pipe or a device."""
    return stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)


def permits(tree: Tree | None, status: os.stat_result, actor: str, wanted: int) -> bool:
    """Return whether a permission lets `actor` do what is wanted; the service may do everything.

    As who may enter a user's or group's tree stands for its owner, the owner's bits count there, elsewhere
    those of all others. This is looked at here because a service that runs as root is refused nothing.
    """
    if not actor or tree is None:
        return True
    bits = status.st_mode >> 6 if tree.owner or tree.group else status.st_mode
    return not wanted & ~bits


def not_permitted(path: StoragePath, status: os.stat_result, wanted: int) -> StorageError:
    """Return the error that says that a permission does not allow what was wanted."""
    values = {"path": str(path), "permission": f"{status.st_mode & 0o777:03o}"}
    if wanted & WRITE:
        refused = msg(
            "{path} has the permission {permission}, so it cannot be changed: give it another first.",
            **values,
        )
    else:
        refused = msg(
            "{path} has the permission {permission}, so it cannot be read: give it another first.", **values
        )
    return StorageError(Problem.DENIED, refused)


def describe(path: StoragePath, status: os.stat_result, children: int = 0) -> FileStatus:
    """Put what the operating system knows into the storage's words. The owner is the tree's."""
    tree = tree_of(path)
    if is_folder := stat.S_ISDIR(status.st_mode):
        length, replication, block_size = 0, 0, 0
    else:
        length, replication, block_size = status.st_size, 1, BLOCK_SIZE
    return FileStatus(
        path=path,
        is_folder=is_folder,
        length=length,
        modified=status.st_mtime_ns // 1_000_000,
        accessed=status.st_atime_ns // 1_000_000,
        permission=status.st_mode & 0o777,
        owner=(tree.owner if tree else "") or SERVICE,
        group=(tree.group if tree else "") or SERVICE,
        children=children,
        replication=replication,
        block_size=block_size,
        file_id=status.st_ino,
    )


# Moves a name between folders in one step, and never over something that nobody meant to replace.

_RENAME_NOREPLACE = 1

_renameat2: Callable[..., int] | None = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def place(from_folder: int, from_name: str, to_folder: int, to_name: str, *, overwrite: bool) -> None:
    """Move a name; without `overwrite` only to where nothing is. OSError."""
    if overwrite:
        os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)
    else:
        move_new(from_folder, from_name, to_folder, to_name)


def move_new(from_folder: int, from_name: str, to_folder: int, to_name: str) -> None:
    """Move to where nothing is; FileExistsError, without a moment in between, where something is.

    The folders are given by their descriptors. OSError as of renameat2(2).
    """
    number = errno.ENOSYS
    if _renameat2 is not None:
        names = os.fsencode(from_name), os.fsencode(to_name)
        if _renameat2(from_folder, names[0], to_folder, names[1], _RENAME_NOREPLACE) == 0:
            return
        number = ctypes.get_errno()
    # not every file system can do it (NFS cannot): those say so with EINVAL
    if number not in (errno.ENOSYS, errno.EINVAL):
        raise OSError(number, os.strerror(number), to_name)
    move_new_by_link(from_folder, from_name, to_folder, to_name)


def move_new_by_link(from_folder: int, from_name: str, to_folder: int, to_name: str) -> None:
    """Move to where nothing is, on a file system that has no renameat2(2).

    A folder, which cannot be linked, may take the place of an empty one that is made at the same moment.
    """
    if not stat.S_ISDIR(os.lstat(from_name, dir_fd=from_folder).st_mode):
        os.link(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder, follow_symlinks=False)
        os.unlink(from_name, dir_fd=from_folder)
        return
    try:
        os.lstat(to_name, dir_fd=to_folder)
    except FileNotFoundError:
        os.rename(from_name, to_name, src_dir_fd=from_folder, dst_dir_fd=to_folder)
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), to_name)
