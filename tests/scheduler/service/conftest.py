"""A house for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.scheduler.service.house import House, open_house


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    """Run a scheduler whose tasks can be entered."""
    async with open_house(tmp_path) as house:
        yield house
