"""Whether the scheduler can do its work, and why not."""

from __future__ import annotations

import asyncio

import pytest

from pai_scheduler.cluster.node import Node, NodeState
from pai_scheduler.i18n import Message, msg
from pai_scheduler.service import health as module
from pai_scheduler.service.health import Health, Readiness, Status
from pai_scheduler.store.database import StoreError, Trouble
from tests.scheduler.making import make_node


class Parts:
    """A database, an engine and nodes that fail when told to."""

    def __init__(self) -> None:
        self.arrive: bool | None = True
        self.nodes = [make_node("a"), make_node("b")]
        self.error: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = 0
        self.full: Message | None = None
        self.damage: str | None = None
        self.checked = True
        self.health = Health(self.check, self, self, self, self)

    def shortage(self) -> Message | None:
        return self.full

    async def check(self) -> None:
        self.asked += 1
        await self.gate.wait()
        if self.error is not None:
            raise self.error

    async def reasons(self) -> list[str]:
        readiness = await self.health.look()
        assert readiness.status is (Status.FAILING if readiness.reasons else Status.READY)
        return [str(reason) for reason in readiness.reasons]


@pytest.fixture
async def parts() -> Parts:
    return Parts()


def down(name: str) -> Node:
    return make_node(name, state=NodeState.LOST)


async def test_a_healthy_service_is_ready(parts: Parts) -> None:
    assert await parts.health.look() == Readiness(Status.READY)


async def test_before_everything_is_taken_up_it_is_starting(parts: Parts) -> None:
    parts.arrive = None
    assert (await parts.health.look()).status is Status.STARTING


async def test_one_machine_that_is_down_is_no_reason_all_are(parts: Parts) -> None:
    parts.nodes = [make_node("a"), down("b")]
    assert await parts.reasons() == []
    parts.nodes = [down("a"), down("b")]
    assert await parts.reasons() == ["The engine does not answer: all nodes are lost (a, b)."]


async def test_an_engine_that_tells_nothing_is_a_reason(parts: Parts) -> None:
    parts.arrive = False
    assert await parts.reasons() == ["The engine tells no more what happens. Start the scheduler again."]


async def test_a_database_that_takes_no_writes_is_a_reason_until_it_does(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEEP_SECONDS", 0.0)
    parts.error = StoreError("database or disk is full", Trouble.FULL)
    assert await parts.reasons() == ["The database takes no writes: database or disk is full."]
    parts.error = OSError("odd")
    assert await parts.reasons() == ["The database takes no writes: odd."]
    parts.error = None
    assert await parts.reasons() == []


async def test_several_reasons_are_all_said(parts: Parts) -> None:
    parts.error, parts.arrive, parts.nodes = StoreError("full", Trouble.FULL), False, [down("a")]
    assert len(await parts.reasons()) == 3


async def test_a_database_that_hangs_is_asked_once_however_often_somebody_looks(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.05)
    monkeypatch.setattr(module, "KEEP_SECONDS", 0.0)
    parts.gate.clear()
    for _ in range(3):
        assert await parts.reasons() == ["The database does not answer within 0.05 s."]
    assert parts.asked == 1
    parts.gate.set()
    assert await parts.reasons() == []


async def test_the_database_is_not_asked_at_every_look(parts: Parts) -> None:
    for _ in range(20):
        await parts.reasons()
    assert parts.asked == 1


async def test_a_disk_that_is_almost_full_is_said(parts: Parts) -> None:
    parts.full = msg("The disk is almost full.")
    assert await parts.reasons() == ["The disk is almost full."]


async def test_damage_of_the_database_is_a_reason_and_a_look_that_did_not_end_is_only_said(
    parts: Parts,
) -> None:
    parts.damage, parts.checked = "page 7 is torn", False
    readiness = await parts.health.look()
    assert readiness.status is Status.FAILING
    assert [("page 7 is torn" in str(reason)) for reason in readiness.reasons] == [True]
    parts.damage = None
    readiness = await parts.health.look()
    assert readiness.status is Status.READY
    assert "pai-scheduler check" in str(readiness.reasons[0])


async def test_a_database_that_cannot_be_reached_is_not_said_to_be_full(parts: Parts) -> None:
    parts.error = StoreError("connection refused")
    assert await parts.reasons() == [
        "The database cannot be reached, or not be written to: connection refused."
    ]
