"""A notebook runs as a job from JupyterLab: from menu and toolbar, with parameters, to its results."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.conftest import ARTEFACTS
from tests.testbed import cells
from tests.testbed.scheduler import RunningScheduler

pytestmark = pytest.mark.real_scheduler


@pytest.fixture
def lab_folder(home: Path) -> Path:
    """What the file browser shows: a notebook with parameters, a script, and what does not run."""
    (home / "model.py").write_text("def double(number):\n    return 2 * number\n")
    (home / "go.sh").write_text("echo hello\n")
    (home / "notes.md").write_text("no code")
    notebook = nbformat.v4.new_notebook()
    for source in ("number = 1", "from model import double\nprint('the result is', double(number))"):
        notebook.cells.append(nbformat.v4.new_code_cell(source))
    notebook.cells[0].metadata["tags"] = ["parameters"]
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    nbformat.write(notebook, home / "train.ipynb")
    return home


@pytest.mark.usefixtures("lab_folder")
async def test_a_notebook_runs_as_a_job_and_its_results_are_in_the_storage(
    page: Page, scheduler: RunningScheduler
) -> None:
    # only what can run is offered
    for name, offered in (("notes.md", 0), ("go.sh", 1), ("train.ipynb", 1)):
        await page.locator(".jp-DirListing-item", has_text=name).click(button="right")
        await expect(page.get_by_role("menuitem", name="Open", exact=True)).to_be_visible()
        await expect(page.get_by_role("menuitem", name="Run as a PAI job")).to_have_count(offered)
        if name != "train.ipynb":
            await page.keyboard.press("Escape")
    await page.get_by_role("menuitem", name="Run as a PAI job").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_label("Name")).to_have_value("train")
    await expect(dialog.get_by_role("status").first).to_have_text("It starts at once.")

    # what never fits is said before it is submitted
    await dialog.get_by_label("GPUs").fill("9")
    await expect(dialog.get_by_role("alert")).to_contain_text("GPU")
    await page.screenshot(path=ARTEFACTS / "run-as-job-never-fits.png")
    await dialog.get_by_label("GPUs").fill("0")
    await expect(dialog.get_by_role("status").first).to_have_text("It starts at once.")

    await dialog.get_by_label("number").fill("21")
    await dialog.get_by_text("Files that go along: 3").click()
    await page.screenshot(path=ARTEFACTS / "run-as-job.png")
    await dialog.get_by_role("button", name="Run").click()
    await expect(page.get_by_text("is submitted.")).to_be_visible()

    async with FilesClient(scheduler.url, "token-of-alice") as files:
        found: list[str] = []
        while not found:
            await page.wait_for_timeout(300)
            if await files.find("/alice/results") is not None:
                found = [info.path async for info in files.walk("/alice/results") if "ipynb" in info.path]
        async with files.read(found[0]) as stream:
            assert b"the result is 42" in b"".join([piece async for piece in stream])

    await expect(page.get_by_text("has succeeded.")).to_be_visible()

    # the same from the notebook itself, which is saved first
    await page.locator(".jp-DirListing-item", has_text="train.ipynb").dblclick()
    await cells.write(cells.a_cell(page), "number = 3")
    await page.get_by_role("button", name="Run this file from top to bottom on the GPU cluster").click()
    await expect(dialog.get_by_label("number")).to_have_value("3")


@pytest.mark.usefixtures("lab_folder")
async def test_a_notebook_is_scheduled_and_its_run_started_from_the_side_bar(
    page: Page, scheduler: RunningScheduler
) -> None:
    await page.locator(".jp-DirListing-item", has_text="train.ipynb").click(button="right")
    await page.get_by_role("menuitem", name="Run as a PAI job").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name").fill("nightly")
    await dialog.get_by_label("number").fill("21")
    await dialog.get_by_label("Again and again").check()
    zone = await page.evaluate("Intl.DateTimeFormat().resolvedOptions().timeZone")
    await expect(dialog.get_by_label("Time zone")).to_have_value(zone)
    await dialog.get_by_label("How often").select_option("weekdays")
    await dialog.get_by_label("Time", exact=True).fill("06:15")
    status = dialog.get_by_role("status").first
    await expect(status).to_have_text(
        re.compile(r"It runs next: .*6:15.* · .*6:15.*If a run were due now: It starts at once\.")
    )
    # what is no time is said while it is typed, and what it would do stands on the button
    await dialog.get_by_label("How often").select_option("cron")
    cron = dialog.get_by_label("Minute, hour, day of the month, month, day of the week")
    await cron.fill("61 6 * * *")
    await expect(dialog.get_by_role("alert")).to_contain_text("minute must be 0 to 59")
    await cron.fill("15 6 * * 1-5")
    await expect(dialog.get_by_role("alert")).to_have_count(0)
    await dialog.get_by_label("How often").select_option("weekdays")
    await dialog.get_by_label("Time", exact=True).scroll_into_view_if_needed()
    await page.screenshot(path=ARTEFACTS / "schedule-a-notebook.png")
    await dialog.get_by_role("button", name="Make the schedule").click()
    await expect(page.get_by_text("nightly is scheduled.")).to_be_visible()

    await page.get_by_role("button", name="Show schedules").click()
    row = page.get_by_role("listitem", name="nightly")
    await expect(row).to_contain_text("On week days at 06:15")
    await expect(row).to_contain_text("Next run:")
    await row.get_by_role("button", name="Pause").click()
    await expect(row).to_contain_text("Paused")
    await row.get_by_role("button", name="Run “nightly” now").click()
    await expect(row).to_contain_text("Last run:")
    await page.screenshot(path=ARTEFACTS / "schedules.png")

    async with FilesClient(scheduler.url, "token-of-alice") as files:
        found: list[str] = []
        while not found:
            await page.wait_for_timeout(300)
            if await files.find("/alice/results") is not None:
                walked = [info.path async for info in files.walk("/alice/results")]
                found = [path for path in walked if "nightly-" in path and path.endswith(".ipynb")]
        await expect(page.get_by_text("has succeeded.")).to_be_visible()
        async with files.read(found[0]) as stream:
            assert b"the result is 42" in b"".join([piece async for piece in stream])

    await row.get_by_role("button", name="nightly-").click()
    await expect(page.get_by_role("tab", name="nightly-")).to_be_visible()
    await row.get_by_role("button", name="Delete").click()
    await dialog.get_by_role("button", name="Delete").click()
    await expect(row).to_have_count(0)
