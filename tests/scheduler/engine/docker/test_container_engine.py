"""What all engines of containers keep of a task, and how they tell what happens."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

from pai_scheduler.engine.docker.context import ContainerEngine
from pai_scheduler.engine.protocol import EndCause, Ended
from pai_scheduler.job.task import TaskRef

TASK = TaskRef("job", 0, "main", 0)
OTHER = TaskRef("job", 0, "main", 1)


class Engine(ContainerEngine):
    """One that says what it is told to, and keeps logs clean."""

    def say(self, event: Ended | None) -> None:
        self._queue.put_nowait(event)

    def keep(self, days: float, known: set[TaskRef]) -> asyncio.Task[None]:
        return asyncio.create_task(self._keep_logs(days, known))


async def test_its_events_come_until_it_is_closed(tmp_path: Path) -> None:
    engine, event = Engine(tmp_path), Ended(TASK, 1, EndCause.EXITED, 0)
    engine.say(event)
    engine.say(None)
    assert [one async for one in engine.events()] == [event]


async def test_a_log_that_is_forgotten_is_gone(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    engine.log(TASK).folder.mkdir(parents=True)
    await engine.forget(TASK)
    await engine.forget(TASK)
    assert not engine.log(TASK).folder.exists()


async def test_old_logs_go_but_not_those_of_tasks_that_it_has(tmp_path: Path) -> None:
    engine = Engine(tmp_path)
    ago = time.time() - 3 * 86_400
    for task in (TASK, OTHER):
        engine.log(task).folder.mkdir(parents=True)
        os.utime(engine.log(task).folder, (ago, ago))
    keeping = engine.keep(2, {TASK})
    async with asyncio.timeout(30):
        while engine.log(OTHER).folder.exists():  # noqa: ASYNC110 (a thread removes it)
            await asyncio.sleep(0.01)
    keeping.cancel()
    assert engine.log(TASK).folder.exists()
