"""Task folders made ahead: no start waits for the ten files that a task has, each of which may take 0.5 ms.

Blocking: the engine calls it in its threads.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import threading
from collections import deque
from pathlib import Path

from pai_scheduler.engine.logs.writer import TaskLogWriter

from .task_folder import TaskFolder


class SpareFolders:
    """Keeps up to `count` of them below `path`, on the disk of the tasks' folders."""

    def __init__(self, path: Path, count: int) -> None:
        self._path, self._count = path, count
        self._ready: deque[Path] = deque()
        self._numbers = itertools.count()
        self._filling = threading.Lock()

    def open(self) -> None:
        """Begin with none, whatever a service that ran before has left; OSError."""
        shutil.rmtree(self._path, ignore_errors=True)
        self._path.mkdir(mode=0o700, exist_ok=True)

    def give(self, folder: Path) -> None:
        """Make one of them a task's `folder`, if that is not there; nothing happens where there is none."""
        if not self._ready or os.path.lexists(folder):
            return
        with contextlib.suppress(
            IndexError, OSError
        ):  # another thread has the last; another service wiped it
            self._ready.popleft().rename(folder)

    def fill(self) -> None:
        """Make as many as there should be, as far as the disk has room."""
        if not self._filling.acquire(blocking=False):  # somebody is at it
            return
        try:
            while len(self._ready) < self._count:
                # (that of another service on this data folder has another name)
                made = self._path / f"{os.getpid()}-{id(self)}-{next(self._numbers)}"
                _make(TaskFolder(made))
                self._ready.append(made)
        except OSError:
            shutil.rmtree(made, ignore_errors=True)
        finally:
            self._filling.release()


def _make(folder: TaskFolder) -> None:
    folder.path.mkdir()
    if (lock := folder.lock()) is not None:
        os.close(lock)
    folder.make_ahead()
    TaskLogWriter(folder.log).close()
