"""What somebody does in a browser to see that a Hub works: log in, a server, a kernel, a task's port."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Error, Page, expect, sync_playwright

from tests.hub import PASSWORD, Hub
from tests.testbed.browser import CHROMIUM_FLAGS
from tests.testbed.cells import run_and_wait
from tests.testbed.fixtures import provide
from tests.testbed.web_server import WebServer

#: Milliseconds that anything on a page may take, on a slow machine under load.
PATIENCE = 90_000
#: What Chromium makes of a request while a container that starts or ends changes this machine's networks.
_NETWORK_CHANGED = "ERR_NETWORK_CHANGED"
APPLICATION = Path(__file__).parents[1] / "labextension" / "tasks" / "port_application.py"
_ECHO = """\
(address) => new Promise((done, failed) => {
    const socket = new WebSocket(address);
    socket.onopen = () => socket.send("over the web server");
    socket.onmessage = (event) => done(event.data);
    socket.onclose = (event) => failed(new Error(`closed: ${event.code} ${event.reason}`));
})
"""


@contextmanager
def behind_a_web_server(hub: Hub, folder: Path, name: str) -> Iterator[WebServer]:
    """Start a Hub behind a web server that has a certificate for `name`; both are closed in the end."""
    web = provide(lambda: WebServer(folder, name, hub.port))
    hub.environment["PAI_PUBLIC_URL"] = web.url
    try:
        provide(web.start)
        hub.start()
        yield web
    finally:
        try:
            hub.close()
        finally:
            web.stop()


@contextmanager
def open_page(chromium: str, web: WebServer, folder: Path) -> Iterator[Page]:
    """Open a browser that trusts the web server's certificate."""
    with sync_playwright() as playwright:
        # (a certificate is named for a profile of one's own only)
        context = playwright.chromium.launch_persistent_context(
            folder / "profile",
            executable_path=chromium,
            args=[*CHROMIUM_FLAGS, *web.chromium_flags],
            viewport={"width": 1440, "height": 1000},
            locale="en-GB",
        )
        context.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield context.pages[0]
        context.close()


def start_server(page: Page, url: str, name: str = "alice") -> None:
    """Log in, choose what is offered, and wait for JupyterLab."""
    failures: list[str] = []
    page.on("requestfailed", lambda request: failures.append(request.failure or ""))
    try:
        page.goto(url)
    except Error as error:
        if _NETWORK_CHANGED not in error.message:
            raise
        page.goto(url)
    page.get_by_label("Username:").fill(name)
    page.get_by_label("Password:").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_label("Memory (MB)", exact=True).fill("1024")
    page.get_by_role("button", name="Start").click()
    try:
        page.wait_for_url(f"**/user/{name}/lab**")
    except Error as error:
        if _NETWORK_CHANGED not in error.message:
            raise
        page.goto(url)  # leads to the server that is there, or is starting
        page.wait_for_url(f"**/user/{name}/lab**")
    try:
        page.locator(".jp-LauncherCard").first.wait_for(timeout=PATIENCE / 2)
    except Error:
        # (a script that did not come is not asked for again)
        if any(_NETWORK_CHANGED in failure for failure in failures):
            page.reload()


def compute(page: Page) -> None:
    """Open a notebook, and have its kernel compute."""
    page.locator(".jp-LauncherCard[data-category='Notebook']").first.click()
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    run_and_wait(page, "print(6 * 7)")
    expect(page.locator(".jp-OutputArea-output pre").first).to_have_text("42\n")


def make_token(page: Page, url: str) -> str:
    """Make a token as the Hub's page for that does it."""
    page.goto(f"{url}/hub/token")
    # (what the button does comes after the page)
    page.wait_for_load_state("networkidle")
    result = page.locator("#token-result")
    # A browser gives up what is under way when interfaces of the machine come or go, as those of Docker's
    # networks do in tests beside this one; its page then says "API request failed (0)", with a button.
    lost = page.get_by_role("dialog").get_by_text("API request failed (0)")
    for _ in range(3):
        page.get_by_role("button", name="Request new API token").click()
        expect(result.filter(has_text=re.compile(".")).or_(lost).first).to_be_visible()
        if not lost.is_visible():
            break
        page.get_by_role("dialog").get_by_role("button", name="OK").click()
        expect(lost).to_be_hidden()
    expect(result).not_to_be_empty()
    return result.inner_text().strip()


def submit_application(hub: Hub, name: str = "alice") -> str:
    """Submit a job that listens at its port `web`; return its name when it does."""
    job: dict[str, Any] = {
        "jobName": "echo",
        "image": "local/python",
        "taskRoles": [
            {
                "name": "worker",
                "taskNumber": 1,
                "cpuNumber": 1,
                "memoryMB": 256,
                "command": f"{sys.executable} {APPLICATION}",
                "portList": [{"label": "web", "beginAt": 0, "portNumber": 1}],
            }
        ],
    }
    answer = hub.scheduler(name, "POST", "jobs", json=job)
    assert answer.status_code == 202, answer.text
    return str(job["jobName"])


def echo(page: Page, address: str) -> str:
    """Open a WebSocket from the page; return what comes back."""
    return str(page.evaluate(_ECHO, address))
