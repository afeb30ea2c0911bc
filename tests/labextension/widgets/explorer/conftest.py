"""A real scheduler with a storage, an explorer on it, and what a person does with that."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from pai_labextension.widgets import FileExplorer
from pai_labextension.widgets.explorer.view import ExplorerView
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.widgets.waiting import until
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import WarmScheduler


@pytest.fixture(scope="package")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    running = WarmScheduler(tmp_path_factory.mktemp("scheduler"))
    yield running
    running.close()


@pytest.fixture
async def files(scheduler: RunningScheduler) -> AsyncIterator[FilesClient]:
    """Alice's storage, with nothing in it."""
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        for entry in [entry async for entry in files.iterate("/alice")]:
            await files.delete(entry.path, recursive=True)
        yield files


@pytest.fixture
async def client(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


@pytest.fixture
async def view(client: Client, files: FilesClient) -> AsyncIterator[ExplorerView]:
    """An explorer of alice's own folder."""
    assert files.url == client.url
    explorer = FileExplorer(client=client, locale="en")
    yield explorer.view
    explorer.close()


async def shown(view: ExplorerView, *names: str) -> None:
    """Wait until just these are listed, in this order."""
    await until(lambda: view.names == list(names))


def enter(view: ExplorerView, name: str) -> None:
    """Choose a folder, and open it."""
    view.choose(name)
    view.enter.click()


def visible(widget: object) -> bool:
    """Return whether a widget is shown."""
    return bool(widget.layout.display != "none")  # type: ignore[attr-defined]


def write_tree(root: Path, **contents: str) -> Path:
    """Write files, `__` in a name being a slash and `_` a dot."""
    for name, content in contents.items():
        path = root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root
