"""Watcher of growing logs (inotify), for those who follow them.

Whoever writes a log writes its index last, on this machine: a supervisor, or the scheduler itself for what
containers and other nodes write. So the newest segment's index is watched for writing, and the folder for new
segments. A watch tells once and is gone: a flood costs no more than its reader asks for.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from inotify_simple import INotify, flags

from .reader import TaskLog
from .segment import places

_log = logging.getLogger(__name__)

_WRITTEN = flags.MODIFY | flags.ONESHOT
_ENTERED = flags.CREATE | flags.MOVED_TO | flags.ONESHOT | flags.ONLYDIR


class LogGrowth:
    """Knows for the whole program which logs are followed; to be used in the event loop only."""

    def __init__(self) -> None:
        self._inotify: INotify | None = None
        #: whom a watch of the kernel wakes
        self._woken: dict[int, set[asyncio.Event]] = {}

    async def start(self) -> None:
        """Ask the kernel for its events; where it has none to give, `Follower.arm` says so."""
        try:
            # (the library looks for libc by starting a program)
            inotify = await asyncio.to_thread(INotify, nonblocking=True)
        except OSError as error:
            _log.warning("the kernel cannot tell when logs grow, they are looked at in turns: %s", error)
            return
        self._inotify = inotify
        asyncio.get_running_loop().add_reader(inotify.fileno(), self._hear)

    def close(self) -> None:
        """Hear no more; wakes all who wait."""
        if self._inotify is None:
            return
        asyncio.get_running_loop().remove_reader(self._inotify.fileno())
        self._inotify.close()
        self._inotify = None
        self._wake_all()

    @contextmanager
    def following(self, log: TaskLog, news: asyncio.Event) -> Iterator[Follower]:
        """Have `news` set when a log may have grown, whenever the follower was armed for that."""
        follower = Follower(self, log, news)
        try:
            yield follower
        finally:
            self._dismiss(news)

    @property
    def watches(self) -> int:
        """Return how many files and folders the kernel watches for us."""
        return len(self._woken)

    def watch(self, log: TaskLog, news: asyncio.Event) -> bool:
        """Have `news` set at the next change of a log; False where the kernel has no watch to spare."""
        if self._inotify is None:
            return False
        try:
            self._watch(self._inotify, log.folder, news)
        except OSError as error:
            _log.warning("the kernel does not watch a log, it is looked at in turns: %s", error)
            return False
        return True

    def _watch(self, inotify: INotify, folder: Path, news: asyncio.Event) -> None:
        if not self._add(inotify, folder, _ENTERED, news):
            # it is told when its folder comes; what came meanwhile is there by now
            self._add_parent(inotify, folder, news)
            return
        # the segments after the folder is watched: one that comes later is told of
        with contextlib.suppress(FileNotFoundError):
            segment = places(folder)[-1].folder(folder)
            if segment != folder:
                self._add(inotify, segment, _ENTERED, news)
            self._add(inotify, segment / "index", _WRITTEN, news)

    def _add_parent(self, inotify: INotify, folder: Path, news: asyncio.Event) -> None:
        """Watch the deepest folder above a missing one."""
        for parent in folder.parents:
            if self._add(inotify, parent, _ENTERED, news):
                if (parent / folder.relative_to(parent).parts[0]).exists():  # it came just before
                    news.set()
                return

    def _add(self, inotify: INotify, path: Path, mask: int, news: asyncio.Event) -> bool:
        try:
            watch = inotify.add_watch(path, mask)
        except (FileNotFoundError, NotADirectoryError):
            return False
        self._woken.setdefault(watch, set()).add(news)
        return True

    def _dismiss(self, news: asyncio.Event) -> None:
        for watch, woken in list(self._woken.items()):
            woken.discard(news)
            if not woken:
                del self._woken[watch]
                if self._inotify is not None:
                    with contextlib.suppress(OSError):  # it has just told, and is gone
                        self._inotify.rm_watch(watch)

    def _hear(self) -> None:
        if self._inotify is None:
            return
        for event in self._inotify.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                self._wake_all()
            for news in self._woken.pop(event.wd, ()):
                news.set()

    def _wake_all(self) -> None:
        for woken in self._woken.values():
            for news in woken:
                news.set()


class Follower:
    """One who follows a log: arms it, reads, and waits for `news` before doing both again."""

    def __init__(self, growth: LogGrowth, log: TaskLog, news: asyncio.Event) -> None:
        self._growth, self._log, self.news = growth, log, news

    def arm(self) -> bool:
        """Forget what was told; what is written from now on is told of. False: look for it."""
        self.news.clear()
        return self._growth.watch(self._log, self.news)
