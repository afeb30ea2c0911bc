"""What a person sees while a server starts, when the Hub is killed, and when something ends."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from pai_scheduler.engine.cgroups import Cgroups
from pai_scheduler.testing.ports import free_port
from tests.hub import ADMIN_PASSWORD, PASSWORD, REPOSITORY, Hub, wait_for
from tests.testbed.browser import CHROMIUM_FLAGS

#: Milliseconds that anything on a page may take, on a slow machine under load.
PATIENCE = 60_000
AXE = REPOSITORY / "pai_labextension" / "ui" / "node_modules" / "axe-core" / "axe.min.js"
STARTS = re.compile("^It starts in about (5[0-9]|60) minutes.$")
#: Where one is asked whether a program may know who one is.
CONSENT = (
    "api/oauth2/authorize?client_id=service-pai&response_type=code&state=x"
    "&redirect_uri=%2Fservices%2Fpai%2Foauth_callback"
)
NAMES = {"Hub", "JupyterHub", "PAI", "root", "carol", "dora", "holder", "revoke"}
WAITING = {"gpus": 3, "gpu_type": "TITANX"}


@pytest.fixture(scope="module")
def hub(process_hub: Hub) -> Iterator[Hub]:
    yield process_hub
    process_hub.clear()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Return a browser that nobody is logged in with."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page(hub: Hub, browser: Browser) -> Page:
    """Return carol's browser, logged in."""
    return log_in(hub, browser.new_page(locale="en-GB"), "carol", PASSWORD)


@pytest.fixture(scope="module")
def root(hub: Hub, browser: Browser) -> Page:
    """Return the browser of an administrator who reads Chinese."""
    return log_in(hub, browser.new_page(locale="zh-CN"), "root", ADMIN_PASSWORD)


def log_in(hub: Hub, page: Page, name: str, password: str) -> Page:
    """Log in with the form."""
    page.set_default_timeout(PATIENCE)
    page.goto(f"{hub.url}/hub/login")
    page.fill("#username_input", name)
    page.fill("#password_input", password)
    page.click("#login_submit")
    page.wait_for_url(re.compile("/(hub|user)/"))
    return page


@pytest.fixture(scope="module")
def held(hub: Hub) -> None:
    """Have all GPUs of one type in use, for an hour at most."""
    assert hub.start_server("holder", {**WAITING, "run_minutes": 60}).is_success
    hub.wait_ready("holder")


@contextlib.contextmanager
def proxy_without_servers(hub: Hub) -> Iterator[None]:
    """Run a proxy at the Hub's address that was told nothing."""
    program = REPOSITORY / "build/proxy/node_modules/configurable-http-proxy/bin/configurable-http-proxy"
    ports = ("--ip", "127.0.0.1", "--port", str(hub.port), "--api-port", str(free_port()))
    with subprocess.Popen(["node", str(program), *ports]) as proxy:
        try:
            yield
        finally:
            proxy.kill()


