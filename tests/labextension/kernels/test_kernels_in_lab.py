"""Kernels that are jobs in a real JupyterLab: chosen in the launcher, waiting, told of their end."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, StartLab
from tests.labextension.kernels.conftest import stop_all
from tests.testbed import cells
from tests.testbed.lab import SharedLab
from tests.testbed.warm import WarmScheduler

pytestmark = pytest.mark.real_scheduler

CARD = "Python 3 on 1 × P100 (simulated)"


@pytest.fixture(scope="module")
def lab_server(start_lab: StartLab, gpu_lab: WarmScheduler) -> SharedLab:
    """Run a JupyterLab that asks the scheduler of all kernels' tests."""
    return start_lab(scheduler=gpu_lab)


async def test_a_notebook_on_a_gpu_waits_for_it_runs_and_is_told_why_it_ended(
    page: Page, holder: Client, alice: Client
) -> None:
    card = page.locator(".jp-LauncherCard[data-category='Notebook']", has_text="P100")
    await expect(card).to_have_count(1)
    await page.screenshot(path=ARTEFACTS / "kernel-launcher.png")
    await card.click()
    banner = page.get_by_role("status").filter(has_text="asks for 1 × P100, none is free")
    await expect(banner).to_be_visible()
    await expect(banner.get_by_role("button", name="Cancel")).to_be_in_viewport()
    await cells.run(cells.a_cell(page), "print('on a GPU')")
    prompt = page.locator(".jp-InputPrompt", has_text="[*]:")
    await expect(prompt).to_be_visible()
    # who has thought better of it is not left waiting
    await page.locator("[data-command='notebook:interrupt-kernel']").click()
    await expect(prompt).to_have_count(0)
    await cells.run(cells.a_cell(page), "print('on a GPU')")
    await expect(prompt).to_be_visible()
    await page.screenshot(path=ARTEFACTS / "kernel-waits.png")

    await stop_all(holder, "bob")
    await expect(page.locator(".jp-OutputArea-output", has_text="on a GPU")).to_have_count(1)
    await expect(banner).to_be_hidden()
    await page.screenshot(path=ARTEFACTS / "kernel-runs.png")

    await stop_all(alice, "alice")
    ended = page.get_by_role("status").filter(has_text="The job of this kernel was stopped.")
    await expect(ended).to_be_visible()
    await page.screenshot(path=ARTEFACTS / "kernel-ended.png")
    await ended.get_by_role("button", name="Start again").click()
    await expect(ended).to_be_hidden()
    await cells.run(cells.a_cell(page, 1), "print('another one')")
    await expect(page.locator(".jp-OutputArea-output", has_text="another one")).to_be_visible()
