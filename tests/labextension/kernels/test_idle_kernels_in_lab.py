"""A kernel that is a job and that nobody uses, in a real JupyterLab: one click brings it back."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, StartLab
from tests.testbed import cells
from tests.testbed.lab import SharedLab
from tests.testbed.warm import WarmScheduler

pytestmark = pytest.mark.real_scheduler


@pytest.fixture(scope="module")
def lab_server(start_lab: StartLab, gpu_lab: WarmScheduler) -> SharedLab:
    """Run a JupyterLab whose kernels may be idle for 15 seconds."""
    kernels = {"idle_minutes": 0.25, "cpus": 1, "memory_mb": 1024}
    return start_lab(scheduler=gpu_lab, config={"PAIKernels": kernels})


async def test_an_idle_kernel_says_that_it_has_ended_and_one_click_brings_it_back(
    page: Page, alice: Client
) -> None:
    # (of two; the other one is a console's)
    await page.locator(".jp-LauncherCard", has_text="P100").first.click()
    gone = page.get_by_role("status").filter(has_text="Nobody used this kernel for 1 minute: it has ended")
    await expect(gone).to_be_visible()
    assert not [job for job in await alice.jobs("alice") if job["state"] == "RUNNING"]
    await page.screenshot(path=ARTEFACTS / "kernel-idle.png")
    await gone.get_by_role("button", name="Start again").click()
    await expect(gone).to_be_hidden()
    await cells.run(cells.a_cell(page), "print(6 * 7)")
    await expect(page.locator(".jp-OutputArea-output", has_text="42")).to_be_visible()
