"""An engine that starts and ends nothing unless it is certain that no other service leads."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from pathlib import Path

from pai_scheduler.cluster.node import DiskSpace, Node
from pai_scheduler.i18n import Message
from pai_scheduler.job.task import TaskRef

from .logs.reader import TaskLog
from .protocol import Engine, EngineEvent, Gang, Launch, SshEndpoint, Usage

_PAUSE_SECONDS = 0.1


class LeasedEngine:
    """Everything goes straight through to `engine`, but what changes something waits until `assured()`.

    A service that was frozen, or could not reach the database, may be overtaken without knowing it. Every
    call of `Engine` stands here, so that a new one cannot be forgotten: mypy asks for it.
    """

    def __init__(self, engine: Engine, assured: Callable[[], bool]) -> None:
        self._engine = engine
        self._assured = assured
        self.name = engine.name
        self.shares_host_ports = engine.shares_host_ports
        self.one_machine = engine.one_machine
        self.own_ssh_server = engine.own_ssh_server

    # ── what changes something

    async def adopt(self, expected: Mapping[TaskRef, str]) -> None:
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

    # ── what only looks

    @property
    def front_door_url(self) -> str | None:
        """See `Engine.front_door_url`."""
        return self._engine.front_door_url

    @property
    def storage_host(self) -> str | None:
        """See `Engine.storage_host`."""
        return self._engine.storage_host

    @property
    def bridge_address(self) -> str | None:
        """See `Engine.bridge_address`."""
        return self._engine.bridge_address

    async def start(self) -> None:
        """See `Engine.start`."""
        await self._engine.start()

    async def close(self) -> None:
        """See `Engine.close`."""
        await self._engine.close()

    async def nodes(self) -> Sequence[Node]:
        """See `Engine.nodes`."""
        return await self._engine.nodes()

    def disk(self, node: str) -> DiskSpace | None:
        """See `Engine.disk`."""
        return self._engine.disk(node)

    async def refuses_image(self, image: str) -> Message | None:
        """See `Engine.refuses_image`."""
        return await self._engine.refuses_image(image)

    async def taken_ports(self, gang: Gang, ports: Collection[int]) -> Collection[int]:
        """See `Engine.taken_ports`."""
        return await self._engine.taken_ports(gang, ports)

    async def disk_use(self) -> Mapping[TaskRef, int]:
        """See `Engine.disk_use`."""
        return await self._engine.disk_use()

    def events(self) -> AsyncIterator[EngineEvent]:
        """See `Engine.events`."""
        return self._engine.events()

    def work_dir(self, task: TaskRef) -> str:
        """See `Engine.work_dir`."""
        return self._engine.work_dir(task)

    def private_dir(self, task: TaskRef) -> str:
        """See `Engine.private_dir`."""
        return self._engine.private_dir(task)

    def code_dir(self, code: Path) -> str:
        """See `Engine.code_dir`."""
        return self._engine.code_dir(code)

    def log(self, task: TaskRef) -> TaskLog:
        """See `Engine.log`."""
        return self._engine.log(task)

    async def usage(self, task: TaskRef) -> Usage | None:
        """See `Engine.usage`."""
        return await self._engine.usage(task)

    async def reach(self, task: TaskRef, port: int) -> tuple[str, int] | None:
        """See `Engine.reach`."""
        return await self._engine.reach(task, port)

    async def ssh_endpoint(self, task: TaskRef) -> SshEndpoint:
        """See `Engine.ssh_endpoint`."""
        return await self._engine.ssh_endpoint(task)

    async def _certainty(self) -> None:
        # a thread's beat, and the time, make it true and false
        while not self._assured():  # noqa: ASYNC110
            await asyncio.sleep(_PAUSE_SECONDS)
