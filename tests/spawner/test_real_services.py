"""TensorBoard and VS Code, as the example profiles name them, in a real browser behind a real Hub."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.hub import PASSWORD, REPOSITORY, Hub, open_hub, wait_for
from tests.testbed.browser import CHROMIUM_FLAGS
from tests.testbed.fixtures import provide
from tests.testbed.web_programs import provide_code_server, provide_tensorboard, write_curve

#: Milliseconds that anything on a page may take, on a slow machine under load.
PATIENCE = 90_000
PROFILES = REPOSITORY / "hub_config" / "examples" / "services.yaml"
SERVICE = "/user/alice/pai-service/"
#: What TensorBoard asks for without its prefix, whatever it is told: its own font.
NO_FAULT_OF_OURS = "/font-roboto/"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """A Hub on whose PATH the programs are, once they are provided."""
    folder = tmp_path_factory.mktemp("hub")
    (folder / "bin").mkdir()
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    with open_hub(folder / "hub", "process", PAI_PROFILES=str(PROFILES), PATH=path) as hub:
        yield hub


@pytest.fixture(scope="module")
def page(hub: Hub, chromium: str) -> Iterator[Page]:
    """Return alice's browser, logged in."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        page = browser.new_page(locale="en-GB")
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        page.goto(f"{hub.url}/hub/login")
        page.fill("#username_input", "alice")
        page.fill("#password_input", PASSWORD)
        page.click("#login_submit")
        page.wait_for_url("**/hub/**")
        yield page
        browser.close()


def put_on_path(hub: Hub, program: Path) -> None:
    (hub.folder.parent / "bin" / program.name).symlink_to(program)


def test_tensorboard_draws_the_curve_of_a_training(hub: Hub, page: Page) -> None:
    programs = provide(provide_tensorboard)
    put_on_path(hub, programs / "tensorboard")
    assert hub.start_server("alice", {"profile": "tensorboard"}).is_success
    hub.wait_ready("alice")
    write_curve(programs, hub.folder / "home" / "alice" / "runs" / "first", "loss")
    with hub.browser("alice") as own:
        # it looks for new files every few seconds
        wait_for(
            lambda: own.get(f"{SERVICE}data/runs").json() == ["first"], "TensorBoard to find the run", hub.log
        )

    failed: list[str] = []
    page.on("response", lambda answer: failed.append(answer.url) if answer.status >= 400 else None)
    page.goto(f"{hub.url}/hub/home")
    page.get_by_role("link", name="Open TensorBoard").click()
    page.wait_for_url(f"**{SERVICE}")
    expect(page.locator("card-view").filter(has_text="loss").first).to_be_visible()
    expect(page.locator("card-view line-chart").first).to_be_visible()
    assert [url for url in failed if NO_FAULT_OF_OURS not in url] == []

    with hub.browser("mallory") as other:
        assert other.get(f"{SERVICE}data/runs").status_code == 403
    hub.stop_server("alice")


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_vs_code_opens_the_home_and_its_websockets_work(hub: Hub, page: Page) -> None:
    put_on_path(hub, provide(provide_code_server) / "code-server")
    assert hub.start_server("alice", {"profile": "vs-code"}).is_success
    hub.wait_ready("alice")
    (hub.folder / "home" / "alice" / "hello.txt").write_text("from the home\n")

    received: list[str] = []
    page.on(
        "websocket",
        lambda socket: socket.on("framereceived", lambda _frame: received.append(socket.url)),
    )
    page.goto(f"{hub.url}/user/alice/")
    page.get_by_role("button", name="Yes, I trust the authors").click()
    page.get_by_role("treeitem", name="hello.txt").dblclick()
    # the text comes over the WebSocket
    expect(page.locator(".view-lines")).to_contain_text("from the home")
    assert received
    assert all(SERVICE in url for url in received)
    hub.stop_server("alice")
