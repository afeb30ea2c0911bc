"""Terminals in tasks, ports and “Connect” in a real JupyterLab, with a real scheduler on the process engine."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from playwright.async_api import Locator, Page, WebSocketRoute, expect

from pai_scheduler.client import Client
from tests.labextension.conftest import ARTEFACTS
from tests.testbed.scheduler import RunningScheduler, hello_job

# before JupyterLab starts
pytestmark = pytest.mark.usefixtures("terminal_settings")

#: Serves the task's folder, with one file in it, at its port “web”.
WEB = (
    "echo '<h1>From the task</h1>' > index.html; "
    "exec python3 -m http.server --bind 127.0.0.1 $PAI_CONTAINER_HOST_web_PORT_LIST"
)


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[RunningScheduler]:
    """Run a scheduler with an SSH gateway, in place of the door."""
    folder = tmp_path / "scheduler"
    folder.mkdir()
    running = RunningScheduler(folder, ssh=True)
    yield running
    running.close()


@pytest.fixture
def token() -> str:
    return "token-of-alice"


@pytest.fixture
def terminal_settings(tmp_path: Path) -> None:
    """Have terminals tell screen readers, and us, what they show: ours follow JupyterLab's settings."""
    file = tmp_path / "settings" / "@jupyterlab" / "terminal-extension" / "plugin.jupyterlab-settings"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"screenReaderMode": True}))


@pytest.fixture
async def alice(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


async def run_job(client: Client, name: str, command: str = "sleep 3600", *, tasks: int = 1) -> None:
    """Submit a job whose tasks have a port “web”; returns when they run."""
    job = hello_job(name, command)
    role = job["taskRoles"][0]  # type: ignore[index]
    role |= {"taskNumber": tasks, "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}]}
    await client.submit(job)
    async for event in client.events("alice", name):
        if event["type"] == "running":
            return


async def command(page: Page, label: str) -> None:
    """Choose a command from the palette."""
    await page.keyboard.press("Control+Shift+C")
    await page.locator(".lm-CommandPalette-item", has_text=label).click()


async def jobs(page: Page) -> Locator:
    """Show the list of jobs."""
    await page.get_by_role("button", name="PAI: 1 running").click()
    return page.get_by_role("region", name="PAI jobs").get_by_role("row")


def shell(page: Page) -> Locator:
    """The terminal in view."""
    return page.locator(".pai-Shell:visible")


async def says(page: Page, text: str) -> None:
    await expect(shell(page).locator(".xterm-accessibility")).to_contain_text(text)


async def opened(page: Page) -> None:
    """Wait for a prompt, with the keyboard in the terminal."""
    await says(page, "#")
    await expect(shell(page).locator("textarea")).to_be_focused()


async def typed(page: Page, line: str) -> None:
    await page.keyboard.type(line)
    await page.keyboard.press("Enter")


async def test_a_terminal_of_a_chosen_task_is_as_it_was_after_a_reload(page: Page, alice: Client) -> None:
    await run_job(alice, "train", tasks=3)
    await jobs(page)
    await page.get_by_role("button", name="Open a terminal in “train”").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Task").select_option("main-1")
    await dialog.get_by_role("button", name="Open").click()
    await expect(page.get_by_role("tab", name="main-1 · train")).to_be_visible()
    await opened(page)
    await says(page, "runs without a container")
    await typed(page, "echo task=$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX.; kept=still-here")
    await says(page, "task=1.")

    # as large as what is seen, then and after the window was made smaller
    await typed(page, "stty size")
    await says(page, " 1")
    await page.screenshot(path=ARTEFACTS / "terminal.png")
    await page.wait_for_timeout(1500)  # the layout is saved a second after it changed
    await page.reload()
    await expect(page.get_by_role("tab", name="main-1 · train")).to_be_visible()
    await page.get_by_role("tab", name="main-1 · train").click()
    await says(page, "task=1.")
    await shell(page).locator("textarea").focus()
    await typed(page, "echo after=$kept.")
    await says(page, "after=still-here.")

    # which task was chosen is remembered
    await command(page, "Open a terminal in a PAI task")
    await expect(dialog.get_by_label("Task")).to_have_value("alice/train/main-1")


async def test_a_terminal_comes_back_after_a_cut(page: Page, alice: Client) -> None:
    lines: list[WebSocketRoute] = []

    async def follow(line: WebSocketRoute) -> None:
        lines.append(line)
        line.connect_to_server()

    await page.route_web_socket("**/pai/terminals/**", follow)
    await run_job(alice, "train")
    await command(page, "Open a terminal in a PAI task")
    await opened(page)
    await typed(page, "echo be''fore; kept=still-here")
    await says(page, "before")
    await lines[-1].close(code=4000)
    await typed(page, "echo after=$kept.")
    await says(page, "after=still-here.")
    assert len(lines) == 2
    text = await shell(page).locator(".xterm-accessibility").inner_text()
    assert text.count("runs without a container") == 1


async def test_the_end_of_a_shell_is_said_and_another_one_offered(page: Page, alice: Client) -> None:
    await run_job(alice, "train")
    await command(page, "Open a terminal in a PAI task")
    await opened(page)
    await typed(page, "exit")
    await expect(shell(page)).to_contain_text("This terminal has ended.")
    await shell(page).get_by_role("button", name="New terminal").click()
    await opened(page)

    await alice.stop("alice", "train")
    await expect(shell(page)).to_contain_text("This terminal has ended.")
    await shell(page).get_by_role("button", name="New terminal").click()
    await expect(shell(page).get_by_role("alert")).to_contain_text("train")
    await page.screenshot(path=ARTEFACTS / "terminal-ended.png")
    await shell(page).get_by_role("button", name="Close").click()
    await expect(page.get_by_role("tab", name="main-0 · train")).to_have_count(0)


async def test_a_closed_terminal_is_found_among_what_runs(page: Page, alice: Client) -> None:
    await run_job(alice, "train")
    await command(page, "Open a terminal in a PAI task")
    await opened(page)
    await typed(page, "kept=still-here")
    await page.get_by_role("tab", name="main-0 · train").locator(".jp-icon-hover").click()
    await expect(page.get_by_role("tab", name="main-0 · train")).to_have_count(0)
    await page.get_by_role("tab", name="Running Terminals and Kernels").click()
    await page.get_by_role("button", name="main-0 · train (terminal 1)").click()
    await opened(page)
    await typed(page, "echo after=$kept.")
    await says(page, "after=still-here.")


async def test_a_port_of_a_task_is_one_click_away(page: Page, alice: Client) -> None:
    await run_job(alice, "serve", WEB)
    rows = await jobs(page)
    link = rows.filter(has_text="serve").get_by_role("link", name="web")
    async with page.context.expect_page() as coming:
        await link.click()
    tab = await coming.value
    assert "/pai/ports/alice/serve/main-0/web/" in tab.url
    await expect(tab.get_by_role("heading", name="From the task")).to_be_visible()
    assert await tab.evaluate("window.opener") is None


@pytest.mark.parametrize("locale", ["zh_CN"])
async def test_terminals_speak_chinese(page: Page, alice: Client) -> None:
    await run_job(alice, "train")
    await page.locator(".jp-LauncherCard", has_text="PAI 任务终端").click()
    await opened(page)
    await typed(page, "exit")
    await expect(shell(page)).to_contain_text("此终端已结束。")
