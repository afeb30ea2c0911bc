"""Everything of ours in JupyterLab, as axe sees it: dark and light, wide and narrow, in Chinese.

The tests of the editor and of the side bar have axe look at them in English.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, StartLab, job_rows, serious
from tests.testbed.lab import SharedLab
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler

CLUSTER = """
nodes:
  - {name: node-a, cpus: 8, memoryMB: 8000, storageGB: 100, gpus: {P100: 2}}
"""
#: Coloured lines: what is said in colours has to be read, too.
COLOURS = r"for c in 31 32 34 36; do printf '\033[%smcolour %s\033[0m\n' $c $c; done; sleep 3600"
DARK, LIGHT = "JupyterLab Dark", "JupyterLab Light"


@pytest.fixture(scope="module")
def lab_server(start_lab: StartLab) -> SharedLab:
    """Run a JupyterLab with an SSH gateway and declared GPUs, whose commands the page may call."""
    return start_lab(cluster=CLUSTER, ssh=True, config={"LabApp": {"expose_app_in_browser": True}})


@pytest.fixture
def locale() -> str:
    return "zh_CN"


@pytest.fixture
def lab_folder(lab_server: SharedLab, home: Path) -> Path:
    """Put a notebook where the file browser shows it; JupyterLab is dark."""
    lab_server.choose("apputils-extension:themes", theme=DARK)
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, home / "train.ipynb")
    return home


def role(name: str, command: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "command": command, **fields}


async def submit_jobs(url: str) -> None:
    """Have one job that runs, one that has failed and one that waits."""
    ports = [{"label": "board", "beginAt": 0, "portNumber": 1}]
    jobs = [
        {"jobName": "gang", "image": "x", "taskRoles": [
            role("worker", COLOURS, taskNumber=2, gpuNumber=1, portList=ports), role("ps", COLOURS)]},
        {"jobName": "waits", "image": "x", "taskRoles": [role("main", "sleep 5", gpuNumber=1)]},
        hello_job("broken", "echo no; exit 3"),
    ]  # fmt: skip
    async with Client(url, "token-of-alice") as alice:
        for job in jobs:
            await alice.submit(job)
        async for _ in alice.events("alice", "broken"):
            pass


class Looker:
    """Looks at parts of the page: dark in a narrow and in a wide window; then at the colours when light."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.found: list[str] = []

    async def look(self, part: str, selector: str) -> None:
        for width in (600, 1280):
            await self.page.set_viewport_size({"width": width, "height": 800})
            await self._note(f"{part}-{width}", await serious(self.page, selector))
        await self._choose(LIGHT)
        await self._note(f"{part}-light", await serious(self.page, selector, "color-contrast"))
        await self._choose(DARK)

    async def _note(self, what: str, faults: list[str]) -> None:
        self.found += [f"{what}: {fault}" for fault in faults]
        await self.page.screenshot(path=ARTEFACTS / f"axe-{what}.png")

    async def _choose(self, theme: str) -> None:
        change = "theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })"
        await self.page.evaluate(change, theme)
        await expect(self.page.locator(f"body[data-jp-theme-name='{theme}']")).to_be_attached()


@pytest.mark.usefixtures("lab_folder")  # before the page
async def test_nothing_of_ours_keeps_somebody_from_using_it(page: Page, scheduler: RunningScheduler) -> None:
    await submit_jobs(scheduler.url)
    looker = Looker(page)
    await page.locator(".jp-LauncherCard", has_text="PAI").first.click()
    editor = page.locator(".pai-JobEditor")
    await expect(editor.locator(".pai-JobForm form")).to_be_visible()
    await editor.locator(".pai-Role summary").click()
    await editor.locator(".pai-Role input").nth(4).fill("7")
    await expect(editor.get_by_role("alert")).to_be_visible()
    await looker.look("editor", ".pai-JobEditor")

    await page.get_by_role("button", name=re.compile("^PAI[:：]")).click()
    await expect(job_rows(page)).to_have_count(3)
    pages = page.locator(".pai-Sidebar-page")
    for number, what in enumerate((".pai-JobRow", ".pai-Queue", ".pai-Machines")):
        await pages.nth(number).click()
        await expect(page.locator(what).first).to_be_visible()
        await looker.look(what.strip("."), ".pai-Sidebar")
    await pages.first.click()

    job = page.locator(".pai-Job:visible")
    for name in ("broken", "waits", "gang"):
        await job_rows(page).filter(has_text=name).locator(".pai-JobRow-name").click()
        await expect(job.get_by_role("heading", name=name)).to_be_visible()
        await expect(job.locator(".pai-Job-tabs")).to_be_visible()
        await looker.look(f"job-{name}", ".lm-DockPanel-widget:not(.lm-mod-hidden).jp-MainAreaWidget")
    for tab, shown in (
        ("tasks", ".pai-Tasks"),
        ("timeline", ".pai-Events"),
        ("usage", ".pai-Chart"),
        ("configuration", "pre"),
    ):
        await job.locator(f"[data-tab={tab}]").click()
        await expect(job.locator(shown).first).to_be_visible()
        await looker.look(f"job-{tab}", ".lm-DockPanel-widget:not(.lm-mod-hidden).jp-MainAreaWidget")

    dialog = page.get_by_role("dialog")
    await job.locator(".pai-Job-buttons button").nth(1).click()
    await expect(dialog.locator("select")).to_be_visible()
    await looker.look("choose", "dialog")
    await dialog.locator(".pai-mod-accept").click()
    await expect(page.locator(".pai-Connect-way")).to_be_visible()
    await looker.look("connect", ".pai-Connect")

    await page.locator(".lm-TabBar-tab[data-id=filebrowser]").click()
    await page.locator(".jp-DirListing-item", has_text="train.ipynb").click(button="right")
    await page.get_by_role("menuitem", name="作为 PAI 作业运行").click()
    await expect(dialog.locator(".pai-Run-fields")).to_be_visible()
    await looker.look("run", "dialog")
    assert looker.found == []
