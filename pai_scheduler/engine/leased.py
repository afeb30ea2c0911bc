"""An engine that starts and ends nothing unless it is certain that no other service leads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Any

from pai_scheduler.job.task import TaskRef

from .protocol import Engine, Gang, Launch

_PAUSE_SECONDS = 0.1


class LeasedEngine:
    """Everything goes straight through to `engine`, but what changes something waits until `assured()`.

    A service that was frozen, or could not reach the database, may be overtaken without knowing it.
    """

    def __init__(self, engine: Engine, assured: Callable[[], bool]) -> None:
        self._engine = engine
        self._assured = assured

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def adopt(self, expected: Collection[TaskRef]) -> None:
        """See `Engine.adopt`."""
        await self._certainty()
        await self._engine.adopt(expected)

    async def prepare(self, gang: Gang) -> Mapping[TaskRef, str]:
        """See `Engine.prepare`."""
        await self._certainty()
        return await self._engine.prepare(gang)

    async def launch(self, launch: Launch) -> None:
        """See `Engine.launch`."""
        await self._certainty()
        await self._engine.launch(launch)

    async def kill(self, task: TaskRef, grace_seconds: float) -> None:
        """See `Engine.kill`."""
        await self._certainty()
        await self._engine.kill(task, grace_seconds)

    async def end_for_room(self, task: TaskRef) -> None:
        """See `Engine.end_for_room`."""
        await self._certainty()
        await self._engine.end_for_room(task)

    async def release(self, gang: Gang) -> None:
        """See `Engine.release`."""
        await self._certainty()
        await self._engine.release(gang)

    async def forget(self, task: TaskRef) -> None:
        """See `Engine.forget`."""
        await self._certainty()
        await self._engine.forget(task)

    async def _certainty(self) -> None:
        # a thread's beat, and the time, make it true and false
        while not self._assured():  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE_SECONDS)
