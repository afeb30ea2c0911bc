"""The explorer in a real JupyterLab: names are no HTML, paths are copied, the browser downloads by itself."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.conftest import ARTEFACTS, LAB_TOKEN
from tests.testbed.scheduler import RunningScheduler

HOSTILE = "<img src=x onerror=document.title='broken'>.txt"
CELL = "from pai_labextension import FileExplorer\nFileExplorer()"


@pytest.fixture
def scheduler(real_scheduler: RunningScheduler) -> RunningScheduler:
    """Ask a scheduler itself, in place of the door."""
    return real_scheduler


@pytest.fixture
def token() -> str:
    return "token-of-alice"


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


async def test_a_person_goes_in_looks_copies_and_downloads(
    page: Page, lab: str, scheduler: RunningScheduler, tmp_path: Path
) -> None:
    content = bytes(range(256)) * 5000
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        await files.write(f"/alice/data/{HOSTILE}", b"<script>document.title = 'broken'</script>")
        await files.write("/alice/data/模型 1.bin", content)
    await open_explorer(page, lab, tmp_path / "home")
    explorer = page.locator(".pai-explorer")
    await explorer.get_by_text("data", exact=True).click()
    await explorer.get_by_text(HOSTILE, exact=True).click()
    await expect(explorer.locator("pre.pai-preview")).to_have_text(
        "<script>document.title = 'broken'</script>"
    )
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=ARTEFACTS / "explorer.png")
    await explorer.get_by_title("选择 模型 1.bin").check()
    link = explorer.get_by_text("保存到自己的电脑")
    await expect(link).to_be_visible()
    await page.context.grant_permissions(["clipboard-read"])
    await explorer.get_by_title("复制").click()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == "$PAI_DEFAULT_FS_URI/alice/data/%E6%A8%A1%E5%9E%8B%201.bin"
    async with page.expect_download() as waiting:
        await link.click()
    download = await waiting.value
    assert download.suggested_filename == "模型 1.bin"
    assert Path(await download.path()).read_bytes() == content
    assert await page.title() != "broken"
    assert LAB_TOKEN not in await explorer.inner_html()