@pytest.mark.usefixtures("held")
def test_a_killed_hub_is_outlived_by_a_start_that_is_watched_and_by_lab(
    hub: Hub, page: Page, browser: Browser
) -> None:
    assert hub.start_server("dora", {"memory_mb": 768}).is_success
    hub.wait_ready("dora")
    lab = log_in(hub, browser.new_page(locale="en-GB"), "dora", PASSWORD)
    lab.goto(f"{hub.url}/user/dora/lab/tree/tutorials")
    expect(lab.locator(".jp-DirListing-item").first).to_be_visible()
    (job,) = hub.running_jobs("dora")
    assert hub.start_server("carol", WAITING).status_code == 202
    page.goto(f"{hub.url}/hub/spawn-pending/carol")
    expect(page).to_have_title("Place 1 in the queue · Default server · PAI")
    expect(page.locator("#progress-message")).to_contain_text("TITANX")
    expect(page.locator("#pai-starts")).to_have_text(STARTS)

    hub.kill()
    expect(page.locator("#pai-lost")).to_be_visible()
    said = lab.locator(".pai-Banner")
    expect(said).to_contain_text("Your server runs on")
    expect(lab.locator(".jp-Dialog")).to_have_count(0)
    # as the proxy is until the Hub has told it which servers there are: JupyterLab is told 404
    with proxy_without_servers(hub):
        with lab.expect_response(
            lambda answer: "/api/contents/tutorials" in answer.url and answer.status == 404
        ):
            lab.locator('[data-command="filebrowser:refresh"]').click()
        expect(said).to_contain_text("Your server runs on")
    hub.start()
    expect(said).to_have_count(0)
    expect(lab.locator(".jp-Dialog")).to_have_count(0)
    expect(lab.locator("#filebrowser .jp-BreadCrumbs")).to_contain_text("tutorials")
    expect(page.locator("#pai-lost")).to_be_hidden()
    expect(page).to_have_title("Place 1 in the queue · Default server · PAI")
    page.goto(f"{hub.url}/hub/home")
    expect(page.locator("[data-server=''] [data-part=starts]")).to_have_text(STARTS)
    page.goto(f"{hub.url}/hub/spawn-pending/carol")
    expect(page.locator("#pai-starts")).to_have_text(STARTS)

    page.get_by_role("button", name="Cancel").click()
    expect(page.get_by_role("heading", name="The start was cancelled.")).to_be_visible()
    page.get_by_role("link", name="My servers").click()
    expect(page.locator("[data-server=''] [data-ending=cancelled]")).to_be_visible()
    assert hub.running_jobs("carol") == []

    # and Lab says in the end why the server has ended
    hub.scheduler("dora", "PUT", f"user/dora/jobs/{job['name']}/executionType", json={"value": "STOP"})
    wait_for(lambda: not hub.running_jobs("dora"), "dora's job to end")
    dialog = lab.get_by_role("dialog").filter(has_text="The server has ended")
    expect(dialog).to_contain_text("Stopped by dora.")
    dialog.get_by_role("button", name="Start again").click()
    lab.wait_for_url("**/hub/spawn/dora*")
    lab.close()


@pytest.mark.usefixtures("held")
def test_a_pull_is_one_line_of_what_has_happened(hub: Hub, page: Page) -> None:
    told: list[dict[str, Any]] = [{"message": f"pulling: {n} % of 2.1 GB", "again": True} for n in (1, 2, 3)]
    stream = "".join(f"data: {json.dumps(event)}\n\n" for event in [{"message": "placed"}, *told])
    assert hub.start_server("carol", WAITING).status_code == 202
    page.route("**/progress*", lambda route: route.fulfill(content_type="text/event-stream", body=stream))
    page.goto(f"{hub.url}/hub/spawn-pending/carol")
    expect(page.locator("#progress-message")).to_have_text("pulling: 3 % of 2.1 GB")
    expect(page.locator(".progress-log-event")).to_have_text(["placed", "pulling: 3 % of 2.1 GB"])
    page.unroute("**/progress*")
    page.goto(f"{hub.url}/hub/home")
    hub.stop_server("carol")


@pytest.mark.usefixtures("held")
def test_no_page_of_the_hub_has_a_serious_fault_for_whoever_cannot_see_or_point(
    hub: Hub, page: Page, browser: Browser
) -> None:
    stranger = browser.new_page(locale="zh-CN")
    found = [_faults(stranger, f"{hub.url}/hub/login")]
    stranger.close()
    assert hub.start_server("carol", WAITING).status_code == 202
    found += [
        _faults(page, f"{hub.url}/hub/{place}")
        for place in ("home", "spawn-pending/carol", "nowhere", "admin", CONSENT)
    ]
    hub.stop_server("carol")
    found += [
        _faults(page, f"{hub.url}{place}")
        for place in ("/hub/home", "/hub/token", "/hub/spawn/carol", "/user/carol/")
    ]
    assert not any(found), [fault for faults in found for fault in faults]


