"""A real kernel that is killed: whether that was for its memory is judged when it ends."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_events import EventLogger
from jupyter_server.services.kernels.kernelmanager import AsyncMappingKernelManager
from traitlets.config import Config

from pai_labextension.session.memory import KernelMemory, OwnMemory

PATIENCE = 60.0
ACTIONS = "https://events.jupyter.org/jupyter_server/kernel_actions/v1"


class Played:
    """What control groups would say: that they end a process cannot be ordered."""

    def __init__(self) -> None:
        self.killed: int | None = 2

    def read(self) -> OwnMemory:
        return {"limitMB": 256, "killed": self.killed}


class Kernel:
    """A kernel of a server, which starts again when it has ended."""

    def __init__(self, manager: AsyncMappingKernelManager, kernel_id: str) -> None:
        self.manager, self.id = manager, kernel_id

    async def end(self, number: signal.Signals) -> None:
        """Send a signal; return when the kernel has started again."""
        again = asyncio.Event()

        async def listen(logger: EventLogger, schema_id: str, data: dict[str, Any]) -> None:  # noqa: ARG001 - the form of listeners
            if data["action"] == "restart":
                again.set()

        kernel: Any = self.manager.get_kernel(self.id)
        kernel.event_logger.add_listener(schema_id=ACTIONS, listener=listen)
        os.kill(kernel.provisioner.process.pid, number)
        await asyncio.wait_for(again.wait(), PATIENCE)


@pytest.fixture
def played() -> Played:
    return Played()


@pytest.fixture
async def manager(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[AsyncMappingKernelManager]:
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path))
    # it looks each three seconds whether a kernel is there
    often = Config({"KernelRestarter": {"time_to_dead": 0.1}})
    manager = AsyncMappingKernelManager(config=often, root_dir=str(tmp_path), connection_dir=str(tmp_path))
    yield manager
    await manager.shutdown_all()


@pytest.fixture
async def memory(manager: AsyncMappingKernelManager, played: Played) -> KernelMemory:
    return KernelMemory(manager, played.read)


async def started(manager: AsyncMappingKernelManager, memory: KernelMemory) -> Kernel:
    kernel_id = await manager.start_kernel()
    await memory.on_action(EventLogger(), "", {"action": "start", "kernel_id": kernel_id})
    return Kernel(manager, kernel_id)


async def test_a_kernel_that_was_killed_while_the_memory_cost_a_process_was_lost_for_it(
    manager: AsyncMappingKernelManager, memory: KernelMemory, played: Played
) -> None:
    kernel = await started(manager, memory)
    assert not memory.lost(kernel.id)
    played.killed = 3
    await kernel.end(signal.SIGKILL)
    assert memory.lost(kernel.id)
    assert memory.limit_mb == 256


@pytest.mark.parametrize(
    ("number", "killed"), [(signal.SIGKILL, 2), (signal.SIGABRT, 3), (signal.SIGKILL, None)]
)
async def test_a_kernel_that_ended_otherwise_was_not(
    manager: AsyncMappingKernelManager,
    memory: KernelMemory,
    played: Played,
    number: signal.Signals,
    killed: int | None,
) -> None:
    kernel = await started(manager, memory)
    played.killed = killed
    await kernel.end(number)
    assert not memory.lost(kernel.id)
