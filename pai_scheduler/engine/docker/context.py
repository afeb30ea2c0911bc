"""Shared context of all tasks on one Docker Engine, and of engines whose tasks are containers."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable, Collection, Container
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pai_scheduler.engine.logs.cleanup import keep_clean
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.protocol import EngineEvent, Launch
from pai_scheduler.job.task import TaskRef

from .client import DockerApi
from .containers import PRIVATE_DIR, WORK_DIR, ContainerCreator, code_dir
from .debug_hold import Holds
from .images import Images
from .log_files import DockerFiles
from .runtime import Runtime
from .volumes import ContainerDisks

# What all tasks on one Docker Engine share, and what outlives this process about how they are to end.

_log = logging.getLogger(__name__)


class KillMark(Enum):
    """Reason for killing a task, where it does not end by itself, and the progress of that."""

    KILLED = "killed"
    DISK = "disk-full"
    #: beside `DISK`: it kept within its limit, and a disk of its machine itself was full
    NO_ROOM = "no-room"
    #: beside `KILLED`: it was told with SIGTERM, which it gets once whatever happens to this process
    TERMINATED = "terminated"


@dataclass(frozen=True)
class EngineContext:
    """Context shared by all tasks of an engine."""

    api: DockerApi
    images: Images
    maker: ContainerCreator
    holds: Holds
    runtime: Runtime
    disks: ContainerDisks
    data_dir: Path
    #: most bytes of one task's log
    log_bytes: int
    emit: Callable[[EngineEvent], None]
    #: where Docker keeps each container's own files, if that is open to us, and who tells of changes in them
    docker_files: DockerFiles | None
    #: called when a task's log has grown
    on_output: Callable[[TaskRef], None]
    #: whether the daemon is on this machine, and so can mount its folders
    is_local: bool = True

    def remember(self, kill_mark: KillMark, task: TaskRef) -> int:
        """Make durable that a task is to end and must not be started any more; return the time (ms)."""
        mark = self._mark(kill_mark, task)
        try:
            mark.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                mark.touch(exist_ok=False)
            return mark.stat().st_mtime_ns // 10**6
        except OSError as error:  # a full disk must not keep anything from its end
            _log.warning("that %s is to end cannot be written down: %s", task.name, error)
            return time.time_ns() // 10**6

    def fated_at(self, kill_mark: KillMark, task: TaskRef) -> int | None:
        """Return when (ms) a task was first to end so; None where it was not."""
        try:
            return self._mark(kill_mark, task).stat().st_mtime_ns // 10**6
        except FileNotFoundError:
            return None

    def keep_private(self, launch: Launch) -> Path | None:
        """Write down a task's own small files, for its container to mount; None where it could not."""
        if not self.is_local:
            return None
        folder = self._private(launch.task)
        # (nobody else on this machine comes in; in the container the image's user must)
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o755)
        for name, content in launch.files.items():
            (folder / name).unlink(missing_ok=True)
            (folder / name).write_bytes(content)
            (folder / name).chmod(0o444)
        return folder

    def forget(self, task: TaskRef) -> None:
        """Remove what was remembered of a task, and its own small files."""
        shutil.rmtree(self._private(task), ignore_errors=True)
        for kill_mark in KillMark:
            self._mark(kill_mark, task).unlink(missing_ok=True)
        self.holds.forget(task)

    def forget_all_but(self, tasks: Collection[TaskRef]) -> None:
        """Remove what was remembered of tasks whose release a kill of the service came before."""
        folders = (
            *(self.data_dir / kill_mark.value for kill_mark in KillMark),
            self.holds.folder,
            self._private_folders,
        )
        kept = {task.name for task in tasks}
        for path in (path for folder in folders if folder.exists() for path in list(folder.iterdir())):
            # (beside its pipe a held task has files with endings of their own)
            name = path.name.removesuffix(".held").removesuffix(".new")
            if name not in kept and (task := TaskRef.parse(name)) is not None:
                self.forget(task)

    @property
    def _private_folders(self) -> Path:
        return self.data_dir / "private"

    def _private(self, task: TaskRef) -> Path:
        return self._private_folders / task.name

    def _mark(self, kill_mark: KillMark, task: TaskRef) -> Path:
        return self.data_dir / kill_mark.value / task.name


# What is the same for each engine whose tasks are containers: the logs on this disk, and what tasks see.


class ContainerEngine:
    """Keeps logs (or their copies, of tasks on other machines) in `data_dir`; part of `Engine`.

    Its events are what is put into `_queue`; None: it is closed.
    """

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._queue: asyncio.Queue[EngineEvent | None] = asyncio.Queue()

    async def events(self) -> AsyncIterator[EngineEvent]:
        """Return events as they come, until the engine is closed."""
        while (event := await self._queue.get()) is not None:
            yield event

    def log(self, task: TaskRef) -> TaskLog:
        """Return a task's log."""
        return TaskLog(self._data_dir / "logs" / task.name)

    async def forget(self, task: TaskRef) -> None:
        """Remove an ended task's log."""
        await asyncio.to_thread(shutil.rmtree, self.log(task).folder, ignore_errors=True)

    def work_dir(self, task: TaskRef) -> str:  # noqa: ARG002
        """Return the folder in which a task's command starts, as seen from inside its container."""
        return WORK_DIR

    def private_dir(self, task: TaskRef) -> str:  # noqa: ARG002
        """Return the folder of a task's own files, as seen from inside its container."""
        return PRIVATE_DIR

    def code_dir(self, code: Path) -> str:
        """Return the place of a job's code, as seen from inside the containers."""
        return code_dir(code)

    async def _keep_logs(self, days: float, known: Container[TaskRef]) -> None:
        """Remove, for as long as it is open, logs that are older than that; not those of tasks it knows."""

        def in_use(name: str) -> bool:
            task = TaskRef.parse(name)
            return task is None or task in known

        folder = self._data_dir / "logs"
        folder.mkdir(parents=True, exist_ok=True)
        await keep_clean(folder, days, in_use)
