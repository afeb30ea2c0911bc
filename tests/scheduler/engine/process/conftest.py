"""A process engine for each test."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.engine.process.engine import ProcessEngine
from pai_scheduler.testing.engine import Reopen
from pai_scheduler.testing.lab import Lab
from pai_scheduler.testing.ssh_tasks import server_files

ROOT = Path(__file__).parents[3]
PYTHON = sys.executable


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
async def reopen(data_dir: Path) -> AsyncIterator[Reopen]:
    engines: list[ProcessEngine] = []

    async def open_engine() -> ProcessEngine:
        engines.append(ProcessEngine(data_dir, ssh_files=server_files, rescan_seconds=0.2))
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


@pytest.fixture
async def lab(engine: ProcessEngine, image: str) -> AsyncIterator[Lab]:
    lab = await Lab.over(engine, image)
    yield lab
    await lab.clean()


@pytest.fixture(params=["with cgroups", "without cgroups"])
def cgroups_or_none(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test twice: as root, and as somebody to whom no cgroup was delegated."""
    if request.param == "without cgroups":
        monkeypatch.setattr(Cgroups, "find", lambda _owner: Cgroups(None, (), {}, "not for you"))


@pytest.fixture
def marker() -> str:
    """Return a number that stands in no other process's command line."""
    return str(uuid.uuid4().int)[:9]


@pytest.fixture
async def limited(engine: ProcessEngine) -> None:
    """Skip where tasks cannot be limited."""
    if engine.limits:
        reason = f"cgroups: {engine.limits}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
