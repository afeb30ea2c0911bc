"""Being told of ended jobs: JupyterLab's settings, in both languages, and the browser's own notifications."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS
from tests.testbed.scheduler import RunningScheduler, hello_job

pytestmark = pytest.mark.real_scheduler

COMMAND = "Notifications of the browser when jobs end"
#: Hides the page as another tab before it would, and notes what the browser is given to show.
HIDE = """() => {
  for (const [name, value] of [["hidden", true], ["visibilityState", "hidden"]])
    Object.defineProperty(document, name, { configurable: true, get: () => value });
  document.dispatchEvent(new Event("visibilitychange"));
  const Real = window.Notification;
  window.shown = [];
  window.Notification = class extends Real {
    constructor(title, options) { super(title, options); window.shown.push(this); }
  };
}"""
SHOW = """() => {
  delete document.hidden;
  delete document.visibilityState;
  document.dispatchEvent(new Event("visibilitychange"));
}"""


async def open_settings(page: Page, title: str) -> None:
    """Open JupyterLab's settings editor, at the settings with this title."""
    await page.locator("body").press("ControlOrMeta+,")
    # (a new one is opened at its first settings; until then a click on others is lost)
    await expect(page.locator(".jp-SettingsForm")).not_to_have_count(0)
    await page.locator(".jp-PluginList-entry", has_text=title).click()


async def choose_in_palette(page: Page, text: str) -> None:
    await page.keyboard.press("ControlOrMeta+Shift+C")
    await page.locator(".lm-CommandPalette-input:visible").fill(text)
    await page.locator(".lm-CommandPalette-item", has_text=text).click()


async def test_the_browser_tells_of_a_job_that_ended_while_nobody_saw_the_page(
    page: Page, scheduler: RunningScheduler, tmp_path: Path
) -> None:
    # a browser that does not allow it says so when it is asked for, not before
    await choose_in_palette(page, COMMAND)
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("No notifications of the browser")
    await dialog.get_by_role("button").click()

    await page.context.grant_permissions(["notifications"])
    await choose_in_palette(page, COMMAND)
    go = tmp_path / "go"
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(hello_job("train", f"while [ ! -e {go} ]; do sleep 0.2; done; exit 3"))
        await expect(page.get_by_role("button", name="PAI: 1 running")).to_be_visible()
        await page.evaluate(HIDE)
        go.touch()
        await page.wait_for_function("window.shown.length > 0")
        assert await page.evaluate("window.shown.map(one => one.title)") == ["train has failed."]
        await page.evaluate(SHOW)
        await page.evaluate("window.shown[0].onclick()")
    await expect(page.locator(".pai-Job")).to_contain_text("exit code 3")


async def test_jobs_that_nobody_wants_to_be_told_of_end_in_silence(
    page: Page, scheduler: RunningScheduler, tmp_path: Path
) -> None:
    await open_settings(page, "PAI: ended jobs")
    await page.locator(".jp-SettingsForm select").select_option("Jobs that fail")
    await expect(page.get_by_text("Restore to Defaults")).to_be_visible()
    async with Client(scheduler.url, "token-of-alice") as alice:
        for name, code, running in (("good", 0, 1), ("bad", 3, 2)):
            go = tmp_path / "go"
            await alice.submit(hello_job(name, f"while [ ! -e {go} ]; do sleep 0.2; done; exit {code}"))
            await expect(page.get_by_role("button", name=f"PAI: {running} running")).to_be_visible()
        go.touch()
        # both have ended when the page hears of it last
        async for _ in alice.events("alice", "good"):
            pass
        await expect(page.get_by_text("bad has failed.")).to_be_visible()
        await expect(page.get_by_role("button", name="PAI: no active jobs")).to_be_visible()
    await expect(page.get_by_text("good has succeeded.")).to_have_count(0)


@pytest.mark.parametrize("locale", ["zh_CN"])
async def test_the_settings_are_chinese_in_the_settings_editor(page: Page) -> None:
    await open_settings(page, "PAI：作业结束")
    form = page.locator(".jp-SettingsForm")
    await expect(form.get_by_text("您的作业结束时，JupyterLab 通知您哪些内容。").first).to_be_visible()
    await expect(form.get_by_role("heading", name="通知我")).to_be_visible()
    await expect(form.get_by_role("option")).to_have_text(
        ["每个结束的作业", "用时超过下列分钟数的作业", "失败的作业", "不通知任何作业"]
    )
    await expect(form.get_by_text("浏览器通知", exact=True)).to_be_visible()
    await page.screenshot(path=ARTEFACTS / "notice-settings-chinese.png")