@pytest.mark.usefixtures("held")
def test_no_page_for_administrators_has_a_serious_fault_for_whoever_cannot_see_or_point(
    hub: Hub, root: Page
) -> None:
    # a word of JupyterHub's, and here somebody's name
    assert hub.api("revoke", "GET", "user").is_success
    found = []
    for place in ("", "#/add-users", "#/groups", "#/create-group"):
        url = f"{hub.url}/hub/admin{place}"
        found.append(_faults(root, url, ready="#react-admin-hook button"))
        assert english(root.locator("#react-admin-hook").inner_text()) == set(), url
    assert not any(found), [fault for faults in found for fault in faults]

    # what cannot be done is said in a sentence with a number in it
    root.goto(f"{hub.url}/hub/admin")
    root.route("**/users/*/server?*", lambda route: route.fulfill(status=400, json={"message": "no"}))
    root.get_by_test_id("start-all").click()
    expect(root.get_by_text("个服务器未能启动。它们是否已在运行？")).to_be_visible()
    root.unroute("**/users/*/server?*")

    root.goto(f"{hub.url}/hub/admin")
    row = root.get_by_test_id("user-row-revoke")
    row.get_by_test_id("user-row-name").get_by_role("button").click()
    details = root.locator(".collapse.show th")
    expect(details.first).to_be_visible()
    # what the Hub calls it is told to who points at it
    expect(root.locator(".collapse.show th[title=last_activity]").first).to_have_text("最近活动")
    assert english(" ".join(details.all_inner_texts())) == set()
    expect(row.get_by_test_id("user-row-name")).to_have_text("revoke")
    row.get_by_role("button", name="编辑用户").click()
    expect(root.get_by_role("heading", name="编辑用户 revoke")).to_be_visible()


def english(text: str) -> set[str]:
    """Return the words of a page in Chinese that are neither Chinese nor a name."""
    return set(re.findall("[A-Za-z]{2,}", text)) - {
        "Hub",
        "JupyterHub",
        "root",
        "carol",
        "dora",
        "holder",
        "revoke",
    }


def test_a_server_that_is_being_stopped_says_so(hub: Hub, page: Page) -> None:
    have_server(hub)
    place = "/hub/spawn-pending/carol"
    shown: list[str] = []

    def is_stopping() -> bool:
        # (until the stop has begun it leads to the server, which does not answer)
        shown.append(reader.get(place, follow_redirects=False).text)
        return "<h1" in shown[-1] and "Stopping the server" in shown[-1]

    with hub.browser("carol") as reader:
        held_up = pids_of(hub, "carol")
        assert held_up
        for pid in held_up:
            # (what it has just asked may have ended by now)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGSTOP)
        try:
            page.goto(f"{hub.url}/hub/home")
            page.locator("[data-server='']").get_by_role("button", name="Stop").click()
            wait_for(is_stopping, "the page of a server that is stopped")
        finally:
            for pid in held_up:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)
    # it is looked at for longer than a stop takes
    page.route(f"**{place}", lambda route: route.fulfill(content_type="text/html", body=shown[-1]))
    assert not _faults(page, f"{hub.url}{place}")
    page.unroute(f"**{place}")
    page.goto(f"{hub.url}/hub/home")
    expect(page.locator("[data-server='']").get_by_role("heading", name="It was stopped.")).to_be_visible()


def pids_of(hub: Hub, name: str) -> list[int]:
    """Return the processes of somebody's server of this Hub; others may be tested at the same time."""
    user, folder = f"JUPYTERHUB_USER={name}".encode(), str(hub.folder).encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                environment = (entry / "environ").read_bytes()
                if user in environment.split(b"\0") and folder in environment:
                    found.append(int(entry.name))
    return found


