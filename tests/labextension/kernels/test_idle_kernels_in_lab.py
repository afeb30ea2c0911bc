"""A kernel that is a job and that nobody uses, in a real JupyterLab: one click brings it back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS
from tests.testbed import cells
from tests.testbed.warm import WarmScheduler


@pytest.fixture
def scheduler(gpu_lab: WarmScheduler, tmp_path: Path) -> WarmScheduler:
    """In place of the played one; the notebook server lets its kernels be idle for 15 seconds."""
    config = tmp_path / "config" / "jupyter_server_config.json"
    config.parent.mkdir()
    config.write_text(json.dumps({"PAIKernels": {"idle_minutes": 0.25, "cpus": 1, "memory_mb": 1024}}))
    return gpu_lab


@pytest.fixture
def token() -> str:
    return "token-of-alice"


@pytest.mark.parametrize(
    ("locale", "ended", "again"),
    [
        ("en", "Nobody used this kernel for 1 minute: it has ended", "Start again"),
        ("zh_CN", "此内核已有 1 分钟无人使用：它已结束", "重新启动"),
    ],
    ids=["English", "Chinese"],
)
async def test_an_idle_kernel_says_that_it_has_ended_and_one_click_brings_it_back(
    page: Page, alice: Client, ended: str, again: str
) -> None:
    # (of two; the other one is a console's)
    await page.locator(".jp-LauncherCard", has_text="P100").first.click()
    gone = page.get_by_role("status").filter(has_text=ended)
    await expect(gone).to_be_visible()
    assert not [job for job in await alice.jobs("alice") if job["state"] == "RUNNING"]
    await page.screenshot(path=ARTEFACTS / "kernel-idle.png")
    await gone.get_by_role("button", name=again).click()
    await expect(gone).to_be_hidden()
    await cells.run(cells.a_cell(page), "print(6 * 7)")
    await expect(page.locator(".jp-OutputArea-output", has_text="42")).to_be_visible()
