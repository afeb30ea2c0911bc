"""What all tasks on one Docker Engine share, and what outlives this process about how they are to end."""

from __future__ import annotations

import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from pai_scheduler.engine.protocol import EngineEvent, Launch
from pai_scheduler.job.task import TaskRef

from .connection import DockerApi
from .create import ContainerCreator
from .disk import ContainerDisks
from .file_news import DockerFiles
from .hold import Holds
from .images import Images
from .runtime import Runtime

_log = logging.getLogger(__name__)


class KillMark(Enum):
    """Why a task is ended, where it is not its own doing, and how far that has come."""

    KILLED = "killed"
    DISK = "disk-full"
    #: beside `DISK`: it kept within its limit, and a disk of its machine itself was full
    NO_ROOM = "no-room"
    #: beside `KILLED`: it was told with SIGTERM, which it gets once whatever happens to this process
    TERMINATED = "terminated"


@dataclass(frozen=True)
class EngineContext:
    """What all tasks of an engine share."""

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
