"""Everything of ours in JupyterLab, as axe sees it: light and dark, wide and narrow, in both languages."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, job_rows, serious
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler

CLUSTER = """
nodes:
  - {name: node-a, cpus: 8, memoryMB: 8000, storageGB: 100, gpus: {P100: 2}}
"""
#: Coloured lines: what is said in colours has to be read, too.
COLOURS = r"for c in 31 32 34 36; do printf '\033[%smcolour %s\033[0m\n' $c $c; done; sleep 3600"
RUN = {"en": "Run as a PAI job", "zh_CN": "作为 PAI 作业运行"}


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[RunningScheduler]:
    """Run a scheduler with an SSH gateway and declared GPUs, in place of the played one."""
    folder = tmp_path / "scheduler"
    folder.mkdir()
    running = WarmScheduler(folder, cluster=CLUSTER, ssh=True)
    yield running
    running.close()


@pytest.fixture
def token() -> str:
    return "token-of-alice"


@pytest.fixture
def theme(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """Choose a theme, and put a notebook where the file browser shows it."""
    chosen = str(request.param)
    extension = tmp_path / "settings" / "@jupyterlab" / "apputils-extension"
    extension.mkdir(parents=True)
    (extension / "themes.jupyterlab-settings").write_text(json.dumps({"theme": f"JupyterLab {chosen}"}))
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    home = tmp_path / "home"
    home.mkdir()
    nbformat.write(notebook, home / "train.ipynb")
    return chosen


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
    """Looks at parts of the page in a wide and in a narrow window."""

    def __init__(self, page: Page, name: str) -> None:
        self.page, self.name = page, name
        self.found: list[str] = []

    async def look(self, part: str, selector: str) -> None:
        for width in (600, 1280):
            await self.page.set_viewport_size({"width": width, "height": 800})
            self.found += [f"{part}, {width}: {fault}" for fault in await serious(self.page, selector)]
            await self.page.screenshot(path=ARTEFACTS / f"axe-{self.name}-{part}-{width}.png")


@pytest.mark.usefixtures("theme")  # before JupyterLab starts
@pytest.mark.parametrize(("locale", "theme"), [("en", "Light"), ("zh_CN", "Dark")], indirect=["theme"])
async def test_nothing_of_ours_keeps_somebody_from_using_it(
    page: Page, scheduler: RunningScheduler, locale: str, theme: str
) -> None:
    await submit_jobs(scheduler.url)
    looker = Looker(page, f"{locale}-{theme}")
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

    dialog = page.locator(".jp-Dialog")
    await job.locator(".pai-Job-buttons button").nth(1).click()
    await expect(dialog.locator("select")).to_be_visible()
    await looker.look("choose", ".jp-Dialog")
    await dialog.locator(".jp-mod-accept").click()
    await expect(page.locator(".pai-Connect-way")).to_be_visible()
    await looker.look("connect", ".pai-Connect")

    await page.locator(".lm-TabBar-tab[data-id=filebrowser]").click()
    await page.locator(".jp-DirListing-item", has_text="train.ipynb").click(button="right")
    await page.get_by_role("menuitem", name=RUN[locale]).click()
    await expect(dialog.locator(".pai-Run-fields")).to_be_visible()
    await looker.look("run", ".jp-Dialog")
    assert looker.found == []
