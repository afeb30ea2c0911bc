"""The list of the storage with a real one: go about, choose, be led to JupyterLab, and hear what is wrong."""

from __future__ import annotations

import pytest

from pai_labextension.widgets import FileExplorer
from pai_labextension.widgets.explorer import view as view_module
from pai_labextension.widgets.explorer.view import ExplorerView
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage import client as webhdfs_client
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.widgets.explorer.conftest import enter, shown, visible
from tests.labextension.widgets.waiting import until


async def test_it_begins_in_the_persons_own_folder_and_says_that_it_is_empty(view: ExplorerView) -> None:
    await until(lambda: view.hint.value == "This folder is empty.")
    assert view.path == view.place.value == "/alice"
    assert view.enter.disabled


async def test_folders_are_entered_and_left(view: ExplorerView, files: FilesClient) -> None:
    await files.write("/alice/data/训练 1/a.txt", b"a")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "data")
    enter(view, "data")
    await shown(view, "训练 1")
    assert view.enter.disabled, "what was chosen was in another folder"
    enter(view, "训练 1")
    await shown(view, "a.txt")
    view.choose("a.txt")
    assert view.enter.disabled, "a file cannot be gone into"
    assert view.path == "/alice/data/训练 1"
    view.up.click()
    await shown(view, "训练 1")
    view.place.value = "/"
    await until(lambda: "alice" in view.names)
    assert "bob" not in view.names, "others' folders are not there"
    view.home.click()
    await shown(view, "data")
    view.place.value = "no/path"
    assert "no path of the storage" in view.unread.value


async def test_folders_come_first_and_capitals_do_not_count(view: ExplorerView, files: FilesClient) -> None:
    for name in ("b.txt", "A.txt", "c.py"):
        await files.write(f"/alice/{name}", b"12345")
    await files.mkdirs("/alice/z")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "z", "A.txt", "b.txt", "c.py")
    assert view.entries.options[:2] == ("z/", "A.txt · 5 B")
    view.choose("b.txt")
    view.find.value = " TXT "
    assert view.names == ["A.txt", "b.txt"]
    assert view.chosen is not None
    assert view.chosen.name == "b.txt", "it stays chosen"
    view.find.value = "nothing"
    assert view.names == []
    assert view.chosen is None
    assert "nothing" in view.hint.value


async def test_what_is_chosen_is_named_as_a_job_names_it(view: ExplorerView, files: FilesClient) -> None:
    await files.write("/alice/数据 <1>.csv", b"1")
    await until(lambda: view.path)
    assert ">$PAI_DEFAULT_FS_URI/alice<" in view.facts.value
    view.look_again()
    await shown(view, "数据 <1>.csv")
    view.choose("数据 <1>.csv")
    assert "$PAI_DEFAULT_FS_URI/alice/%E6%95%B0%E6%8D%AE%20%3C1%3E.csv<" in view.facts.value


async def test_jupyterlabs_browser_and_downloads_are_links_through_the_notebook_server(
    view: ExplorerView, files: FilesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await until(lambda: view.path)
    assert "<a " not in view.facts.value, "no server is known"
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/alice/")
    await files.write("/alice/a b.txt", b"1")
    await files.mkdirs("/alice/folder")
    view.look_again()
    await shown(view, "folder", "a b.txt")
    lab = "/user/alice/lab?pai-storage=/alice"
    assert f'<a href="{lab}" target="_blank" data-pai-storage="/alice">' in view.facts.value
    view.choose("a b.txt")
    assert 'data-pai-storage="/alice/a b.txt"' in view.facts.value
    address = "/user/alice/pai/webhdfs/v1/alice/a%20b.txt?op=OPEN"
    assert f'<a href="{address}" download="a b.txt">' in view.facts.value
    view.choose("folder")
    assert "folder?op=ARCHIVE" in view.facts.value


async def test_a_refusal_is_told_in_the_persons_language(client: Client) -> None:
    explorer = FileExplorer("/bob/secret", client, "zh_CN")
    try:
        await until(lambda: explorer.view.unread.value)
        assert "用户 alice" in explorer.view.unread.value
        assert not visible(explorer.view.hint), "what cannot be read is not empty"
        explorer.view.home.click()
        await until(lambda: explorer.view.path == "/alice" and not explorer.view.unread.value)
    finally:
        explorer.close()


async def test_a_scheduler_that_does_not_answer_is_named_and_asked_again() -> None:
    async with Client("http://127.0.0.1:9", "token") as nobody:
        explorer = FileExplorer(client=nobody, locale="en")
        try:
            await until(lambda: "does not answer" in explorer.view.unread.value)
            assert explorer.outcome.value == "", "it is no fault of the widget"
            explorer.view.again.click()
            await until(lambda: "does not answer" in explorer.view.unread.value)
        finally:
            explorer.close()


async def test_of_a_large_folder_a_part_is_listed_and_all_of_it_is_looked_through(
    view: ExplorerView, files: FilesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_client.FilesClient.list_page, "__defaults__", ("", 20))
    monkeypatch.setattr(view_module, "SHOWN", 25)
    for number in range(70):
        await files.mkdirs(f"/alice/many/{number:03}")
    await until(lambda: view.path)
    view.go("/alice/many")
    await until(lambda: view.hint.value == "1 to 25 of 70")
    assert len(view.names) == 25
    view.find.value = "06"
    assert view.names == ["006", *(f"06{number}" for number in range(10))]
    assert not visible(view.hint)
    monkeypatch.setattr(view_module, "MOST", 40)
    view.look_again()
    await until(lambda: "the first 40 are shown" in view.unread.value)


async def test_what_is_chosen_stays_chosen_after_a_look_until_it_is_gone(
    view: ExplorerView, files: FilesClient
) -> None:
    for name in ("a", "b"):
        await files.mkdirs(f"/alice/{name}")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "a", "b")
    view.choose("b")
    await files.delete("/alice/a")
    view.look_again()
    await shown(view, "b")
    assert view.chosen is not None
    await files.delete("/alice/b")
    view.look_again()
    await shown(view)
    assert view.chosen is None
