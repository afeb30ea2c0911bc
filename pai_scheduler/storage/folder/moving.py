"""Moves a name between folders in one step, and never over something that nobody meant to replace."""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from collections.abc import Callable

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
