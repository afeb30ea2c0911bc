"""The storage in a real JupyterLab with a real scheduler: browsed, filled, interrupted, downloaded."""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, Route, expect

from pai_scheduler.client.storage.client import FilesClient, FilesError
from tests.labextension.conftest import ARTEFACTS
from tests.testbed.scheduler import RunningScheduler

pytestmark = pytest.mark.real_scheduler

PIECE = 8 * 2**20


@pytest.fixture
async def files(scheduler: RunningScheduler) -> AsyncIterator[FilesClient]:
    async with FilesClient(scheduler.url, "token-of-alice") as client:
        yield client


async def opened(page: Page, name: str = "PAI storage") -> Locator:
    """Open the browser of the storage in the side bar; return it."""
    await page.get_by_role("tab", name=name).click()
    return page.get_by_role("region", name=name)


def row(storage: Locator, name: str) -> Locator:
    return storage.locator(".jp-DirListing-item").filter(has=storage.page.get_by_text(name, exact=True))


async def choose(page: Page, storage: Locator, button: str, *paths: Path) -> None:
    async with page.expect_file_chooser() as chooser:
        await storage.get_by_role("button", name=button, exact=True).click()
    await (await chooser.value).set_files([str(path) for path in paths])


async def contents(files: FilesClient, path: str) -> bytes:
    async with files.read(path) as pieces:
        return b"".join([piece async for piece in pieces])


async def menu(page: Page, item: Locator, entry: str) -> None:
    await item.click(button="right")
    await page.get_by_role("menuitem", name=entry).click()


