"""The documents' Jupyter job behind one click: a notebook opens in a real browser, its kernel computes."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.async_api import Page, async_playwright, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, BROWSER_TOKEN
from tests.testbed.browser import CHROMIUM_FLAGS
from tests.testbed.classic import jupyter_notebook
from tests.testbed.fixtures import provide
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import WarmScheduler

JOB = Path(__file__).parents[1] / "fixtures" / "jobs" / "scm-jupyter.json"


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[RunningScheduler]:
    folder = tmp_path / "scheduler"
    folder.mkdir()
    running = WarmScheduler(folder, ssh=True)
    yield running
    running.close()


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """Return a folder with `jupyter` in it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    provide(partial(jupyter_notebook, folder))
    return folder


@pytest.fixture
async def page(chromium: str) -> AsyncIterator[Page]:
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(60_000)
        expect.set_options(timeout=60_000)
        yield page
        await page.screenshot(path=ARTEFACTS / "scm-jupyter.png")
        await browser.close()


async def test_the_documents_jupyter_job_unchanged_gives_a_notebook(cluster, programs, make_jupyter, page):
    async with Client(cluster.url, "token-of-alice") as alice:
        config = json.loads(JOB.read_text(encoding="utf-8"))
        # the process engine has no image: what would be in it is in the environment
        config["jobEnvs"] = {"PATH": f"{programs}:{os.environ['PATH']}"}
        name = await alice.submit(config)
        # the classic notebook takes an address apart and forgets what was encoded in it
        server = await make_jupyter(cluster.url, "token-of-alice", base_url="/user/alice/")
        async for event in alice.events("alice", name):
            if event["type"] in ("running", "ended"):
                break
        # the page waits by itself until Jupyter listens
        await page.goto(f"{server.base_url}pai/ports/alice/{name}/task_1-0/jupyter/?token={BROWSER_TOKEN}")
        button = page.locator("#new-dropdown-button")
        try:
            await expect(button).to_be_visible(timeout=40_000)
        except AssertionError:
            # it gives up on its own scripts after 30 s, and shows nothing until it is loaded again
            await page.reload()
        await button.click()
        async with page.context.expect_page() as opened:
            await page.locator("#new-menu").get_by_text("Python 3").click()
        notebook = await opened.value
        await notebook.locator("#kernel_indicator_icon.kernel_idle_icon").wait_for()
        await notebook.locator(".CodeMirror").first.click()
        await notebook.keyboard.type("print(6 * 7, 'from', __import__('os').environ['PAI_JOB_NAME'])")
        await notebook.keyboard.press("Shift+Enter")
        await expect(notebook.locator(".output_stdout pre")).to_have_text(f"42 from {name}\n")
        await notebook.keyboard.press("Control+s")
        await expect(notebook.locator(".checkpoint_status")).to_contain_text("Last Checkpoint")
        await notebook.screenshot(path=ARTEFACTS / "scm-jupyter-notebook.png")
