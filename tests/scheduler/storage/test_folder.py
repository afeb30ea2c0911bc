"""A folder as the users' storage: what every storage does, and what only a folder must look out for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.storage.folder import FolderStorage

from .conformance import StorageConformance


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[FolderStorage]:
    # a name that must be encoded in a URI
    storage = FolderStorage(tmp_path / "the storage 100%")
    await storage.start()
    yield storage
    await storage.close()


class TestFolderStorage(StorageConformance):
    """A folder does what every storage does."""
