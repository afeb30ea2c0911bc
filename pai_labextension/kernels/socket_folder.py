"""Folders for a kernel's sockets: they go with their owner, or at the next start where that was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

_PREFIX = "pai-channels-"
#: Locked for as long as its owner lives; whoever else can lock it knows that there is no owner any more.
_LOCK = "owner"


class SocketFolder:
    """A folder that only this account can enter, below the machine's folder for what is temporary."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        unlocked = self.path / f"{_LOCK}.part"
        self._lock = os.open(unlocked, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        # locked from the moment at which it has its name
        unlocked.rename(self.path / _LOCK)

    def close(self) -> None:
        """Remove it; a second time does nothing."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)


def remove_left_folders() -> None:
    """Remove the folders of this account whose owners have ended without a word."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        # another one is busy with it, or the disk does not let us: it is tried at the next start
        with suppress(OSError):
            if _is_own(folder) and _has_no_owner(folder):
                shutil.rmtree(folder)


def _is_own(folder: Path) -> bool:
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()


def _has_no_owner(folder: Path) -> bool:
    lock = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
