"""What the widget tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.testing.scheduler import FakeScheduler


@pytest.fixture
async def peer() -> AsyncIterator[FakeScheduler]:
    """A scheduler on the network that does what the test says."""
    async with FakeScheduler() as peer:
        yield peer


@pytest.fixture
def fixtures() -> Path:
    """Return the folder of the documents' files."""
    return Path(__file__).parents[2] / "fixtures"
