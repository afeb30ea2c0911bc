"""Files go up from the notebook server's disk and come down to it, with progress and questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_labextension.widgets.explorer.view import ExplorerView
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.widgets.explorer.conftest import shown, visible, write_tree
from tests.labextension.widgets.waiting import until


async def test_a_folder_goes_up_and_the_second_time_nothing_is_sent(
    view: ExplorerView, files: FilesClient, tmp_path: Path
) -> None:
    tree = write_tree(tmp_path / "tree", a_txt="a", inner__b_txt="bb")
    await until(lambda: view.path)
    panel = view.transfers
    panel.local.value = str(tree)
    panel.put.click()
    await shown(view, "tree")
    assert "Uploaded to /alice/tree (files: 2, 3 B)" in panel.outcome.value
    panel.put.click()
    await until(lambda: visible(panel.confirm))
    assert "Replace what differs in it?" in panel.question.value
    panel.yes.click()
    await until(lambda: "the same already: 2" in panel.outcome.value)
    assert not visible(panel.bar)
    assert not visible(panel.confirm)
    async with files.read("/alice/tree/inner/b.txt") as pieces:
        assert b"".join([piece async for piece in pieces]) == b"bb"


async def test_what_is_chosen_comes_down_and_replaces_nothing_unasked(
    view: ExplorerView, files: FilesClient, tmp_path: Path
) -> None:
    await files.write("/alice/results/epoch/1.txt", b"new")
    await until(lambda: view.path)
    panel = view.transfers
    assert panel.fetch.disabled
    view.look_again()
    await shown(view, "results")
    view.choose("results")
    panel.local.value = str(tmp_path)
    own = write_tree(tmp_path, results__epoch__1_txt="own, older") / "results" / "epoch" / "1.txt"
    panel.fetch.click()
    await until(lambda: visible(panel.confirm))
    assert "results is there already" in panel.question.value
    assert own.read_text() == "own, older"
    panel.no.click()
    assert not visible(panel.confirm)
    panel.fetch.click()
    await until(lambda: visible(panel.confirm))
    panel.yes.click()
    await until(lambda: "Downloaded to" in panel.outcome.value)
    assert own.read_text() == "new"


async def test_a_question_is_answered_the_moment_it_is_asked(
    view: ExplorerView, files: FilesClient, tmp_path: Path
) -> None:
    await files.write("/alice/a.txt", b"new")
    await until(lambda: view.path)
    panel = view.transfers
    view.look_again()
    await shown(view, "a.txt")
    view.choose("a.txt")
    panel.local.value = str(tmp_path)
    (tmp_path / "a.txt").write_text("own, older")
    panel.confirm.layout.observe(lambda _: panel.yes.click() if visible(panel.confirm) else None, "display")
    panel.fetch.click()
    await until(lambda: "Downloaded to" in panel.outcome.value)
    assert (tmp_path / "a.txt").read_text() == "new"


async def test_without_a_folder_a_download_goes_where_the_notebook_is(
    view: ExplorerView, files: FilesClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    await files.write("/alice/a.txt", b"a")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "a.txt")
    view.choose("a.txt")
    view.transfers.fetch.click()
    await until(lambda: f"Downloaded to {tmp_path}/a.txt" in view.transfers.outcome.value)
    assert (tmp_path / "a.txt").read_text() == "a"


async def test_what_is_not_there_is_said(view: ExplorerView, tmp_path: Path) -> None:
    await until(lambda: view.path)
    panel = view.transfers
    panel.put.click()
    assert "Say which file or folder to upload." in panel.outcome.value
    panel.local.value = str(tmp_path / "nothing")
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
    panel.local.value = str(tmp_path / "a.txt")
    panel.put.click()
    async with asyncio.timeout(20):
        await endless.wait()
    assert visible(panel.bar)
    endless.clear()
    panel.put.click()
    panel.bar.cancel.click()
    await until(lambda: "Broken off" in panel.outcome.value)
    assert not endless.is_set()
    assert await files.find("/alice/a.txt") is None