def _faults(page: Page, url: str, *, ready: str = "main") -> list[str]:
    """Return what axe finds serious on a page: light on a telephone, dark in a narrow window."""
    faults = []
    page.emulate_media(reduced_motion="reduce")
    page.goto("about:blank")  # another place on the same page is no other page
    page.goto(url)
    page.locator(ready).first.wait_for()
    # a page that loads itself again would take axe with it
    page.evaluate("for (let timer = setTimeout(() => {}); timer; timer--) clearTimeout(timer)")
    page.add_script_tag(path=AXE)
    for scheme, width in (("light", 360), ("dark", 600)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.set_viewport_size({"width": width, "height": 800})
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            faults.append(f"{url} {scheme} {width}: {wide} pixels wide")
        found = page.evaluate("axe.run()")
        faults += [
            f"{url} {scheme} {width}: {fault['id']} {[node['html'] for node in fault['nodes']]}"
            for fault in found["violations"]
            if fault["impact"] in ("serious", "critical") or fault["id"] == "landmark-one-main"
        ]
    page.set_viewport_size({"width": 1280, "height": 720})
    page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    return faults


def test_the_home_goes_on_without_a_reload(hub: Hub, page: Page) -> None:
    page.goto(f"{hub.url}/hub/home")
    page.evaluate("window.untouched = true")
    assert hub.start_server("carol", {"memory_mb": 768}).is_success
    expect(page.locator("[data-server=''][data-state=running]")).to_be_visible()
    page.get_by_label("Another server beside these").fill("Größeres")
    page.get_by_role("button", name="Add").click()
    added = page.locator("[data-server]").filter(has_text="Größeres")
    expect(added).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    added.get_by_role("button", name="Delete").click()
    expect(added).to_have_count(0)
    assert page.evaluate("window.untouched")


def have_server(hub: Hub) -> None:
    """Wait until carol has a server with 768 MB, which a test before this one may have started."""
    if not hub.server("carol"):
        assert hub.start_server("carol", {"memory_mb": 768}).is_success
    hub.wait_ready("carol")


def test_a_kernel_that_is_killed_for_memory_says_so_in_the_notebook(
    hub: Hub, page: Page, tmp_path: Path
) -> None:
    groups = Cgroups.find(tmp_path)
    if groups.unlimited or "memory" in groups.controllers:
        # version 2 of control groups ends the server as a whole: the Hub's page says so
        reason = str(groups.unlimited or "control groups of version 2")
        if groups.unlimited and os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    have_server(hub)
    cell = {"cell_type": "code", "source": "x = bytearray(3_000_000_000)", "metadata": {}, "outputs": []}
    notebook = {
        "cells": [{**cell, "execution_count": None, "id": "hog"}],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    body = {"type": "notebook", "format": "json", "content": notebook}
    made = hub.api("carol", "PUT", "../../user/carol/api/contents/hog.ipynb", content=json.dumps(body))
    assert made.is_success, made.text
    page.goto(f"{hub.url}/user/carol/lab/tree/hog.ipynb")
    # (the indicator says idle before the notebook has its kernel, and a cell is not run then)
    expect(page.get_by_role("button", name="Python 3 (ipykernel) | Idle")).to_be_visible()
    page.locator(".jp-Notebook .jp-CodeCell .cm-content").press("Shift+Enter")
    output = page.locator(".jp-Notebook .jp-OutputArea-output")
    expect(output).to_contain_text("The kernel was ended because the memory was not enough")
    expect(output).to_contain_text("have 768 MB")


def test_lab_says_that_the_login_has_expired_and_goes_on_after_the_next_one(
    hub: Hub, browser: Browser
) -> None:
    have_server(hub)
    with browser.new_context(locale="en-GB") as tabs:
        page = log_in(hub, tabs.new_page(), "carol", PASSWORD)
        page.goto(f"{hub.url}/user/carol/lab?reset")
        page.locator(".jp-LauncherCard", has_text="New PAI job").click()
        page.get_by_label("Job name").fill("typed-before")
        sentence = page.get_by_text("Your login has expired.")
        other = tabs.new_page()
        other.goto(f"{hub.url}/hub/logout")
        expect(sentence.first).to_be_visible()
        log_in(hub, other, "carol", PASSWORD)
        expect(sentence).to_have_count(0)
        expect(page.get_by_label("Job name")).to_have_value("typed-before")
        # (Chromium may wait for ever to close a page that is just going from one address to the next)
        expect(other.locator(".jp-LauncherCard").first).to_be_visible()
