"""The whole line in a real browser: log in, choose, start a server, submit a job, read its log.

Once on the process engine and once on Docker. Screenshots are kept in test-artifacts/e2e/<engine>.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.hub import PASSWORD, REPOSITORY, Hub
from tests.testbed.browser import CHROMIUM_FLAGS
from tests.testbed.cells import run_and_wait

#: Milliseconds that anything on a page may take, on a slow machine under load.
PATIENCE = 90_000
PRINTED = "hello from the job"


@pytest.fixture
def page(chromium: str) -> Iterator[Page]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000}, locale="en-GB")
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)
        yield page
        browser.close()


class Camera:
    """Keeps what the page looked like, in order."""

    def __init__(self, page: Page, engine: str) -> None:
        self._page, self._folder = page, REPOSITORY / "test-artifacts" / "e2e" / engine
        shutil.rmtree(self._folder, ignore_errors=True)
        self._taken = 0

    def shoot(self, what: str) -> None:
        self._taken += 1
        self._page.screenshot(path=self._folder / f"{self._taken}-{what}.png")


def documented_job() -> str:
    """Return the manual's hello-world job as a person would paste it; there is no GPU to ask here."""
    job = json.loads((REPOSITORY / "tests/fixtures/jobs/scm-helloworld.json").read_text())
    job["taskRoles"][0]["command"] = f"echo {PRINTED}; exit 0"
    return json.dumps(job, indent=2, ensure_ascii=False)


# (servers and kernels in containers: test_kernels_as_jobs.py; a browser that comes to one: the variant with
# subdomains; a tutorial in their image: notebooks/; what a job in Docker prints: test_couplet.py)
@pytest.mark.parametrize("engine", ["process", pytest.param("docker", marks=pytest.mark.long)])
def test_from_login_to_a_finished_job(hub: Hub, page: Page, engine: str) -> None:
    camera = Camera(page, engine)
    try:
        log_in(page, hub.url)
        choose_and_start(page, camera)
        open_notebook(page)
        submit(page, camera)
        read_the_log(page, camera)
        walk_through_the_tutorial(page, hub.url, camera)
    except BaseException:
        camera.shoot("where-it-stopped")
        raise


def log_in(page: Page, url: str) -> None:
    page.goto(url)
    page.get_by_label("Username:").fill("alice")
    page.get_by_label("Password:").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def choose_and_start(page: Page, camera: Camera) -> None:
    types = page.get_by_label("GPU type")
    expect(types.locator("option", has_text="TITANX (simulated): 3 of 3 free")).to_be_attached()
    types.select_option("P100")
    page.get_by_label("Number of GPUs").fill("1")
    page.get_by_label("Memory (MB)", exact=True).fill("2048")
    camera.shoot("options")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/hub/spawn-pending/**")
    camera.shoot("starting")
    page.wait_for_url("**/user/alice/lab**")


def open_notebook(page: Page) -> None:
    page.locator(".jp-LauncherCard[data-category='Notebook']").first.click()
    # a cell that is run before there is a kernel is not run at all
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    run_and_wait(page, "from pai_labextension import JobForm; form = JobForm(); form")


def submit(page: Page, camera: Camera) -> None:
    page.get_by_label("Job as JSON").fill(documented_job())
    expect(page.locator(".pai-SubmitBar")).to_contain_text("This job starts now.")
    camera.shoot("job")
    page.get_by_role("button", name="Submit job").click()
    expect(page.get_by_text("Submitted: helloworld_16be675e")).to_be_visible()


def read_the_log(page: Page, camera: Camera) -> None:
    # (the side bar has the words, too)
    notebook = page.locator(".jp-Notebook")
    expect(notebook.get_by_role("region", name="State of")).to_contain_text("Succeeded")
    printed = notebook.get_by_text(PRINTED, exact=True).first
    expect(printed).to_be_visible()
    printed.scroll_into_view_if_needed()
    camera.shoot("finished")


def walk_through_the_tutorial(page: Page, url: str, camera: Camera) -> None:
    # without what was open before, whose kernel is ready already
    page.goto(f"{url}/user/alice/lab/tree/tutorials/01-hello-world.ipynb?reset")
    expect(page.get_by_role("heading", name="Hello, world — your first jobs")).to_be_visible()
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
    # a cell that fails ends the run; the tenth is the last
    expect(page.locator(".jp-InputPrompt", has_text="[10]:")).to_be_visible()
    camera.shoot("tutorial")
