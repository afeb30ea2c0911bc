"""Every test of the store runs on both databases; what one of them alone does has a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pai_scheduler.store.store import Store

OpenStore = Callable[[], Store]


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the address of an empty database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'test.sqlite'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


@pytest.fixture
def open_store(database_url: str) -> Iterator[OpenStore]:
    """Open one database as often as one likes."""
    opened: list[Store] = []

    def open_one() -> Store:
        opened.append(Store(database_url))
        return opened[-1]

    yield open_one
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: OpenStore) -> Store:
    return open_store()
