"""Widgets where only a kernel is: in JupyterLab without our server extension, and in a page that is only a
host of widgets, as VS Code's is.
"""

from __future__ import annotations

import re
from pathlib import Path

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, StartLab
from tests.testbed import cells
from tests.testbed.lab import LAB_TOKEN, SharedLab
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler

#: Keeps the kernel busy until there is a file.
BUSY = "import pathlib, time; [time.sleep(.1) for _ in iter(lambda: pathlib.Path('go').exists(), True)]"
HOST = Path(__file__).with_name("host.js")


@pytest.fixture(scope="module")
def lab_server(start_lab: StartLab) -> SharedLab:
    """Run a JupyterLab that has nothing of ours but what its kernels have."""
    return start_lab(config={"ServerApp": {"jpserver_extensions": {"pai_labextension": False}}})


def output(page: Page, place: int) -> Locator:
    return cells.a_cell(page, place).locator(".jp-OutputArea-output")


async def test_a_job_is_submitted_from_the_form_and_looked_at_while_a_cell_runs(
    page: Page, home: Path
) -> None:
    await page.locator(".jp-LauncherCard[data-category='Notebook']").first.click()
    await cells.run(cells.a_cell(page), "from pai_labextension import *; form = JobForm(); form")
    form = output(page, 0)
    await expect(form.get_by_text("Still needed:")).to_be_visible()
    # form and text are one, and the kernel has it, too
    await form.get_by_label("Job name").fill("from-a-cell")
    await form.get_by_role("textbox", name=re.compile("^Command")).fill("echo hello from $PAI_JOB_NAME")
    await expect(form.get_by_label("Job as JSON")).to_have_value(re.compile('"jobName": "from-a-cell"'))
    await form.get_by_role("button", name="Submit job").click()
    await expect(form.get_by_text("hello from from-a-cell")).to_be_visible()
    head = form.get_by_role("region", name="State of")
    await expect(head).to_contain_text("Succeeded")
    await head.scroll_into_view_if_needed()
    await page.screenshot(path=ARTEFACTS / "widget-form.png")

    await cells.run(
        cells.a_cell(page, 1), "print(form.job['jobName'], form.monitor, await form.monitor.wait())"
    )
    await expect(output(page, 1)).to_contain_text("from-a-cell JobMonitor('from-a-cell') SUCCEEDED")
    # what the kernel changes is shown
    await cells.run(cells.a_cell(page, 2), "form.job = {**form.job, 'jobName': 'by-code'}; JobTable()")
    await expect(form.get_by_label("Job name")).to_have_value("by-code")

    table = output(page, 2)
    await expect(table.get_by_text("from-a-cell")).to_be_visible()
    await cells.run(cells.a_cell(page, 3), BUSY)
    await table.get_by_text("from-a-cell").click()
    await expect(table.get_by_text("hello from from-a-cell")).to_be_visible()
    await page.screenshot(path=ARTEFACTS / "widget-job.png")
    await expect(cells.a_cell(page, 3).locator(".jp-InputPrompt")).to_have_text("[*]:")
    (home / "go").touch()
    await table.get_by_role("button", name="Back").click()
    await expect(table.get_by_role("button", name="Back")).to_have_count(0)

    await cells.run(cells.a_cell(page, 4), "ClusterView()")
    await expect(output(page, 4).get_by_text("node-a")).to_be_visible()
    await output(page, 4).scroll_into_view_if_needed()
    await page.screenshot(path=ARTEFACTS / "widget-cluster.png")
    await cells.run(cells.a_cell(page, 5), "FileExplorer('/')")
    await expect(output(page, 5).get_by_text("alice", exact=True)).to_be_visible()
    # the console came once for all of them
    assert (
        await page.evaluate(
            "Object.getOwnPropertySymbols(globalThis).filter(s => /^pai-console:/.test(s.description)).length"
        )
        == 1
    )


async def test_a_host_of_widgets_alone_shows_a_job_and_says_that_the_kernel_is_busy(
    page: Page, lab_server: SharedLab, home: Path, scheduler: RunningScheduler
) -> None:
    async with Client(scheduler.url, "token-of-alice") as client:
        await client.submit(
            hello_job("shown", "for i in $(seq 3000); do echo a long line, number $i; done; echo last")
        )
    url = lab_server.address.partition("/lab")[0]
    headers = {"Authorization": f"token {LAB_TOKEN}"}
    async with httpx.AsyncClient(headers=headers, timeout=60) as api:
        kernel = (await api.post(f"{url}/api/kernels", json={"path": "/"})).json()["id"]
    # a page of the server without scripts: it says that there is none
    await page.goto(f"{url}/host-of-widgets")
    await page.evaluate("document.body.innerHTML = '<main></main>'")
    await page.add_script_tag(content=HOST.read_text())
    channels = f"{url.replace('http', 'ws')}/api/kernels/{kernel}/channels?token={LAB_TOKEN}"
    await page.evaluate("address => { window.run = host(address, document.querySelector('main')) }", channels)
    await page.evaluate("run('from pai_labextension import JobMonitor; JobMonitor(\"shown\")')")
    await expect(page.get_by_text("last", exact=True)).to_be_visible()
    await page.evaluate('run(\'JobMonitor("shown", locale="zh_CN")\')')
    await expect(page.get_by_role("tab", name="日志")).to_be_visible()
    # here nothing is answered while a cell runs
    await page.evaluate("code => run(code)", BUSY)
    await page.get_by_role("tab", name="Configuration").click()
    await expect(page.get_by_text("Waiting for the kernel: a cell is running.")).to_be_visible()
    await page.screenshot(path=ARTEFACTS / "widget-host.png")
    (home / "go").touch()
    await expect(page.get_by_text('"jobName": "shown"')).to_be_visible()
    await expect(page.get_by_text("Waiting for the kernel")).to_have_count(0)
