"""What the widget tests share."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.labextension.widgets.peer import Peer, running_peer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A scheduler on the network that does what the test says."""
    async with running_peer() as peer:
        yield peer


@pytest.fixture
def fixtures() -> Path:
    """Return the folder of the documents' files."""
    return Path(__file__).parents[2] / "fixtures"
