from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pai_scheduler.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store.in_folder(tmp_path / "data")
    yield opened
    opened.close()
