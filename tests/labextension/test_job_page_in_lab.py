"""The page of a job in a real JupyterLab, with a real scheduler on the process engine."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Locator, Page, Route, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, choose_in_menu
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler

#: Lines that the browser holds at most (`ui/console/job/log/window.ts`).
MOST_LINES = 1500
#: Writes colours, a progress bar and many lines, then a line whenever it is told to by a file.
SCRIPT = r"""
import sys, time, pathlib
name = sys.argv[1]
print("\x1b[31mred\x1b[0m plain", flush=True)
print("\x1b[32mgreen\nstill green\x1b[0m", flush=True)
for step in range(0, 101, 10):
    print(f"\r{step:3}% done", end="", flush=True)
print()
for number in range(6000):
    print(f"{name} line {number:05} of the log", flush=number == 5999)
told = pathlib.Path(sys.argv[2])
end = time.time() + 3600
while time.time() < end and not (told / "stop").exists():
    if (told / name).exists():
        (told / name).unlink()
        print(f"{name} was told", flush=True)
    time.sleep(0.05)
sys.exit(3 if name == "worker-0" else 0)
"""


@pytest.fixture
async def told(scheduler: RunningScheduler, tmp_path: Path) -> Path:
    """Run a job of two roles; in this folder its tasks are told what to do."""
    folder = tmp_path / "told"
    folder.mkdir()
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = (
        f'python3 {script} "$PAI_CURRENT_TASK_ROLE_NAME-$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" {folder}'
    )
    roles: list[dict[str, Any]] = [
        {
            "name": "worker",
            "taskNumber": 2,
            "command": command,
            "portList": [{"label": "board", "beginAt": 0}],
        },
        {"name": "ps", "taskNumber": 1, "command": command},
    ]
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit({"jobName": "gang", "image": "python:3.12", "taskRoles": roles})
        async for event in alice.events("alice", "gang"):
            if event["type"] == "running":
                break
    return folder


def log_of(page: Page) -> Locator:
    return page.get_by_role("log", name="Log")


async def test_a_job_is_watched_read_and_run_again_on_a_page_of_its_own(
    page: Page, told: Path, scheduler: RunningScheduler
) -> None:
    await page.get_by_role("button", name="PAI: 1 running").click()
    await choose_in_menu(page, "gang", "Open")
    head = page.get_by_role("region", name="State of “gang”")
    await expect(head).to_contain_text("Running")
    await expect(head.get_by_role("link", name="board")).to_have_count(2)
    await expect(page.locator(".jp-Notebook")).to_have_count(0)

    # the end is shown, and goes on as it is written
    log = log_of(page)
    await expect(log).to_contain_text("worker-0 line 05999 of the log")
    (told / "worker-0").touch()
    await expect(log).to_contain_text("worker-0 was told")
    await expect(page.get_by_text("Following", exact=True)).to_be_in_viewport(ratio=1)
    await page.screenshot(path=ARTEFACTS / "job-logs.png")

    # the beginning, as a terminal shows it
    await page.get_by_role("button", name="More of the log").click()
    await page.get_by_role("button", name="Start", exact=True).click()
    await expect(log.locator(".ansi-red-fg")).to_have_text("red")
    await expect(log.locator(".ansi-green-fg")).to_have_text(["green", "still green"])
    await expect(log.get_by_text("100% done", exact=True)).to_be_visible()
    await expect(log).not_to_contain_text("50% done")
    await expect(log).not_to_contain_text("line 05999")
    # far away from what is in the browser, both ways
    search = page.get_by_role("searchbox", name="Search the whole log")
    await search.fill("LINE 04321")
    await search.press("Enter")
    await expect(log.locator(".pai-mod-found mark")).to_have_text("line 04321")
    await search.fill("line 00007")
    await search.press("Enter")
    await expect(page.get_by_text("No more matches in this direction.")).to_be_visible()
    await search.press("Shift+Enter")
    await expect(log.locator(".pai-mod-found mark")).to_have_text("line 00007")
    # scrolling brings what comes after
    while "line 03000" not in await log.inner_text():
        await log.evaluate("box => box.scrollTo({ top: box.scrollHeight })")
        assert await log.locator("[data-line]").count() <= MOST_LINES

    # all tasks together
    await page.get_by_role("combobox", name="Task").select_option("All tasks, in order of time")
    await expect(log).to_contain_text("line 05999")
    (told / "ps-0").touch()
    await expect(log).to_contain_text("ps-0 was told")
    (told / "worker-1").touch()
    await expect(log).to_contain_text("worker-1 was told")
    told_lines = await log.get_by_text(re.compile("was told")).all_inner_texts()
    assert [line.removesuffix(" was told") for line in told_lines] == [
        "worker-0worker-0",
        "ps-0ps-0",
        "worker-1worker-1",
    ]
    await page.screenshot(path=ARTEFACTS / "job-logs-together.png")

    await page.get_by_role("tab", name="Logs").focus()
    await page.keyboard.press("ArrowRight")
    tasks = page.get_by_role("table", name="Tasks").get_by_role("row")
    await expect(tasks).to_have_count(4)
    await expect(tasks.nth(1)).to_contain_text("Running")
    await page.screenshot(path=ARTEFACTS / "job-tasks.png")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("list", name="What has happened")).to_contain_text("All tasks run.")
    await page.screenshot(path=ARTEFACTS / "job-timeline.png")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("img", name="Memory:").locator("polyline")).to_have_count(1)
    await page.screenshot(path=ARTEFACTS / "job-usage.png")
    await page.keyboard.press("ArrowRight")
    await expect(page.get_by_role("group", name="Job")).to_contain_text('"jobName": "gang"')
    await expect(page.get_by_role("button", name="/Output/alice/gang")).to_be_visible()
    await page.screenshot(path=ARTEFACTS / "job-configuration.png")

    # the page comes back after a reload; a scheduler that is away is said, and comes back by itself
    await page.reload()
    await expect(log).to_contain_text("was told")
    scheduler.kill()
    await expect(page.locator(".pai-Job").get_by_role("alert").first).to_contain_text("does not answer")
    await asyncio.to_thread(scheduler.start)
    (told / "worker-0").touch()
    await expect(page.locator(".pai-Job").get_by_role("alert")).to_have_count(0)
    await expect(log.get_by_text("worker-0 was told")).to_have_count(2)

    # how it ended, and once more
    (told / "stop").touch()
    await expect(head).to_contain_text("Failed")
    await expect(head).to_contain_text("Exit code: 3")
    (told / "stop").unlink()
    await page.screenshot(path=ARTEFACTS / "job-failed.png")
    await head.get_by_role("button", name="Run again").click()
    again = page.get_by_role("region", name="State of “gang-2”")
    await expect(again).to_contain_text("Running")
    await again.get_by_role("button", name="Stop").click()
    await page.get_by_role("button", name="Stop the job").click()
    await expect(again).to_contain_text("Stopped")
    await again.get_by_role("button", name="What else can be done").click()
    await page.get_by_role("menuitem", name="Delete").click()
    await page.get_by_role("button", name="Delete the job").click()
    await expect(again).to_have_count(0)
    async with Client(scheduler.url, "token-of-alice") as alice:
        assert [job["name"] for job in await alice.jobs()] == ["gang"]


async def test_logs_shown_together_stay_together_in_another_attempt(
    page: Page, scheduler: RunningScheduler, tmp_path: Path
) -> None:
    # the first attempt ends when both tasks have written
    command = (
        f'cd {tmp_path}; i="$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX"; '
        "if [ -d over ]; then echo second try; sleep 3600; fi; echo first try; mkdir $i; "
        "until [ -d 0 ] && [ -d 1 ]; do sleep 0.05; done; mkdir -p over; exit 1"
    )
    workers = {"name": "worker", "taskNumber": 2, "command": command}
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit({"jobName": "again", "image": "x", "retryCount": 1, "taskRoles": [workers]})
    await page.get_by_role("button", name=re.compile("PAI: 1")).click()
    await choose_in_menu(page, "again", "Open")
    log, task = log_of(page), page.get_by_role("combobox", name="Task")
    await expect(log).to_contain_text("second try")
    await task.select_option("All tasks, in order of time")
    await expect(log.get_by_text("second try")).to_have_count(2)
    await page.get_by_role("combobox", name="Attempt").select_option("1")
    await expect(log.get_by_text("first try")).to_have_count(2)
    await expect(task).to_have_value("*")
    await page.get_by_role("button", name="Show attempt 2, the newest").click()
    await expect(log.get_by_text("second try")).to_have_count(2)
    await expect(log.get_by_text("first try")).to_have_count(0)

    # the job itself has only the tasks of its last attempt
    await page.get_by_role("tab", name="Tasks").click()
    tasks = page.get_by_role("table", name="Tasks").get_by_role("row")
    await expect(tasks.nth(1)).to_contain_text("Running")
    await page.get_by_role("button", name="Show the tasks of attempt 1").click()
    await expect(tasks.filter(has_text=re.compile("Failed|Stopped"))).to_have_count(2)
    await expect(tasks.filter(has_text="Running")).to_have_count(0)


async def test_a_page_says_what_the_list_knows_before_the_scheduler_has_answered(
    page: Page, scheduler: RunningScheduler
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("slowly", "sleep 3600"))
    await page.get_by_role("button", name="PAI: 1 running").click()
    asked, may_answer = list[str](), asyncio.Event()

    async def late(route: Route) -> None:
        asked.append(route.request.url)
        await may_answer.wait()
        await route.continue_()

    await page.route(re.compile("/jobs/slowly($|[?/])"), late)
    await choose_in_menu(page, "slowly", "Open")
    head = page.get_by_role("region", name="State of “slowly”")
    await expect(head).to_contain_text("Running")
    await expect(head).to_contain_text("Virtual cluster default")
    await expect(page.get_by_text("Asking for the job …")).to_be_visible()
    await expect(head.get_by_role("button", name="Stop")).to_have_count(0)
    may_answer.set()
    await expect(head.get_by_role("button", name="Stop")).to_be_visible()
    await expect(page.get_by_role("tab", name="Logs")).to_be_visible()
    # nothing of it was asked without need
    assert not any("/attempts" in url and "tasks=0" not in url for url in asked)


async def test_a_job_is_written_to_start_after_another_and_their_pages_lead_to_each_other(
    page: Page, scheduler: RunningScheduler
) -> None:
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("prepare", "sleep 3600"))
        await page.locator(".jp-LauncherCard", has_text="New PAI job").click()
        editor = page.locator(".pai-JobEditor")
        submit = editor.get_by_role("region", name="Submit")
        await editor.get_by_label("Job name").fill("train")
        await editor.get_by_label("Command").fill("true")
        await editor.get_by_text("More: storage folders").click()
        after = editor.get_by_label("Start after")
        await after.fill("prepare, nobodys")
        await expect(editor.get_by_role("alert")).to_contain_text("no job named nobodys")
        await after.press("Tab")
        await submit.get_by_role("button", name="Job to wait for").click()
        await expect(after).to_be_focused()
        await after.fill("prepare:ended")
        await expect(submit).to_contain_text("Waiting for job prepare to end.")
        await page.screenshot(path=ARTEFACTS / "editor-after.png")
        await submit.get_by_role("button", name="Submit job").click()

        train = page.get_by_role("region", name="State of “train”")
        await expect(train).to_contain_text("Waiting: for other jobs")
        await expect(train).to_contain_text("Waiting for job prepare to end.")
        await expect(train).to_contain_text("Starts after:prepare (however it ends): ")
        await page.screenshot(path=ARTEFACTS / "job-after.png")
        await train.get_by_role("button", name="prepare").click()
        prepare = page.get_by_role("region", name="State of “prepare”")
        await expect(prepare).to_contain_text("Jobs that start after it:train (however it ends): Waiting")
        await alice.stop("alice", "prepare")
        await prepare.get_by_role("button", name="train").click()
        await expect(train).to_contain_text("Succeeded")
        await expect(train).to_contain_text("prepare (however it ends): Stopped")
