"""The README's five minutes, written once: done in JupyterLab, in a notebook and on the web."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.hub import Hub
from tests.hub_config.lab_in_a_browser import PATIENCE, start_server
from tests.labextension.console.test_on_the_web import CONSOLE, opened
from tests.testbed.cells import write_and_wait

#: Opens the job editor in a page of the Hub's; gives what it and the jobs' pages are in.
Place = Callable[[Hub, Browser, str], tuple[Page, Page | Locator]]


def in_jupyterlab(hub: Hub, browser: Browser, user: str) -> tuple[Page, Page | Locator]:
    page = browser.new_page(viewport={"width": 1440, "height": 1000}, locale="en-GB")
    page.set_default_timeout(PATIENCE)
    start_server(page, hub.url, user)
    page.locator(".jp-LauncherCard", has_text="New PAI job").click()
    return page, page


def in_a_notebook(hub: Hub, browser: Browser, user: str) -> tuple[Page, Page | Locator]:
    page = browser.new_page(viewport={"width": 1440, "height": 1000}, locale="en-GB")
    page.set_default_timeout(PATIENCE)
    start_server(page, hub.url, user)
    page.locator(".jp-LauncherCard[data-category='Notebook']").first.click()
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    cell = page.locator(".jp-Notebook .jp-CodeCell").first
    write_and_wait(cell, "from pai_labextension import JobForm; JobForm()")
    cell.locator(".cm-content").press("Shift+Enter")
    return page, cell.locator(".jp-OutputArea-output")


def on_the_web(hub: Hub, browser: Browser, user: str) -> tuple[Page, Page | Locator]:
    page = opened(browser, hub, user, "submit", viewport={"width": 1440, "height": 1000}, locale="en-GB")
    expect(page).to_have_url(re.compile(f"{CONSOLE}submit$"))
    return page, page


@pytest.mark.parametrize("place", [in_jupyterlab, in_a_notebook, on_the_web])
def test_a_job_is_written_watched_stopped_run_again_and_deleted(
    hub: Hub, browser: Browser, place: Place
) -> None:
    user = place.__name__.replace("_", "")
    page, within = place(hub, browser, user)
    with page:
        within.get_by_label("Job name").fill("five-minutes")
        within.get_by_role("textbox", name=re.compile("^Command")).fill("echo begun; exec sleep 600")
        within.get_by_role("button", name="Submit job").click()
        head = within.get_by_role("region", name="State of “five-minutes”", exact=True)
        expect(head).to_contain_text("Running")
        expect(within.get_by_role("log").get_by_text("begun", exact=True)).to_be_visible()
        within.get_by_role("tab", name="Tasks").click()
        expect(within.get_by_role("row", name=re.compile("^main-0"))).to_contain_text("Running")
        head.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Stop the job").click()
        expect(head).to_contain_text("Stopped")

        head.get_by_role("button", name="Run again").click()
        again = within.get_by_role("region", name="State of “five-minutes-2”")
        expect(again).to_contain_text("Running")
        again.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Stop the job").click()
        expect(again).to_contain_text("Stopped")
        again.get_by_role("button", name="What else can be done").click()
        page.get_by_role("menuitem", name="Delete").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete the job").click()
        expect(again).to_have_count(0)
    jobs = hub.scheduler(user, "GET", "jobs").json()
    assert [job["name"] for job in jobs if not job["name"].startswith("notebook_")] == ["five-minutes"]
