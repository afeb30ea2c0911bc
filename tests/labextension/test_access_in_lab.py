"""Terminals in tasks, ports and “Connect” in a real JupyterLab, with a real scheduler and its SSH gateway."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest
from playwright.async_api import Locator, Page, Position, WebSocketRoute, expect
from playwright.async_api import TimeoutError as TookTooLong

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import ARTEFACTS, StartLab, choose_in_menu, job_rows
from tests.testbed.lab import SharedLab
from tests.testbed.machine import apt_install
from tests.testbed.scheduler import RunningScheduler, hello_job

# the settings before the page
pytestmark = [pytest.mark.real_scheduler, pytest.mark.usefixtures("terminal_settings")]

#: Serves the task's folder, with one file in it, at its port “web”.
WEB = (
    "echo '<h1>From the task</h1>' > index.html; "
    "exec python3 -m http.server --bind 127.0.0.1 $PAI_CONTAINER_HOST_web_PORT_LIST"
)


@pytest.fixture(scope="module")
def lab_server(start_lab: StartLab) -> SharedLab:
    """Run a JupyterLab with a scheduler that has an SSH gateway."""
    return start_lab(ssh=True)


@pytest.fixture
def terminal_settings(lab: str, lab_server: SharedLab) -> None:
    """Have terminals tell screen readers, and us, what they show: ours follow JupyterLab's settings."""
    del lab  # it forgets them in the end
    lab_server.choose("terminal-extension:plugin", screenReaderMode=True)


