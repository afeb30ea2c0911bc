"""The side bar in a real JupyterLab, with a real scheduler: jobs are found, chosen and ended; the cluster."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.async_api import Page, Request, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, StartLab, choose_in_menu, job_rows, serious
from tests.testbed.lab import SharedLab
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler

CLUSTER = """
nodes:
  - {name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 2}}
virtualClusters:
  default: {capacity: 100}
  # of which nobody has used anything
  vision: {capacity: 0, maxCapacity: 100, fairShare: {halfLifeHours: 168}}
"""

#: Bytes of the front end's own scripts that the page has loaded.
LOADED = """() => performance.getEntriesByType("resource")
    .filter(({ name }) => name.includes("/extensions/pai-labextension/static/"))
    .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0)"""


@pytest.fixture(scope="module")
def lab_server(start_lab: StartLab) -> SharedLab:
    """Run a JupyterLab with these GPUs."""
    return start_lab(cluster=CLUSTER)


async def test_jobs_are_found_chosen_and_ended_many_at_once_by_mouse_and_keyboard(
    page: Page, scheduler: RunningScheduler
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        for number in range(6):
            job = hello_job(f"sweep-{number}", "sleep 3600")
            job["taskRoles"][0]["gpuNumber"] = 1
            await alice.submit(job)
        other = hello_job("other", "exit 3")
        await alice.submit(other, text=f"// fails on purpose\n{json.dumps(other)}")
        async for _ in alice.events("alice", "other"):
            pass
    item = page.get_by_role("button", name="PAI: 2 running · 4 waiting")
    await expect(item).to_be_visible()
    # nothing is open yet: docs/contributors/console-budgets.md
    assert 0 < await page.evaluate(LOADED) <= 200_000
    await item.click()
    rows = job_rows(page)
    await expect(rows).to_have_count(7)
    await expect(rows.first).to_contain_text("Running")
    await expect(rows.last).to_contain_text("exit code 3")

    await page.get_by_role("searchbox", name="Name").fill("SWEEP")
    await page.get_by_role("combobox", name="State").select_option("WAITING")
    await expect(rows).to_have_count(4)
    await expect(page.get_by_text("4 of 7 jobs")).to_be_visible()
    await rows.nth(0).get_by_role("checkbox").click()
    await rows.nth(2).get_by_role("checkbox").click(modifiers=["Shift"])
    await expect(page.get_by_text("3 chosen")).to_be_visible()
    assert await serious(page, ".pai-Sidebar") == []
    await page.get_by_role("button", name="Stop", exact=True).click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("Stop 3 jobs?")
    await expect(dialog).to_contain_text("sweep-2, sweep-3, sweep-4")
    await page.screenshot(path=ARTEFACTS / "sidebar-stop-many.png")
    await dialog.get_by_role("button", name="Stop 3 jobs").click()
    await expect(rows).to_have_count(1)
    await page.get_by_role("button", name="Show all").click()
    await expect(rows.filter(has_text="Stopped")).to_have_count(3)

    # the same with keys alone: to the first row, two more with Shift, the menu of all three
    await page.get_by_role("combobox", name="Order").select_option("name")
    await expect(rows.first).to_contain_text("other")
    await rows.first.focus()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Shift+ArrowDown")
    await page.keyboard.press("Shift+ArrowDown")
    await expect(page.get_by_text("3 chosen")).to_be_visible()
    await page.keyboard.press("Shift+F10")
    await expect(page.get_by_role("menuitem", name="Delete 3 jobs …")).to_be_visible()
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Enter")
    await expect(dialog).to_contain_text("sweep-0, sweep-1, sweep-2")
    await dialog.get_by_role("button", name="Delete 3 jobs").click()
    await expect(rows).to_have_count(4)

    await page.get_by_role("button", name="Cluster").click()
    await expect(page.get_by_role("meter", name="default")).to_be_visible()
    # (no sample of the last minute knows the job that runs)
    await expect(page.get_by_role("meter", name="P100")).to_have_attribute("aria-valuetext", "1 of 2 used")
    await expect(page.get_by_role("img", name="GPUs in use, last 24 hours: Now 1 of 2")).to_be_visible()
    assert await serious(page, ".pai-Sidebar") == []
    await page.screenshot(path=ARTEFACTS / "sidebar-cluster.png")

    # a scheduler that is gone is told in a sentence, and its return is noticed
    scheduler.kill()
    await page.get_by_role("button", name="Refresh").click()
    alert = page.locator(".pai-Sidebar").get_by_role("alert")
    await expect(alert).to_contain_text("does not answer")
    scheduler.start()
    await expect(alert).to_have_count(0)

    await page.reload()
    await expect(page.locator(".pai-Sidebar")).to_be_visible()
    await expect(rows.filter(has_text="other")).to_have_count(1)

    # once more as it was, and with a change
    await choose_in_menu(page, "other", "Run again")
    await expect(page.get_by_role("region", name="State of “other-2”")).to_be_visible()
    await choose_in_menu(page, "other", "Clone and edit")
    await expect(page.locator(".pai-JobEditor").get_by_label("Command")).to_have_value("exit 3")
    await expect(page.get_by_role("textbox", name="Job as JSON")).to_contain_text("// fails on purpose")


async def test_the_cluster_is_shown_with_who_comes_first_and_when_machines_are_down(
    page: Page, scheduler: RunningScheduler
) -> None:
    begin = datetime(2040, 12, 1, 8, tzinfo=UTC)
    first, last = [int(time.timestamp() * 1000) for time in (begin, begin + timedelta(hours=4))]
    async with Client(scheduler.url, "token-of-root") as root:
        await root.set_maintenance("disks", ["node-*"], begin=first, end=last, reason="disks are replaced")
    await page.get_by_role("button", name=re.compile("^PAI")).click()
    await page.get_by_role("button", name="Cluster").click()
    sidebar = page.locator(".pai-Sidebar")
    planned = sidebar.get_by_role("list", name="Maintenance").get_by_role("listitem")
    await expect(planned).to_have_text(
        re.compile(r"Maintenance from Dec 1, 2040, .* to Dec 1, 2040, .*: node-a \(disks are replaced\)")
    )
    machine = sidebar.locator(".pai-Machine")
    await expect(machine).to_contain_text(
        re.compile("ready; maintenance from Dec 1, 2040, .*disks are replaced")
    )
    fair, plain = (
        sidebar.locator(".pai-VirtualCluster").filter(has_text=name) for name in ("vision", "default")
    )
    await expect(plain).not_to_contain_text("used less")
    await fair.locator("summary").click()
    await expect(fair.get_by_role("listitem")).to_have_text(
        [
            "what starts fills machines",
            "Who has used less comes first; half counts after 168 hours.",
            "You have used 0 GPU hours lately: 0 % of all.",
        ]
    )
    assert await serious(page, ".pai-Sidebar") == []
    await page.screenshot(path=ARTEFACTS / "sidebar-cluster-maintenance.png")


async def test_a_job_that_is_scrolled_past_is_not_asked_about(
    page: Page, scheduler: RunningScheduler
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        for number in range(60):
            job = hello_job(f"wait-{number:02}", "sleep 3600")
            job["taskRoles"][0]["gpuNumber"] = 2
            await alice.submit(job)
    await page.get_by_role("button", name="PAI: 1 running · 59 waiting").click()
    await page.get_by_role("combobox", name="Order").select_option("name")
    rows = job_rows(page)
    await expect(rows.filter(has_text="wait-01")).to_contain_text("in the queue")
    asked = set[str]()

    def note(request: Request) -> None:
        if found := re.search(r"/jobs/(wait-\d\d)(\?|$)", request.url):
            asked.add(found[1])

    page.on("request", note)
    # while the page's clock stands still the list does not come to rest
    await page.clock.install()
    await page.clock.pause_at(datetime.now(UTC) + timedelta(seconds=10))
    box = page.locator(".pai-JobList")
    for number in (20, 30, 40, 59):
        await box.evaluate(
            "(box, share) => box.scrollTo({ top: share * (box.scrollHeight - box.clientHeight) })",
            number / 59,
        )
        await expect(rows.filter(has_text=f"wait-{number}")).to_be_visible()
    assert not asked & {"wait-30", "wait-59"}
    async with page.expect_request(re.compile("/jobs/wait-59")):
        await page.clock.resume()
    assert "wait-30" not in asked
