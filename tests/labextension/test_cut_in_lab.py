"""The connection of a real JupyterLab is cut, and comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, job_rows
from tests.testbed.scheduler import RunningScheduler, hello_job

SENTENCE = "Your notebook server does not answer. Your jobs go on; this page asks again by itself."


pytestmark = pytest.mark.real_scheduler


async def dismiss(dialog: Locator) -> None:
    await dialog.get_by_role("button").last.click()


async def test_a_cut_connection_is_said_in_a_sentence_and_all_goes_on_by_itself(
    page: Page, scheduler: RunningScheduler, tmp_path: Path
) -> None:
    # (JupyterLab's own, where there is no Hub)
    lost = page.locator(".jp-Dialog", has_text="Server Connection Error")
    await page.add_locator_handler(lost, dismiss)
    go = tmp_path / "go"
    async with Client(scheduler.url, "token-of-alice") as alice:
        command = f"echo before; while [ ! -e {go} ]; do sleep 0.2; done; echo meanwhile; sleep 3600"
        await alice.submit(hello_job("cut", command))
    await page.get_by_role("button", name="PAI: 1 running").click()
    await job_rows(page).filter(has_text="cut").get_by_text("cut", exact=True).click()
    job = page.locator(".pai-Job")
    await expect(job).to_contain_text("before")

    await page.context.set_offline(True)
    go.touch()
    await expect(page.locator(".pai-Sidebar")).to_contain_text(SENTENCE)
    await expect(job).to_contain_text(SENTENCE)
    await page.screenshot(path=ARTEFACTS / "cut.png")
    await expect(page.get_by_text("Failed to fetch")).to_have_count(0)
    await expect(page.locator(".Toastify__toast")).to_have_count(0)

    await page.context.set_offline(False)
    await expect(job).to_contain_text("meanwhile")
    await expect(page.get_by_text(SENTENCE)).to_have_count(0)