async def test_a_folder_is_uploaded_renamed_downloaded_and_deleted(
    page: Page, files: FilesClient, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    (folder / "train").mkdir(parents=True)
    (folder / "labels.txt").write_text("猫\n狗\n")
    large = bytes(range(256)) * (3 * PIECE // 256) + b"end"
    (folder / "train" / "large.bin").write_bytes(large)
    storage = await opened(page)
    await expect(storage.get_by_text("Nothing is here yet")).to_be_visible()
    await choose(page, storage, "Upload a folder", folder)
    await expect(storage.get_by_role("status").filter(has_text="Uploaded: 2")).to_be_visible()
    await expect(row(storage, "data")).to_be_visible()
    there = {info.path: info async for info in files.walk("/alice")}
    assert set(there) == {
        "/alice/data",
        "/alice/data/labels.txt",
        "/alice/data/train",
        "/alice/data/train/large.bin",
    }
    assert there["/alice/data/train/large.bin"].modified == int(
        (folder / "train" / "large.bin").stat().st_mtime * 1000
    )
    assert await contents(files, "/alice/data/train/large.bin") == large

    # by keyboard, as in JupyterLab's own browser
    await row(storage, "data").click()
    await page.keyboard.press("F2")
    await page.keyboard.type("数据")
    await page.keyboard.press("Enter")
    await expect(row(storage, "数据")).to_be_visible()

    async with page.expect_download() as download:
        await menu(page, row(storage, "数据"), "Download as a zip file")
    got = await download.value
    assert got.suggested_filename == "数据.zip"
    archive = zipfile.ZipFile(io.BytesIO(Path(await got.path()).read_bytes()))
    assert archive.read("数据/train/large.bin") == large

    await row(storage, "数据").dblclick()
    await expect(row(storage, "labels.txt")).to_be_visible()
    async with page.expect_download() as download:
        await menu(page, row(storage, "labels.txt"), "Download")
    assert Path(await (await download.value).path()).read_text() == "猫\n狗\n"

    await row(storage, "train").click()
    await page.keyboard.press("Delete")
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("with everything in it")
    await expect(dialog).to_contain_text("Files: 1, 24.0 MiB.")
    await dialog.get_by_role("button", name="Delete").click()
    await expect(row(storage, "train")).to_have_count(0)
    assert [info.name async for info in files.walk("/alice/数据")] == ["labels.txt"]


async def test_an_upload_goes_on_where_its_connection_broke_also_after_a_reload(
    page: Page, files: FilesClient, tmp_path: Path
) -> None:
    large = tmp_path / "model.bin"
    large.write_bytes(hashlib.shake_256(b"model").digest(4 * PIECE + 12345))
    storage = await opened(page)
    appended: list[int] = []
    broken = True

    async def break_off(route: Route) -> None:
        appended.append(len(route.request.post_data_buffer or b""))
        if broken and len(appended) > 2:
            await route.abort("connectionreset")
        else:
            await route.continue_()

    await page.route("**/pai/webhdfs/**op=APPEND**", break_off)
    await choose(page, storage, "Upload files", large)
    # tried again and again; meanwhile nothing has the file's name, and what is there of it is not shown
    await expect(storage.get_by_role("progressbar", name="model.bin")).to_have_attribute(
        "value", str(2 * PIECE)
    )
    while len(appended) < 4:
        await page.wait_for_timeout(100)
    assert await files.find("/alice/model.bin") is None
    (part,) = [info async for info in files.walk("/alice")]
    assert (part.name.startswith(".model.bin."), part.length) == (True, 2 * PIECE)
    await storage.get_by_role("button", name="Refresh").click()
    await expect(storage.locator(".jp-DirListing-item")).to_have_count(0)
    await page.screenshot(path=ARTEFACTS / "storage-upload.png")

    page.on("dialog", lambda dialog: dialog.accept())
    await page.reload()
    storage = page.get_by_role("region", name="PAI storage")
    await expect(storage).to_be_visible()
    broken = False
    appended.clear()
    await choose(page, storage, "Upload files", large)
    await expect(row(storage, "model.bin")).to_be_visible()
    assert sum(appended) == 2 * PIECE + 12345
    assert await contents(files, "/alice/model.bin") == large.read_bytes()
    assert [info.name async for info in files.walk("/alice")] == ["model.bin"]


async def test_a_scheduler_that_was_away_is_found_again_by_an_upload(
    page: Page, files: FilesClient, scheduler: RunningScheduler, tmp_path: Path
) -> None:
    large = tmp_path / "model.bin"
    large.write_bytes(bytes(3 * PIECE))
    storage = await opened(page)
    await expect(storage.get_by_text("Nothing is here yet")).to_be_visible()
    appended = 0

    async def stop_once(route: Route) -> None:
        nonlocal appended
        appended += 1
        if appended == 2:
            scheduler.kill()
        await route.continue_()

    await page.route("**/pai/webhdfs/**op=APPEND**", stop_once)
    await choose(page, storage, "Upload files", large)
    while appended < 2:
        await page.wait_for_timeout(50)
    await storage.get_by_role("button", name="Refresh").click()
    await expect(storage.get_by_role("alert").filter(has_text="does not answer")).to_be_visible()
    scheduler.start()
    await expect(row(storage, "model.bin")).to_be_visible()
    assert (await files.status("/alice/model.bin")).length == 3 * PIECE


async def test_what_is_there_is_replaced_only_when_the_person_says_so_and_not_sent_twice(
    page: Page, files: FilesClient, tmp_path: Path
) -> None:
    await files.write("/alice/a.txt", b"old")
    local = tmp_path / "a.txt"
    local.write_text("new")
    storage = await opened(page)
    await expect(row(storage, "a.txt")).to_be_visible()
    dialog = page.get_by_role("dialog")
    await choose(page, storage, "Upload files", local)
    await dialog.get_by_role("button", name="Keep those").click()
    assert await contents(files, "/alice/a.txt") == b"old"
    await choose(page, storage, "Upload files", local)
    await dialog.get_by_role("button", name="Replace").click()
    await expect(storage.get_by_role("status").filter(has_text="Uploaded: 1")).to_be_visible()
    assert await contents(files, "/alice/a.txt") == b"new"
    written = []
    page.on("request", lambda request: written.append(request.url))
    await choose(page, storage, "Upload files", local)
    await expect(storage.get_by_role("status").filter(has_text="Uploaded: 1")).to_be_visible()
    assert written
    assert not [url for url in written if "op=CREATE" in url or "op=APPEND" in url]


async def test_ten_thousand_files_are_listed_without_standing_still(
    page: Page, scheduler: RunningScheduler, files: FilesClient
) -> None:
    await files.mkdirs("/alice/many")
    (folder,) = scheduler.data_dir.rglob("alice/many")
    for number in range(10_000):
        (folder / f"image-{number:05}.png").touch()
    storage = await opened(page)
    await expect(row(storage, "many")).to_be_visible()
    await page.evaluate(
        """window.blocked = [];
        const note = list => window.blocked.push(...list.getEntries().map(entry => entry.duration));
        new PerformanceObserver(note)
          .observe({type: 'longtask'})"""
    )
    await row(storage, "many").dblclick()
    pages = storage.get_by_role("navigation", name="Parts of this folder")
    await expect(pages).to_contain_text("1–400 of 10,000")
    await expect(row(storage, "image-00399.png")).to_have_count(1)
    assert await storage.locator(".jp-DirListing-item").count() == 400
    await pages.get_by_role("button", name="Those after").press("Enter")
    await expect(pages).to_contain_text("401–800 of 10,000")
    await expect(row(storage, "image-00400.png")).to_be_visible()

    await storage.get_by_role("button", name="Filter by name").click()
    await storage.locator(".jp-FilterBox input").fill("09999")
    await expect(row(storage, "image-09999.png")).to_be_visible()
    await expect(pages).to_have_count(0)
    # what was made here is on the page that is shown, wherever its name belongs
    await storage.locator(".jp-FilterBox input").fill("")
    await expect(pages).to_contain_text("of 10,000")
    await storage.locator(".jp-DirListing-headerItem", has_text="Name").click()
    await expect(row(storage, "image-09999.png")).to_be_visible()
    longest = max(await page.evaluate("window.blocked"), default=0)
    (ARTEFACTS / "storage-long-tasks.txt").write_text(f"longest task on the main thread: {longest:.0f} ms\n")
    await page.screenshot(path=ARTEFACTS / "storage-many.png")


async def test_an_upload_says_that_the_login_has_expired_and_goes_on_after_the_next_one(
    page: Page, tmp_path: Path
) -> None:
    (tmp_path / "model.bin").write_bytes(b"model")
    storage = await opened(page)

    async def forbid(route: Route) -> None:
        await route.fulfill(status=403, json={"message": "Forbidden"})

    for path in ("**op=CREATE**", "**/api/me**"):
        await page.route(path, forbid)
    await choose(page, storage, "Upload files", tmp_path / "model.bin")
    await expect(storage.get_by_role("alert")).to_contain_text("Your login has expired.")
    await page.screenshot(path=ARTEFACTS / "storage-login-expired.png")
    await page.unroute_all()
    await storage.get_by_role("button", name="Try again", exact=True).click()
    await expect(row(storage, "model.bin")).to_be_visible()


async def test_a_notebook_and_a_text_are_opened_from_the_storage_and_saved_back(
    page: Page, files: FilesClient
) -> None:
    await files.write("/alice/train.py", "print('你好')\n".encode())
    storage = await opened(page)
    await row(storage, "train.py").dblclick()
    editor = page.locator(".jp-FileEditor .cm-content")
    await expect(editor).to_contain_text("print('你好')")
    await editor.click()
    await page.keyboard.press("Control+End")
    await page.keyboard.type("print(1)")
    await expect(editor).to_contain_text("print(1)")
    await page.keyboard.press("Control+s")
    await expect(page.locator(".lm-TabBar-tab.jp-mod-dirty")).to_have_count(0)
    assert (await contents(files, "/alice/train.py")).decode() == "print('你好')\nprint(1)"


async def test_of_a_file_that_is_too_large_the_beginning_is_shown_or_all_of_it_downloaded(
    page: Page, files: FilesClient
) -> None:
    head = "数,<img src=x onerror=document.title='broken'>\n"
    content = (head + "1" * 21 * 2**20).encode()
    await files.write("/alice/large.csv", content)
    storage = await opened(page)
    await row(storage, "large.csv").dblclick()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("At most 20.0 MiB are opened in the browser")
    await dialog.get_by_role("button", name="Show its beginning").click()
    await expect(dialog).to_contain_text(head.strip() + "\n111")
    assert len(await dialog.inner_text()) < 70_000
    await dialog.get_by_role("button", name="Close").click()
    await row(storage, "large.csv").dblclick()
    async with page.expect_download() as download:
        await dialog.get_by_role("button", name="Download").click()
    assert Path(await (await download.value).path()).read_bytes() == content
    assert await page.title() != "broken"


async def test_a_person_who_has_gone_elsewhere_gets_back_to_their_own_files(
    page: Page, files: FilesClient
) -> None:
    await files.write("/alice/data/a.txt", b"a")
    storage = await opened(page)
    await row(storage, "data").dblclick()
    await expect(row(storage, "a.txt")).to_be_visible()
    await storage.get_by_role("button", name="My own files").click()
    await expect(row(storage, "data")).to_be_visible()


async def test_what_may_not_be_done_is_told_in_words(page: Page, files: FilesClient, tmp_path: Path) -> None:
    local = tmp_path / "a.txt"
    local.write_text("a")
    storage = await opened(page)
    await expect(storage.get_by_text("Nothing is here yet")).to_be_visible()
    await storage.locator(".jp-BreadCrumbs-home").click()
    await row(storage, "Public").dblclick()
    await expect(storage.get_by_text("Nothing is here yet")).to_be_visible()
    await choose(page, storage, "Upload files", local)
    await expect(storage.get_by_role("alert")).to_contain_text("User alice may not write to /Public/a.txt")
    await page.screenshot(path=ARTEFACTS / "storage-refused.png")
    with pytest.raises(FilesError):
        await files.status("/Public/a.txt")


# (test_lab.py starts JupyterLab in Chinese each time; that no sentence is missing is shown without a browser)
@pytest.mark.long
@pytest.mark.parametrize("locale", ["zh_CN"])
async def test_the_storage_speaks_chinese(page: Page, files: FilesClient, tmp_path: Path) -> None:
    await files.mkdirs("/alice/代码")
    await files.write("/alice/代码/train.py", b"print(1)")
    local = tmp_path / "a.txt"
    local.write_text("a")
    storage = await opened(page, "PAI 存储")
    await choose(page, storage, "上传文件", local)
    await expect(storage.get_by_role("status").filter(has_text="已上传：1 个文件")).to_be_visible()
    await menu(page, row(storage, "代码"), "属性")
    await expect(page.get_by_role("dialog")).to_contain_text("$PAI_DEFAULT_FS_URI/alice/%E4%BB%A3%E7%A0%81")
