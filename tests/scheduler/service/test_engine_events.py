"""What an engine tells becomes events of the scheduler, in its time; one that falls silent is noticed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from pai_scheduler.cluster.definition import Definition
from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.core.events import Event, NodesChanged, Progress
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.engine.protocol import EngineEvent
from pai_scheduler.i18n import msg
from pai_scheduler.job.task import TaskRef
from pai_scheduler.service.current_cluster import CurrentCluster
from pai_scheduler.service.service import EngineEvents
from tests.scheduler.machine import HOUR, MS, NOON, Machine
from tests.scheduler.making import make_node


class Parts(ProcessEngine):
    """An engine that tells what a test gives it, and whom it is told to."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.told: asyncio.Queue[EngineEvent | Exception] = asyncio.Queue()
        self.reported: asyncio.Queue[Event] = asyncio.Queue()
        self.noted: Sequence[Node] = ()
        self.cluster = CurrentCluster(Definition(), self, 20_000, lambda: 0)
        self.machine = Machine()
        self.clock = self.machine.clock()
        self.subject = EngineEvents(self, self.cluster, self, self, self.clock)  # type: ignore[arg-type]

    async def events(self) -> AsyncIterator[EngineEvent]:
        while True:
            event = await self.told.get()
            if isinstance(event, Exception):
                raise event
            yield event

    def report(self, event: Event) -> None:
        self.reported.put_nowait(event)

    def note_nodes(self, nodes: Sequence[Node]) -> None:
        self.noted = nodes


@pytest.fixture
async def parts(tmp_path: Path) -> AsyncIterator[Parts]:
    parts = Parts(tmp_path)
    yield parts
    await parts.subject.close()


async def test_nodes_that_change_are_told_to_all_who_look_at_them(parts: Parts) -> None:
    parts.subject.start()
    nodes = (make_node("a"), make_node("b", state=NodeState.LOST))
    parts.told.put_nowait(NodesChanged(0, nodes))
    assert await parts.reported.get() == NodesChanged(NOON, nodes)
    assert parts.cluster.nodes == parts.noted == nodes


async def test_what_becomes_of_a_task_is_told_in_the_schedulers_time(parts: Parts) -> None:
    parts.subject.start()
    parts.machine.is_set(HOUR)
    event = Progress(TaskRef("j", 0, "main", 0), NOON + HOUR, msg("{x}", x=1))
    parts.told.put_nowait(event)
    assert (await parts.reported.get()).time == NOON


async def test_what_the_machines_clock_told_is_as_long_ago_in_the_schedulers_time(parts: Parts) -> None:
    parts.subject.start()
    parts.machine.is_set(HOUR)
    told = parts.machine.wall // MS
    parts.machine.passes(3000)
    parts.told.put_nowait(Progress(TaskRef("j", 0, "main", 0), told, msg("{x}", x=1)))
    assert (await parts.reported.get()).time == pytest.approx(NOON, abs=31)
    parts.told.put_nowait(Progress(TaskRef("j", 0, "main", 0), parts.machine.wall // MS + 5, msg("{x}", x=1)))
    assert (await parts.reported.get()).time == parts.clock()


async def test_an_engine_that_tells_no_more_is_noticed(
    parts: Parts, caplog: pytest.LogCaptureFixture
) -> None:
    assert parts.subject.arrive is None
    parts.subject.start()
    assert parts.subject.arrive
    parts.told.put_nowait(RuntimeError("gone"))
    for _ in range(10):  # turns of the loop
        await asyncio.sleep(0)
    assert parts.subject.arrive is False
    assert "the engine tells no more what happens" in caplog.text
