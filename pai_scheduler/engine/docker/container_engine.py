"""What is the same for each engine whose tasks are containers: the logs on this disk, and what tasks see."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Container
from pathlib import Path

from pai_scheduler.engine.logs.cleanup import keep_clean
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.protocol import EngineEvent
from pai_scheduler.job.task import TaskRef

from .container import PRIVATE_DIR, WORK_DIR, code_dir


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
