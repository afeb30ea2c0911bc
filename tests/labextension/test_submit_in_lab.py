"""Submit with code from JupyterLab: what goes along is seen and chosen, then the job is listed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.conftest import ARTEFACTS, job_rows
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler


@pytest.fixture
def lab_folder(home: Path) -> Path:
    """What the file browser shows, with a job in it."""
    (home / "train.py").write_text("print(1)\n")
    (home / "params.yaml").write_text("rate: 0.1\n")
    (home / "couplet.pai.json").write_text(json.dumps(hello_job("couplet", "sleep 3600")))
    return home


@pytest.mark.usefixtures("lab_folder")
async def test_a_job_file_is_submitted_with_the_code_beside_it(
    page: Page, scheduler: RunningScheduler
) -> None:
    item = page.locator(".jp-DirListing-item", has_text="couplet.pai.json")
    await item.click(button="right")
    await page.get_by_role("menuitem", name="Submit to PAI with this folder’s code").click()
    dialog = page.get_by_role("dialog")
    listed = dialog.get_by_role("list", name="Files that go along")
    await expect(listed.get_by_role("listitem")).to_have_count(1)
    await expect(listed).to_contain_text("train.py")
    await expect(dialog).to_contain_text("to /alice/couplet")

    include = dialog.get_by_label("Files that go along (one pattern in a line)")
    await include.press("Control+End")
    await include.press("Enter")
    await include.press_sequentially("*.yaml")
    await expect(listed.get_by_role("listitem")).to_have_count(2)
    await page.screenshot(path=ARTEFACTS / "submit-with-code.png")
    await include.fill("*.none")
    await expect(dialog.get_by_role("alert")).to_contain_text("No file in")
    await include.fill("*.py\n*.yaml")
    await expect(listed.get_by_role("listitem")).to_have_count(2)
    await dialog.get_by_label("Append eight characters").check()
    await dialog.get_by_role("button", name="Submit").click()

    await expect(job_rows(page).filter(has_text="couplet_")).to_have_count(1)
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        there = [info.path.split("/", 2)[2] async for info in files.walk("/alice")]
    (folder,) = [name for name in there if "/" not in name]
    assert sorted(there) == [folder, f"{folder}/params.yaml", f"{folder}/train.py"]


# (test_lab.py starts JupyterLab in Chinese each time; that no sentence is missing is shown without a browser)
@pytest.mark.long
@pytest.mark.parametrize("locale", ["zh_CN"])
@pytest.mark.usefixtures("lab_folder", "scheduler")
async def test_submit_with_code_speaks_chinese(page: Page) -> None:
    await page.locator(".jp-DirListing-item", has_text="couplet.pai.json").click(button="right")
    await page.get_by_role("menuitem", name="连同此文件夹的代码提交到 PAI").click()
    await expect(page.get_by_role("dialog")).to_contain_text("上传到 /alice/couplet")
