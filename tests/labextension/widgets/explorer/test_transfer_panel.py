"""Files go up from the notebook server's disk or the browser, and come down, with progress and questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pai_labextension.widgets.explorer.view import ExplorerView
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.widgets.explorer.conftest import shown, tick, visible, write_tree
from tests.labextension.widgets.waiting import until


async def test_a_folder_goes_up_and_the_second_time_nothing_is_sent(
    view: ExplorerView, files: FilesClient, tmp_path: Path
) -> None:
    tree = write_tree(tmp_path / "tree", a_txt="a", inner__b_txt="bb")
    await until(lambda: view.path)
    view.upload.click()
    panel = view.transfers
    panel.source.value = str(tree)
    panel.put.click()
    await shown(view, "tree")
    assert "Uploaded to /alice/tree (files: 2, 3 B)" in panel.outcome.value
    panel.put.click()
    await until(lambda: "Replace what differs in it?" in panel.confirm.question.value)
    panel.confirm.yes.click()
    await until(lambda: "the same already: 2" in panel.outcome.value)
    assert not visible(panel.bar)
    assert not panel.put.disabled
    async with files.read("/alice/tree/inner/b.txt") as pieces:
        assert b"".join([piece async for piece in pieces]) == b"bb"


async def test_what_is_chosen_comes_down_and_replaces_nothing_unasked(
    view: ExplorerView, files: FilesClient, tmp_path: Path
) -> None:
    await files.write("/alice/results/epoch/1.txt", b"new")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "results")
    tick(view, "results")
    view.download.click()
    panel = view.transfers
    panel.target.value = str(tmp_path)
    own = write_tree(tmp_path, results__epoch__1_txt="own, older") / "results" / "epoch" / "1.txt"
    panel.fetch.click()
    await until(lambda: "There already: results. Replace what differs?" in panel.confirm.question.value)
    assert own.read_text() == "own, older"
    panel.confirm.yes.click()
    await until(lambda: "Downloaded to" in panel.outcome.value)
    assert own.read_text() == "new"


async def test_small_files_of_the_browser_keep_their_time(view: ExplorerView, files: FilesClient) -> None:
    moment = datetime(2026, 3, 1, 12, 30, 0, 250_000, tzinfo=UTC)
    await until(lambda: view.path)
    view.transfers.small.value = (
        {
            "name": "图 1.txt",
            "type": "text/plain",
            "size": 2,
            "content": memoryview(b"hi"),
            "last_modified": moment,
        },
    )
    await shown(view, "图 1.txt")
    assert view.transfers.small.value == ()
    info = await files.status("/alice/图 1.txt")
    assert (info.length, info.modified) == (2, int(moment.timestamp() * 1000))


async def test_what_is_not_there_is_said(view: ExplorerView, tmp_path: Path) -> None:
    await until(lambda: view.path)
    panel = view.transfers
    panel.put.click()
    assert "Say which file or folder to upload." in panel.outcome.value
    panel.source.value = str(tmp_path / "nothing")
    panel.put.click()
    await until(lambda: "cannot be read" in panel.outcome.value)


@pytest.fixture
async def endless(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Event]:
    """Have uploads wait in the middle; tells when one does."""
    reached, write = asyncio.Event(), FilesClient.write

    async def slow(*_arguments: object, **_options: object) -> None:
        reached.set()
        await asyncio.sleep(3600)

    monkeypatch.setattr(FilesClient, "write", slow)
    yield reached
    monkeypatch.setattr(FilesClient, "write", write)


async def test_a_transfer_is_broken_off_and_no_second_one_begins_beside_it(
    view: ExplorerView, files: FilesClient, tmp_path: Path, endless: asyncio.Event
) -> None:
    write_tree(tmp_path, a_txt="a")
    await until(lambda: view.path)
    panel = view.transfers
    panel.source.value = str(tmp_path / "a.txt")
    panel.put.click()
    async with asyncio.timeout(20):
        await endless.wait()
    assert visible(panel.bar)
    assert panel.put.disabled
    panel.bar.cancel.click()
    await until(lambda: "Broken off" in panel.outcome.value)
    await until(lambda: not panel.put.disabled)
    assert await files.find("/alice/a.txt") is None
