"""A scheduler of their own for the tests of the documentation."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import WarmScheduler


@pytest.fixture(scope="session")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run a scheduler on the process engine."""
    running = WarmScheduler(tmp_path_factory.mktemp("documented"))
    yield running
    running.close()


@pytest.fixture
async def alice(documented: RunningScheduler) -> AsyncIterator[Client]:
    """Be alice, an ordinary user."""
    async with Client(documented.url, "token-of-alice") as client:
        yield client