@pytest.fixture
async def alice(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


async def run_job(client: Client, name: str, command: str = "sleep 3600", *, tasks: int = 1) -> None:
    """Submit a job whose tasks have a port “web”; returns when they run."""
    job = hello_job(name, command)
    role = job["taskRoles"][0]
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
    return job_rows(page)


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


async def saved(page: Page, widget: str) -> None:
    """Wait until JupyterLab has kept that a widget is open."""
    await page.wait_for_function(
        """async widget => {
            const workspace = await (await fetch('/lab/api/workspaces/default')).json();
            const dock = workspace.data['layout-restorer:data'].main.dock;
            return JSON.stringify(dock ?? '').includes(widget);
        }""",
        arg=widget,
    )


async def test_a_terminal_of_a_chosen_task_is_as_it_was_after_a_reload(page: Page, alice: Client) -> None:
    await run_job(alice, "train", tasks=3)
    await jobs(page)
    await choose_in_menu(page, "train", "Terminal")
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Task").select_option("main-1")
    await dialog.get_by_role("button", name="Open").click()
    await expect(page.get_by_role("tab", name="main-1 · train")).to_be_visible()
    await opened(page)
    await typed(page, "echo task=$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX.; kept=still-here")
    await says(page, "task=1.")

    # as large as what is seen: a line of that length is one line
    await typed(page, "echo wide=$(( $(stty size | cut -d' ' -f2) > 100 )).")
    await says(page, "wide=1.")
    await page.set_viewport_size({"width": 800, "height": 600})
    await typed(page, "echo narrow=$(( $(stty size | cut -d' ' -f2) < 70 )).")
    await says(page, "narrow=1.")
    await page.screenshot(path=ARTEFACTS / "terminal.png")
    await saved(page, "pai-terminals:")
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


async def test_the_menu_of_a_terminal_copies_and_pastes(page: Page, alice: Client) -> None:
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await run_job(alice, "train")
    await command(page, "Open a terminal in a PAI task")
    await opened(page)
    await page.evaluate("navigator.clipboard.writeText(`echo pas''ted`)")
    menu = page.get_by_role("menu")
    await shell(page).click(button="right")
    # none of JupyterLab's own, which mean its own terminals
    await expect(menu.get_by_text("Copy", exact=True)).to_have_count(1)
    await menu.get_by_text("Paste", exact=True).click()
    await says(page, "ted")
    await expect(shell(page).locator("textarea")).to_be_focused()
    await page.keyboard.press("Enter")
    await says(page, "pasted")

    first_word: Position = {"x": 20, "y": 16}
    await shell(page).dblclick(position=first_word)
    await shell(page).click(button="right", position=first_word)
    await menu.get_by_text("Copy", exact=True).click()
    await says(page, await page.evaluate("navigator.clipboard.readText()"))


async def test_a_terminal_comes_back_after_a_cut(page: Page, alice: Client) -> None:
    lines: list[WebSocketRoute] = []

    async def follow(line: WebSocketRoute) -> None:
        lines.append(line)
        line.connect_to_server()

    await page.route_web_socket("**/pai/terminals/**", follow)
    await page.reload()  # routed are sockets of pages that come after
    await expect(page.locator(".jp-Launcher")).to_be_visible()
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
    assert text.count("before\n") == 1


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
    await expect(page.get_by_role("button", name="PAI: no active jobs")).to_be_visible()
    # said by the tab, or, while the connection to the gateway is still kept, by the gateway; the task's own
    # server may outlive the task for a moment, and its terminal only ends
    over = re.compile("Job train has ended|No job train of user alice runs")
    async with asyncio.timeout(60):
        while not over.search(await shell(page).inner_text()):
            again = shell(page).get_by_role("button", name="New terminal")
            # (it may go before it is clicked)
            with contextlib.suppress(TookTooLong):
                await again.click(timeout=500)
            await asyncio.sleep(0.2)
    await page.screenshot(path=ARTEFACTS / "terminal-ended.png")
    await shell(page).get_by_role("button", name="Close").click()
    await expect(page.get_by_role("tab", name="main-0 · train")).to_have_count(0)


async def test_a_closed_terminal_is_found_among_what_runs(page: Page, alice: Client) -> None:
    # (of a name of its own: JupyterLab counts the terminals of each)
    await run_job(alice, "kept")
    await command(page, "Open a terminal in a PAI task")
    await opened(page)
    await typed(page, "kept=still-here")
    await page.get_by_role("tab", name="main-0 · kept").locator(".jp-icon-hover").click()
    await expect(page.get_by_role("tab", name="main-0 · kept")).to_have_count(0)
    await page.get_by_role("tab", name="Running Terminals and Kernels").click()
    await page.get_by_text("main-0 · kept (terminal 1)").click()
    await opened(page)
    await typed(page, "echo after=$kept.")
    await says(page, "after=still-here.")


async def test_a_port_of_a_task_is_one_click_away_on_its_jobs_page(page: Page, alice: Client) -> None:
    await run_job(alice, "serve", WEB)
    await jobs(page)
    await choose_in_menu(page, "serve", "Open")
    link = page.get_by_role("region", name="State of “serve”").get_by_role("link", name="web")
    async with page.context.expect_page() as coming:
        await link.click()
    tab = await coming.value
    assert "/pai/ports/alice/serve/main-0/web/" in tab.url
    await expect(tab.get_by_role("heading", name="From the task")).to_be_visible()
    assert await tab.evaluate("window.opener") is None


async def connect(page: Page, job: str) -> Locator:
    """Show how to connect to the only task of a job; return the page about it."""
    await jobs(page)
    await choose_in_menu(page, job, "Connect")
    panel = page.locator(".pai-Connect")
    await expect(panel.get_by_role("tablist", name="Ways in")).to_be_visible()
    return panel


async def copied(panel: Locator, label: str) -> str:
    """Press a copy button; return what is in the clipboard."""
    button = panel.get_by_role("button", name=f"Copy “{label}”").first
    await button.click()
    return str(await panel.page.evaluate("navigator.clipboard.readText()"))


async def test_the_key_and_the_lines_that_are_copied_log_in(
    page: Page, alice: Client, tmp_path: Path
) -> None:
    apt_install({"ssh": "openssh-client"})
    await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    await run_job(alice, "train")
    panel = await connect(page, "train")
    await expect(panel.get_by_role("note")).to_contain_text("without a container")
    await panel.get_by_role("button", name="Check the connection").click()
    await expect(panel.get_by_role("status").first).to_contain_text("It works")
    await page.screenshot(path=ARTEFACTS / "connect.png")

    async with page.expect_download() as coming:
        await panel.get_by_role("button", name="Download the key").click()
    download = await coming.value
    assert download.suggested_filename == "alice~train"
    key, known = tmp_path / "key", tmp_path / "known_hosts"
    await download.save_as(key)
    key.chmod(0o600)
    known.write_text(await copied(panel, "Line for ~/.ssh/known_hosts") + "\n")
    line = await copied(panel, "Log in")
    assert line.startswith("ssh -i ~/.ssh/alice~train -p ")
    options = ("-F", "none", "-o", "BatchMode=yes", "-o", f"UserKnownHostsFile={known}")
    words = [*line.replace("~/.ssh/alice~train", str(key)).split(), *options, "echo $PAI_JOB_NAME"]
    done = await asyncio.create_subprocess_exec(*words, stdout=-1, stderr=-1)
    out, err = await done.communicate()
    assert (out, done.returncode) == (b"train\n", 0), err


async def test_every_program_has_its_values(page: Page, alice: Client) -> None:
    await run_job(alice, "train")
    panel = await connect(page, "train")
    tabs = panel.get_by_role("tablist")
    last = tabs.get_by_role("tab", name="My keys")
    place = await last.bounding_box()
    await tabs.get_by_role("tab", name="Command line").focus()
    await page.keyboard.press("ArrowRight")
    await expect(tabs.get_by_role("tab", name="VS Code")).to_be_focused()
    way = panel.get_by_role("tabpanel")
    await expect(way).to_contain_text("Host pai-train-main-0")
    link = way.get_by_role("link", name="in VS Code")
    await expect(link).to_have_attribute(
        "href", re.compile(r"^vscode://vscode-remote/ssh-remote\+pai-train-main-0/")
    )
    await way.get_by_role("button", name="Open code-server").click()
    await expect(way.get_by_role("alert")).to_contain_text("code-server")

    # choosing one moves none of the others
    assert await last.bounding_box() == place

    await tabs.get_by_role("tab", name="PyCharm").click()
    await expect(way.get_by_role("table", name="Deployment")).to_contain_text("alice+train+main-0")
    await expect(way.get_by_role("table", name="Remote interpreter")).to_contain_text("~/.ssh/alice~train")
    await tabs.get_by_role("tab", name="JetBrains Gateway").click()
    link = way.get_by_role("link", name="Open in JetBrains Gateway")
    await expect(link).to_have_attribute(
        "href", re.compile(r"^jetbrains-gateway://connect#host=127\.0\.0\.1&port=\d+&")
    )
    await tabs.get_by_role("tab", name="Visual Studio").click()
    await expect(way.get_by_role("table")).to_contain_text("%USERPROFILE%\\.ssh\\alice~train")
    await tabs.get_by_role("tab", name="WinSCP, FileZilla").click()
    await expect(way.get_by_role("table", name="FileZilla")).to_contain_text("alice~train.ppk")
    async with page.expect_download() as coming:
        await way.get_by_role("button", name="For PuTTY and WinSCP (.ppk)").click()
    assert (await (await coming.value).path()).read_text().startswith("PuTTY-User-Key-File-3")
    await tabs.get_by_role("tab", name="Ports").click()
    await expect(way.get_by_role("link", name="web")).to_have_attribute("href", re.compile("/main-0/web/$"))

    await alice.stop("alice", "train")
    await expect(page.get_by_role("button", name="PAI: no active jobs")).to_be_visible()
    await panel.get_by_role("button", name="Refresh").click()
    await expect(way.get_by_role("alert")).to_contain_text("There is no way into this task.")


async def test_public_keys_are_registered_and_removed(page: Page, alice: Client) -> None:
    await run_job(alice, "train")
    panel = await connect(page, "train")
    await panel.get_by_role("tab", name="My keys").click()
    way = panel.get_by_role("tabpanel")
    await expect(way).to_contain_text("You have registered no key yet.")
    typed_in = way.get_by_label("Public key")
    key = asyncssh.generate_private_key("ssh-ed25519", comment="me@laptop")
    await typed_in.fill(key.export_private_key().decode())
    await way.get_by_role("button", name="Register").click()
    await expect(way.get_by_role("alert")).to_contain_text("private")
    await typed_in.fill(key.export_public_key().decode())
    await way.get_by_role("button", name="Register").click()
    await expect(way.get_by_role("table")).to_contain_text(key.get_fingerprint())
    await expect(way.get_by_role("alert")).to_have_count(0)
    await page.screenshot(path=ARTEFACTS / "connect-keys.png")
    await way.get_by_role("button", name="Remove “me@laptop”").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(way).to_contain_text("You have registered no key yet.")


# (test_lab.py starts JupyterLab in Chinese each time; that no sentence is missing is shown without a browser)
@pytest.mark.long
@pytest.mark.parametrize("locale", ["zh_CN"])
async def test_terminals_speak_chinese(page: Page, alice: Client) -> None:
    await run_job(alice, "train")
    await page.locator(".jp-LauncherCard", has_text="PAI 任务终端").click()
    await opened(page)
    await typed(page, "exit")
    await expect(shell(page)).to_contain_text("此终端已结束。")
