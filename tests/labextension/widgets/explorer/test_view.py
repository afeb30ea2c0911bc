"""The explorer with a real storage: go about, put in order, delete after asking, and say what is wrong."""

from __future__ import annotations

import pytest

from pai_labextension.widgets import FileExplorer
from pai_labextension.widgets.explorer import view as view_module
from pai_labextension.widgets.explorer.view import ExplorerView
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage import client as webhdfs_client
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.widgets.explorer.conftest import names_in, press, shown, tick, visible
from tests.labextension.widgets.waiting import until


async def test_it_begins_in_the_persons_own_folder_and_says_that_it_is_empty(view: ExplorerView) -> None:
    await until(lambda: view.table.empty.value == "This folder is empty.")
    assert view.path == "/alice"
    assert view.download.disabled
    assert view.rename.disabled
    assert view.delete.disabled


async def test_folders_are_entered_and_left_by_the_way_above_the_table(
    view: ExplorerView, files: FilesClient
) -> None:
    await files.write("/alice/data/训练 1/a.txt", b"a")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "data")
    press(view, "data")
    await shown(view, "训练 1")
    press(view, "训练 1")
    await shown(view, "a.txt")
    assert view.path == "/alice/data/训练 1"
    view.crumbs.children[2].click()
    await shown(view, "训练 1")
    view.crumbs.children[0].click()
    await until(lambda: "alice" in names_in(view))
    assert "bob" not in names_in(view), "others' folders are not there"
    view.home.click()
    await shown(view, "data")


async def test_what_is_chosen_is_named_as_a_job_names_it(view: ExplorerView, files: FilesClient) -> None:
    await files.write("/alice/数据 1.csv", b"1")
    await until(lambda: view.path)
    assert ">$PAI_DEFAULT_FS_URI/alice<" in view.facts.value
    view.look_again()
    await shown(view, "数据 1.csv")
    tick(view, "数据 1.csv")
    assert "$PAI_DEFAULT_FS_URI/alice/%E6%95%B0%E6%8D%AE%201.csv<" in view.facts.value


async def test_the_browsers_own_download_is_a_link_through_the_notebook_server(
    view: ExplorerView, files: FilesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/alice/")
    await files.write("/alice/a b.txt", b"1")
    await files.mkdirs("/alice/folder")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "folder", "a b.txt")
    tick(view, "a b.txt")
    address = "/user/alice/pai/webhdfs/v1/alice/a%20b.txt?op=OPEN"
    assert f'<a href="{address}" download="a b.txt">' in view.facts.value
    tick(view, "folder")
    assert "<a " not in view.facts.value
    assert "Chosen: 2" in view.facts.value
    view.table.rows[1].tick.value = False
    assert "folder?op=ARCHIVE" in view.facts.value


async def test_a_folder_is_made_and_renamed(view: ExplorerView, files: FilesClient) -> None:
    await until(lambda: view.path)
    view.new.click()
    view.name.entry.value = "a/b"
    view.name.accept.click()
    assert "slash" in view.name.problem.value
    view.name.entry.value = "new"
    view.name.accept.click()
    await shown(view, "new")
    tick(view, "new")
    view.rename.click()
    assert view.name.entry.value == "new"
    view.name.entry.value = "better"
    view.name.accept.click()
    await shown(view, "better")
    assert not visible(view.name)
    assert (await files.status("/alice/better")).is_folder


async def test_renaming_never_replaces_or_moves_into_what_is_there(
    view: ExplorerView, files: FilesClient
) -> None:
    await files.write("/alice/a.txt", b"a")
    await files.mkdirs("/alice/b")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "b", "a.txt")
    tick(view, "a.txt")
    view.rename.click()
    view.name.entry.value = "b"
    view.name.accept.click()
    await until(lambda: "is there already" in view.refusal.value)
    assert [entry.path async for entry in files.walk("/alice")] == ["/alice/a.txt", "/alice/b"]


async def test_deleting_asks_first_and_says_how_much_it_is(view: ExplorerView, files: FilesClient) -> None:
    await files.write("/alice/tree/inner/a.bin", bytes(1500))
    await files.write("/alice/tree/b.bin", bytes(500))
    await files.write("/alice/keep.txt", b"k")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "tree", "keep.txt")
    tick(view, "tree")
    view.delete.click()
    await until(lambda: "Delete tree for good? Files: 2, 2.0 kB." in view.confirm.question.value)
    view.confirm.no.click()
    assert names_in(view) == ["tree", "keep.txt"]
    view.delete.click()
    await until(lambda: visible(view.confirm))
    view.confirm.yes.click()
    await shown(view, "keep.txt")
    assert await files.find("/alice/tree") is None


async def test_a_refusal_is_told_in_the_persons_language(client: Client) -> None:
    explorer = FileExplorer("/bob/secret", client, "zh_CN")
    try:
        await until(lambda: explorer.view.unread.value)
        assert "alice" in explorer.view.unread.value
        assert "用户 alice" in explorer.view.unread.value
        assert explorer.view.table.empty.value == "", "what cannot be read is not empty"
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


async def test_a_large_folder_is_read_in_pages_and_only_a_part_is_shown(
    view: ExplorerView, files: FilesClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_client.FilesClient.list_page, "__defaults__", ("", 20))
    for number in range(70):
        await files.mkdirs(f"/alice/many/{number:03}")
    await until(lambda: view.path)
    view.go("/alice/many")
    await until(lambda: view.table.count.value == "1 to 25 of 70")
    view.table.after.click()
    view.table.after.click()
    assert view.table.count.value == "51 to 70 of 70"
    assert names_in(view)[-1] == "069"
    assert view.table.after.disabled
    view.table.find.value = "00"
    assert names_in(view) == [f"00{number}" for number in range(10)]
    monkeypatch.setattr(view_module, "MOST", 40)
    view.look_again()
    await until(lambda: "the first 40 are shown" in view.unread.value)


async def test_what_is_ticked_stays_ticked_on_other_pages_and_after_a_look(
    view: ExplorerView, files: FilesClient
) -> None:
    for number in range(30):
        await files.mkdirs(f"/alice/many/{number:03}")
    await until(lambda: view.path)
    view.go("/alice/many")
    await until(lambda: view.table.count.value == "1 to 25 of 30")
    view.table.all.value = True
    view.table.after.click()
    assert view.table.all.value is False
    tick(view, "029")
    assert len(view.table.chosen) == 26
    await files.delete("/alice/many/029")
    view.look_again()
    await until(lambda: len(view.table.chosen) == 25)


async def test_a_file_is_looked_into_and_nothing_of_it_becomes_html(
    view: ExplorerView, files: FilesClient
) -> None:
    await files.write("/alice/bad.csv", b"name,<b>weight</b>\n<script>alert(1)</script>,2\n")
    await files.write("/alice/empty.txt", b"")
    await files.write("/alice/raw.bin", b"\0\1\2")
    await until(lambda: view.path)
    view.look_again()
    await shown(view, "bad.csv", "empty.txt", "raw.bin")
    press(view, "bad.csv")
    await until(lambda: "<td>&lt;script&gt;alert(1)&lt;/script&gt;</td>" in view.preview.text.value)
    assert "<script" not in view.preview.text.value
    assert "<b>" not in view.preview.text.value
    press(view, "empty.txt")
    await until(lambda: "This file is empty." in view.preview.text.value)
    press(view, "raw.bin")
    await until(lambda: "no text and no picture" in view.preview.text.value)
    view.preview.close_button.click()
    assert not visible(view.preview)
