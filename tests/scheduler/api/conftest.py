"""WebHDFS for tests: in front of a folder, and in front of a real HDFS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.protocol import Storage
from tests.scheduler.api.gateway import Gateway, empty, open_gateway


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncIterator[Gateway]:
    """Serve a folder."""
    async with open_gateway(tmp_path, FolderStorage(tmp_path / "files")) as gateway:
        yield gateway


@pytest.fixture(params=["folder", "apache"])
async def any_gateway(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Gateway]:
    """Serve a folder, then an HDFS."""
    storage: Storage = FolderStorage(tmp_path / "files")
    if request.param == "apache":
        from pai_scheduler.storage.hdfs.storage import HdfsStorage
        from tests.testbed.hdfs import ACCOUNT

        server = request.getfixturevalue("hdfs")
        storage = HdfsStorage(server.urls, ACCOUNT)
    async with open_gateway(tmp_path, storage) as gateway:
        await empty(storage)
        yield gateway
