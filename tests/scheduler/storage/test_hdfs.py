"""A real HDFS as the users' storage: what every storage does, and what only this one can get wrong."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pai_scheduler.storage.hdfs import HdfsStorage
from tests.testbed.hdfs import ACCOUNT, Hdfs

from .conformance import StorageConformance


@pytest.fixture
async def storage(hdfs: Hdfs) -> AsyncIterator[HdfsStorage]:
    opened = HdfsStorage([hdfs.url], ACCOUNT)
    await opened.start()
    yield opened
    await opened.close()


class TestConformance(StorageConformance):
    """An HDFS does what every storage does."""
