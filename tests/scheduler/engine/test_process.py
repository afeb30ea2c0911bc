"""The process engine: what every engine does, and what only supervised processes can do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.process import ProcessEngine

from .conformance import EngineConformance, Reopen


@pytest.fixture
async def reopen(tmp_path: Path) -> AsyncIterator[Reopen]:
    engines: list[ProcessEngine] = []

    async def open_engine() -> ProcessEngine:
        engines.append(ProcessEngine(tmp_path / "data", rescan_seconds=0.2))
        await engines[-1].start()
        return engines[-1]

    yield open_engine
    for engine in engines:
        await engine.close()


@pytest.fixture
async def engine(reopen: Reopen) -> ProcessEngine:
    opened = await reopen()
    assert isinstance(opened, ProcessEngine)
    return opened


@pytest.fixture
def image() -> str:
    return "any/image:will-do"


class TestProcessEngine(EngineConformance):
    """The conformance suite."""
