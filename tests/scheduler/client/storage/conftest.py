"""The storage of a real scheduler, as alice has it: a folder of her own for each test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.client.storage.client import FilesClient
from tests.testbed.scheduler import RunningScheduler


@pytest.fixture
async def files(scheduler: RunningScheduler) -> AsyncIterator[FilesClient]:
    """Be alice."""
    async with FilesClient(scheduler.url, "token-of-alice") as client:
        yield client


@pytest.fixture
async def home(files: FilesClient, request: pytest.FixtureRequest) -> str:
    """Return a folder of alice's that no other test has."""
    path = f"/alice/{request.node.name[:60]}-{id(request.node):x}"
    await files.mkdirs(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of this machine."""
    made = tmp_path / "here"
    made.mkdir()
    return made
