"""The queue in a real JupyterLab, with a real scheduler on the process engine."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, StartLab, job_rows
from tests.testbed.lab import SharedLab
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler

CLUSTER = """
nodes:
  - {name: node-a, cpus: 8, memoryMB: 8000, storageGB: 1000, gpus: {P100: 1}}
"""
#: Keeps a core, some memory and a little disk busy, so that the charts have something to show.
BUSY = (
    'python3 -c "import time; x = bytearray(60_000_000); end = time.time() + 3600\n'
    'while time.time() < end: sum(range(200_000)); time.sleep(0.02)"'
)


@pytest.fixture(scope="module")
def lab_server(start_lab: StartLab) -> SharedLab:
    """Run a JupyterLab with these GPUs."""
    return start_lab(cluster=CLUSTER)


async def gpu_job(client: Client, name: str, command: str = "sleep 3600", **extras: object) -> None:
    job = hello_job(name, command, extras=extras)
    job["taskRoles"][0]["gpuNumber"] = 1
    await client.submit(job)


@pytest.fixture
async def queue(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    """One job has the only GPU; three of alice's and one of bob's wait for it."""
    async with Client(scheduler.url, "token-of-alice") as alice, Client(scheduler.url, "token-of-bob") as bob:
        await gpu_job(alice, "holder", BUSY)
        async for event in alice.events("alice", "holder"):
            if event["type"] == "running":
                break
        await gpu_job(alice, "first", priority=70)
        await gpu_job(bob, "secret", priority=60)
        await gpu_job(alice, "second")
        await gpu_job(alice, "third")
        yield alice


async def names(client: Client) -> list[str | None]:
    return [entry["name"] for entry in (await client.queue("default"))["default"]]


async def test_my_jobs_are_moved_with_the_keyboard_and_shown_with_what_they_use(
    page: Page, queue: Client
) -> None:
    await page.get_by_role("button", name="PAI: 1 running · 3 waiting").click()
    second = job_rows(page).filter(has_text="second")
    await expect(second).to_contain_text("place 3")
    await page.screenshot(path=ARTEFACTS / "jobs.png")

    await page.get_by_role("button", name="Queue", exact=True).focus()
    await page.keyboard.press("Enter")
    rows = page.get_by_role("region", name="Queue").locator("tbody").get_by_role("row")
    await expect(rows).to_have_count(4)
    await expect(rows.nth(1)).to_contain_text("another user’s job")
    await expect(rows.nth(1).get_by_role("button")).to_have_count(0)
    await expect(rows.nth(0)).to_contain_text("none is free")

    up = page.get_by_role("button", name="Move “third” up")
    await up.focus()
    await page.keyboard.press("Enter")
    await expect(rows.nth(2)).to_contain_text("third")
    # it cannot go further up among its like: the focus is where it can go
    await expect(up).to_be_disabled()
    await expect(page.get_by_role("button", name="Move “third” down")).to_be_focused()
    assert await names(queue) == ["first", None, "third", "second"]

    priority = page.get_by_role("spinbutton", name="Priority of “second”")
    await priority.fill("90")
    await priority.press("Enter")
    await expect(rows.nth(0)).to_contain_text("second")
    assert await names(queue) == ["second", "first", None, "third"]

    await priority.fill("101")
    await priority.press("Enter")
    await expect(page.get_by_role("alert")).to_contain_text("from 0 to 100")
    await expect(priority).to_have_value("90")
    await page.screenshot(path=ARTEFACTS / "queue.png")

    await page.get_by_role("button", name="Cluster").click()
    machine = page.get_by_role("region", name="Machines").get_by_role("group").filter(has_text="node-a")
    await machine.get_by_text("node-a", exact=True).click()
    await expect(machine).to_contain_text("ready")
    await expect(machine).to_contain_text(re.compile(r"P100 \(simulated\)\s*1 of 1 used"))
    await expect(machine).to_contain_text("GPUs held by: alice~holder")
    await expect(machine.get_by_role("meter", name="Disk (GB)")).to_be_visible()
    await expect(machine).to_contain_text("Disk that jobs may still reserve: ")


# (test_lab.py starts JupyterLab in Chinese each time; that no sentence is missing is shown without a browser)
@pytest.mark.long
@pytest.mark.parametrize("locale", ["zh_CN"])
@pytest.mark.usefixtures("queue")
async def test_the_queue_speaks_chinese(page: Page) -> None:
    await page.get_by_role("button", name="PAI：1 个运行中 · 3 个等待中").click()
    await page.get_by_role("button", name="队列", exact=True).click()
    rows = page.get_by_role("region", name="队列").locator("tbody").get_by_role("row")
    await expect(rows.nth(1)).to_contain_text("其他用户的作业")
    await page.screenshot(path=ARTEFACTS / "queue-zh_CN.png")
