"""The explorer in a real JupyterLab: names are no HTML, files come down, links lead on."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.conftest import ARTEFACTS
from tests.testbed.lab import LAB_TOKEN
from tests.testbed.scheduler import RunningScheduler

pytestmark = pytest.mark.real_scheduler

HOSTILE = "<img src=x onerror=document.title='broken'>.txt"
CELL = "from pai_labextension import FileExplorer\nFileExplorer()"


@pytest.fixture
def locale() -> str:
    return "zh_CN"


async def open_explorer(page: Page, lab: str, home: Path) -> None:
    """Run a cell with an explorer in it."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(CELL)], metadata=kernel)
    nbformat.write(notebook, home / "explore.ipynb")
    await page.goto(lab.replace("/lab?", "/lab/tree/explore.ipynb?") + "&reset")
    # a cell that is run before the kernel is there may be passed over
    await expect(page.get_by_role("contentinfo").get_by_text("| 空闲")).to_be_visible()
    await page.locator(".jp-Notebook .jp-Cell .cm-content").first.click()
    await page.keyboard.press("Shift+Enter")
    await expect(page.locator(".pai-explorer")).to_be_visible()


async def test_a_person_goes_in_downloads_and_is_led_to_the_storages_browser(
    page: Page, lab: str, scheduler: RunningScheduler, home: Path
) -> None:
    content = bytes(range(256)) * 5000
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        await files.write(f"/alice/data/{HOSTILE}", b"<script>document.title = 'broken'</script>")
        await files.write("/alice/data/模型 1.bin", content)
    await open_explorer(page, lab, home)
    explorer = page.locator(".pai-explorer")
    entries = explorer.get_by_role("listbox")
    await entries.select_option("data/")
    await explorer.get_by_role("button", name="打开文件夹").click()
    await entries.select_option(f"{HOSTILE} · 42 B")
    await expect(explorer.locator(".pai-copyable")).to_contain_text("%3Cimg%20src%3Dx")
    await entries.select_option("模型 1.bin · 1.3 MB")
    await expect(explorer.locator(".pai-copyable")).to_have_text(
        "$PAI_DEFAULT_FS_URI/alice/data/%E6%A8%A1%E5%9E%8B%201.bin"
    )
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=ARTEFACTS / "explorer.png")
    async with page.expect_download() as waiting:
        await explorer.get_by_text("保存到自己的电脑").click()
    download = await waiting.value
    assert download.suggested_filename == "模型 1.bin"
    assert Path(await download.path()).read_bytes() == content
    await explorer.get_by_text("在 JupyterLab 的存储浏览器中打开").click()
    storage = page.get_by_role("region", name="PAI 存储")
    chosen = storage.locator(".jp-DirListing-item.jp-mod-selected")
    await expect(chosen).to_contain_text("模型 1.bin")
    assert len(page.context.pages) == 1
    assert await page.title() != "broken"
    assert LAB_TOKEN not in await explorer.inner_html()


async def test_the_links_address_opens_jupyterlab_with_the_folder(
    page: Page, lab: str, scheduler: RunningScheduler
) -> None:
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        await files.write("/alice/data/a.bin", b"1")
    await page.goto(f"{lab}&reset&pai-storage=/alice/data")
    storage = page.get_by_role("region", name="PAI 存储")
    await expect(storage.get_by_text("a.bin", exact=True)).to_be_visible()
