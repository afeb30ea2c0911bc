"""Tells when one of Docker's files was written or got another name: the kernel tells us (inotify)."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass
from pathlib import Path

from inotify_simple import INotify, flags

_log = logging.getLogger(__name__)

_CHANGED = flags.MODIFY | flags.MOVE_SELF | flags.ONESHOT


@dataclass(frozen=True, slots=True)
class DockerFiles:
    """Where Docker keeps its own files of each container, which are open to us, and who tells of changes."""

    folder: Path
    news: FileNews

    def log_folder(self, container: str) -> Path:
        """Return where the driver `local` records a container's log."""
        return self.folder / container / "local-logs"


class FileNews:
    """Watches files for the whole engine; to be used in the event loop only."""

    def __init__(self) -> None:
        self._inotify: INotify | None = None
        #: whom a watch of the kernel wakes
        self._woken: dict[int, asyncio.Event] = {}

    async def start(self) -> None:
        """Ask the kernel for its events; where it has none to give, `watch` says so."""
        try:
            # (the library looks for libc by starting a program)
            inotify = await asyncio.to_thread(INotify, nonblocking=True)
        except OSError as error:
            _log.warning("the kernel cannot tell when containers write, Docker is asked: %s", error)
            return
        self._inotify = inotify
        asyncio.get_running_loop().add_reader(inotify.fileno(), self._hear)

    def close(self) -> None:
        """Hear no more."""
        if self._inotify is not None:
            asyncio.get_running_loop().remove_reader(self._inotify.fileno())
            self._inotify.close()
            self._inotify = None
            self._woken.clear()

    def watch(self, path: Path, news: asyncio.Event) -> bool:
        """Have `news` set at the next change of a file; False where the kernel does not watch it."""
        if self._inotify is None:
            return False
        try:
            self._woken[self._inotify.add_watch(path, _CHANGED)] = news
        except FileNotFoundError:  # just between two files of one log, or removed
            asyncio.get_running_loop().call_later(0.05, news.set)
        except OSError as error:
            _log.warning("the kernel does not watch a container's log, Docker is asked: %s", error)
            return False
        return True

    def dismiss(self, news: asyncio.Event) -> None:
        """Tell `news` no more."""
        for watch in [watch for watch, woken in self._woken.items() if woken is news]:
            del self._woken[watch]
            if self._inotify is not None:
                with contextlib.suppress(OSError):  # it has just told, and is gone
                    self._inotify.rm_watch(watch)

    def _hear(self) -> None:
        if self._inotify is None:
            return
        for event in self._inotify.read(timeout=0):
            if event.mask & flags.Q_OVERFLOW:
                for news in self._woken.values():
                    news.set()
            elif (told := self._woken.pop(event.wd, None)) is not None:
                told.set()
