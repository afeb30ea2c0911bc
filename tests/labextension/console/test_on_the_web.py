"""The console on the web, on a real Hub with a real scheduler: its pages, and who gets what from it."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.hub import ADMIN_PASSWORD, PASSWORD, Hub, xsrf
from tests.testbed.scheduler import clean_environ
from tests.testbed.warm import run_pai_text

CONSOLE = "/services/pai-console/"

AXE = "pai_labextension/ui/node_modules/axe-core/axe.min.js"


def job(name: str, command: str, **role: Any) -> dict[str, Any]:
    task = {"name": "worker", "cpuNumber": 1, "memoryMB": 100, "command": command, **role}
    return {"jobName": name, "image": "local/any", "taskRoles": [task]}


def serious_faults(page: Page) -> list[str]:
    """Return what axe finds wrong with a page."""
    # (its script may not come into the page by an element: the policy forbids that)
    page.evaluate(Path(AXE).read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document)")
    return [
        f"{one['id']}: {node['html']}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def submit(hub: Hub, user: str, *jobs: dict[str, Any]) -> None:
    for one in jobs:
        assert hub.scheduler(user, "POST", "jobs", json=one).is_success


def opened(browser: Browser, hub: Hub, user: str, path: str = "", **options: Any) -> Page:
    """Open an address of the console as somebody who is not logged in: the Hub's login leads back to it."""
    page = browser.new_page(**options)
    page.goto(hub.url + CONSOLE + path)
    page.fill("#username_input", user)
    page.fill("#password_input", ADMIN_PASSWORD if user == "root" else PASSWORD)
    page.click("#login_submit")
    return page


def test_a_person_watches_and_stops_jobs_without_a_notebook_server(hub: Hub, browser: Browser) -> None:
    submit(hub, "alice", job("too-large", "true", gpuNumber=8, taskNumber=20))
    pai = partial(
        run_pai_text,
        environ=clean_environ({"PAI_API_URL": f"{hub.url}/services/pai", "PAI_TOKEN": hub.token("alice")}),
    )
    workers = json.dumps(job("two-workers", "echo begun; exec sleep 600", taskNumber=2))
    address = f"{hub.url}{CONSOLE}jobs/alice/two-workers"
    # the command line leads to the page of a job, and the page can be sent on
    assert pai(("submit", "-"), stdin=workers).stdout.splitlines()[:2] == [
        "Job two-workers is submitted.",
        address,
    ]
    assert address in pai(("show", "two-workers")).stdout
    with opened(browser, hub, "alice") as page:
        broken: list[str] = []
        page.on("console", lambda said: broken.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: broken.append(str(error)))
        expect(page).to_have_title("Jobs · PAI")
        expect(page.get_by_role("row", name=re.compile("too-large"))).to_contain_text(
            "the largest node has 4"
        )
        page.get_by_role("link", name="Queue").click()
        expect(page.get_by_text("too-large")).to_be_visible()
        page.get_by_role("link", name="Cluster").click()
        expect(page.get_by_text("node-a", exact=True)).to_be_visible()
        page.go_back()
        expect(page).to_have_url(re.compile(r"/pai-console/queue$"))
        page.get_by_role("link", name="Jobs", exact=True).click()
        page.get_by_text("two-workers", exact=True).click()
        expect(page.get_by_text("begun", exact=True)).to_be_visible()
        page.get_by_role("button", name="Copy link").click()
        expect(page.get_by_role("button", name="Copied")).to_be_visible()
        page.get_by_role("button", name="More of the log").click()
        with page.expect_download() as download:
            page.get_by_role("link", name="Download the whole log").click()
        assert download.value.path().read_text() == "begun\n"
        page.get_by_role("tab", name="Tasks").click()
        expect(page.get_by_role("row", name=re.compile("worker-1"))).to_contain_text("Running")
        expect(page).to_have_url(re.compile(r"/pai-console/jobs/alice/two-workers\?tab=tasks$"))
        # the address is all that another tab needs
        page.reload()
        expect(page.get_by_role("tab", name="Tasks")).to_have_attribute("aria-selected", "true")
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("dialog").get_by_role("button", name="Stop the job").click()
        expect(page.get_by_text("Stopped", exact=True).first).to_be_visible()
        assert broken == []


def test_a_person_keeps_files_in_the_storage_without_a_notebook_server(
    hub: Hub, browser: Browser, tmp_path: Path
) -> None:
    (tmp_path / "data" / "sub").mkdir(parents=True)
    (tmp_path / "data" / "a.txt").write_text("hello\n")
    (tmp_path / "data" / "sub" / "b.json").write_text("{}")
    (tmp_path / "large.bin").write_bytes(bytes(20_000_000))  # is sent in pieces
    with opened(browser, hub, "dora", "storage") as page:
        rows = page.get_by_role("table", name="Files")
        expect(page.get_by_text("Nothing is here yet.")).to_be_visible()
        page.evaluate(
            """() => (window.shares = []) && new MutationObserver(() => {
                const bar = document.querySelector('progress');
                if (bar) window.shares.push(bar.value / bar.max);
            }).observe(document.body, {subtree: true, childList: true, attributes: true})"""
        )
        for button, chosen in (
            ("Upload files", tmp_path / "large.bin"),
            ("Upload a folder", tmp_path / "data"),
        ):
            with page.expect_file_chooser() as chooser:
                page.get_by_role("button", name=button).click()
            chooser.value.set_files(chosen)
            expect(rows.get_by_role("row", name=re.compile(f"^{chosen.name}"))).to_be_visible()
        expect(rows.get_by_role("row", name=re.compile(r"^large"))).to_contain_text("19.1 MiB")
        assert page.evaluate("() => window.shares.some(share => 0 < share && share < 1)")
        page.get_by_role("link", name="data").click()
        expect(page).to_have_url(re.compile(r"/storage\?path=%2Fdora%2Fdata$"))
        page.get_by_role("button", name="a.txt", exact=True).click()
        expect(page.get_by_role("dialog", name="a.txt")).to_contain_text("hello")
        page.keyboard.press("Escape")
        # by keyboard: from the folder above it, to another name
        page.get_by_role("link", name="sub").press("ArrowDown")
        page.keyboard.press("F2")
        page.get_by_role("textbox", name="Name").fill("sub")
        page.keyboard.press("Enter")
        expect(page.get_by_role("dialog")).to_contain_text("“sub” is already there: choose another name.")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="a.txt", exact=True).press("F2")
        page.get_by_role("textbox", name="Name").fill("ä & b.txt")
        page.keyboard.press("Enter")
        page.get_by_role("button", name="What can be done with “ä & b.txt”").click()
        with page.expect_download() as download:
            page.get_by_role("menuitem", name="Download").click()
        assert download.value.path().read_text() == "hello\n"
        assert download.value.suggested_filename == "ä & b.txt"
        assert "_xsrf" not in download.value.url
        page.get_by_role("button", name="New folder").click()
        page.get_by_role("textbox", name="Name").fill("new")
        page.keyboard.press("Enter")
        expect(page.get_by_role("link", name="new")).to_be_visible()
        page.get_by_role("link", name="dora").click()
        page.get_by_role("link", name="data").press("Delete")
        expect(page.get_by_role("dialog")).to_contain_text("Files: 2, 8 B.")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_role("link", name="data")).to_have_count(0)
        # of a file, its folder is shown; what is another's is not
        page.goto(f"{hub.url}{CONSOLE}storage?path=/dora/large.bin")
        expect(rows.locator("[aria-current]")).to_contain_text("large.bin")
        page.goto(f"{hub.url}{CONSOLE}storage?path=/alice")
        expect(page.get_by_role("alert")).to_contain_text("may not read /alice")


def test_a_job_is_written_in_three_ways_kept_submitted_cloned_and_scheduled_on_the_web(
    hub: Hub, browser: Browser, tmp_path: Path
) -> None:
    with opened(browser, hub, "erin") as page:
        broken: list[str] = []
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.on("console", lambda said: broken.append(said.text) if "Policy" in said.text else None)
        page.get_by_role("main").get_by_role("button", name="New job").click()
        name = page.get_by_label("Job name")
        code = page.get_by_role("textbox", name="Job as JSON")
        # the form, and code beside it; a reload loses nothing
        name.fill("typed")
        expect(code).to_contain_text('"jobName": "typed"')
        code.get_by_text('"typed"').dblclick()
        page.keyboard.type("typed-as-code")
        expect(name).to_have_value("typed-as-code")
        page.reload()
        expect(name).to_have_value("typed-as-code")
        expect(page.get_by_role("region", name="Submit")).to_contain_text("Still needed:Command of main")
        page.get_by_role("button", name="Submit job").click()
        expect(page.get_by_label("Command")).to_be_focused()
        page.keyboard.type("echo first")
        expect(page.get_by_role("region", name="Submit")).to_contain_text("This job starts now.")
        page.get_by_role("button", name="Submit job").click()
        expect(page).to_have_url(re.compile(r"/jobs/erin/typed-as-code$"))
        expect(page.get_by_text("first", exact=True)).to_be_visible()
        # a copy of it, as text that is pasted over it, then as a file
        page.get_by_role("button", name="Clone and edit").click()
        expect(page).to_have_url(re.compile(r"/submit\?from=erin%2Ftyped-as-code$"))
        expect(name).to_have_value(re.compile(r"^typed-as-code_\w+$"))
        expect(code).to_contain_text("echo first")
        page.get_by_label("Command").fill("echo changed")
        page.evaluate(
            """text => {
                const data = new DataTransfer();
                data.setData('text/plain', text);
                document.querySelector('.pai-JobEditor').dispatchEvent(
                    new ClipboardEvent('paste', {clipboardData: data, bubbles: true, cancelable: true}));
            }""",
            json.dumps(job("pasted", "echo second")),
        )
        expect(name).to_have_value("pasted")
        page.get_by_role("button", name="Undo").click()
        expect(name).to_have_value(re.compile(r"^typed-as-code_\w+$"))
        file = tmp_path / "imported.json"
        file.write_text(json.dumps(job("imported", "echo third"), indent=2))
        page.get_by_label("Choose a job file").set_input_files(file)
        expect(page.get_by_text("Imported: imported.json")).to_be_visible()
        expect(code).to_contain_text("echo third")
        with page.expect_download() as download:
            page.get_by_role("button", name="Save as a file").click()
        assert json.loads(download.value.path().read_text())["jobName"] == "imported"
        page.get_by_role("button", name="Submit job").click()
        expect(page).to_have_url(re.compile(r"/jobs/erin/imported$"))
        page.get_by_role("link", name="New job").click()
        expect(name).to_have_value(re.compile(r"^job_"))
        page.get_by_label("Begin with a template").select_option(label="One GPU")
        expect(page.get_by_label("GPUs")).to_have_value("1")
        page.get_by_role("button", name="Discard").click()
        expect(page.get_by_label("GPUs")).to_have_value("0")
        # what is to run again and again
        schedule = {"cron": "0 3 * * *", "timeZone": "UTC", "job": job("nightly", "echo night")}
        answer = hub.scheduler("erin", "PUT", "user/erin/schedules/nightly", json=schedule)
        assert answer.is_success, answer.text
        page.get_by_role("link", name="Schedules").click()
        row = page.get_by_role("listitem", name="nightly")
        expect(row).to_contain_text("Next run:")
        row.get_by_role("button", name="Run “nightly” now").click()
        expect(row).to_contain_text("nightly-")
        row.get_by_role("button", name="Delete schedule “nightly”").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_text("You have no schedules.")).to_be_visible()
        assert broken == []


def test_the_job_editor_knows_the_images_of_whoever_asks(hub: Hub) -> None:
    submit(hub, "alice", {**job("one", "true"), "image": "alice/secret:1"})
    with hub.browser("alice") as alice, hub.browser("bob") as bob:
        for client, images in ((alice, ["alice/secret:1"]), (bob, [])) * 2:
            client.get(CONSOLE)
            headers = {"X-XSRFToken": token_of(client)}
            assert client.get(CONSOLE + "job-editor", headers=headers).json()["images"] == images
    assert httpx.get(hub.url + CONSOLE + "job-editor", trust_env=False).status_code == 403


@pytest.mark.parametrize(("locale", "title"), [("en-GB", "Jobs"), ("zh-CN", "作业")])
def test_no_page_has_a_serious_fault_for_whoever_cannot_see_or_point(
    hub: Hub, browser: Browser, locale: str, title: str
) -> None:
    submit(hub, "alice", job("done", "echo hi"))
    with opened(
        browser, hub, "alice", locale=locale, color_scheme="dark", viewport={"width": 360, "height": 740}
    ) as page:
        expect(page).to_have_title(f"{title} · PAI")
        for path in ("jobs", "queue", "cluster", "storage", "schedules", "submit", "jobs/alice/done"):
            page.goto(hub.url + CONSOLE + path)
            expect(page.locator("main")).not_to_be_empty()
            page.wait_for_load_state("networkidle") if path == "jobs" else None
            assert serious_faults(page) == [], path
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= 360, path


def test_nobody_gets_a_page_or_an_answer_without_the_hubs_login(hub: Hub) -> None:
    with httpx.Client(base_url=hub.url, trust_env=False) as stranger:
        page = stranger.get(CONSOLE + "jobs/alice/one?tab=tasks")
        assert page.status_code == 302
        assert urlsplit(page.headers["Location"]).path == "/hub/api/oauth2/authorize"
        for path in ("api/v1/jobs", "api/v1/user", "webhdfs/v1/?op=GETHOMEDIRECTORY"):
            answer = stranger.get(CONSOLE + path)
            assert (answer.status_code, answer.json()["code"]) == (403, "LoginExpired")
        # a token in an address would stay in histories and logs
        answer = stranger.get(CONSOLE + "api/v1/user", params={"token": hub.token("alice")})
        assert answer.status_code == 403


def test_each_request_is_asked_in_the_name_of_whoever_sends_it(hub: Hub) -> None:
    submit(hub, "alice", job("secret", "exec sleep 600"))
    with hub.browser("alice") as alice, hub.browser("bob") as bob:
        people = {"alice": alice, "bob": bob}
        for client in people.values():
            assert client.get(CONSOLE).status_code == 200
        for _ in range(3):
            for name, client in people.items():
                headers = {"X-XSRFToken": token_of(client)}
                who = client.get(CONSOLE + "api/v1/user", headers=headers).json()
                assert who["username"] == name
                path = "api/v1/user/alice/jobs/secret"
                for method, below in (
                    ("GET", ""),
                    ("GET", "/config"),
                    ("PUT", "/executionType"),
                    ("DELETE", ""),
                ):
                    if name == "alice" and method != "GET":
                        continue
                    body: dict[str, Any] = {"json": {"value": "STOP"}} if method == "PUT" else {}
                    answer = client.request(method, CONSOLE + path + below, headers=headers, **body)
                    assert answer.status_code == (200 if name == "alice" else 404), answer.text
    assert hub.scheduler("alice", "GET", "user/alice/jobs/secret").json()["jobStatus"]["state"] != "STOPPED"


def test_a_request_that_another_page_makes_with_a_persons_cookies_is_refused(hub: Hub) -> None:
    with hub.browser("alice") as alice:
        alice.get(CONSOLE)
        forged = {
            "Origin": "https://elsewhere.example",
            "Sec-Fetch-Site": "cross-site",
            "Sec-Fetch-Mode": "cors",
        }
        body = json.dumps(job("forged", "true"))
        for headers in (
            forged,
            {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"},
            {"X-XSRFToken": "x"},
        ):
            answer = alice.post(CONSOLE + "api/v1/jobs", content=body, headers=headers)
            assert answer.status_code == 403, answer.text
        answer = alice.post(CONSOLE + "api/v1/jobs", content=body, headers={"X-XSRFToken": token_of(alice)})
        assert answer.status_code == 202, answer.text


def test_a_login_that_has_ended_is_noticed_and_said(hub: Hub, browser: Browser) -> None:
    with opened(browser, hub, "alice") as page:
        expect(page.get_by_text("You have no jobs yet")).to_be_visible()
        page.context.clear_cookies()
        expect(page.get_by_role("alert").first).to_contain_text("Your login has expired.")
        page.get_by_role("link", name="Log in again").click()
        expect(page.locator("#username_input")).to_be_visible()


def test_pages_may_load_nothing_from_elsewhere_and_nobody_may_frame_them(hub: Hub) -> None:
    with hub.browser("alice") as alice:
        page = alice.get(CONSOLE + "jobs", headers={"Accept-Encoding": "br, gzip"})
        policy = page.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert hub.token("alice") not in page.text
        first = re.findall(r"(?:src|href)=\"([^\"]*/static/[^\"]*)\"", page.text)
        sizes = {}
        for address in first:
            with alice.stream("GET", address, headers={"Accept-Encoding": "gzip"}) as answer:
                assert answer.status_code == 200
                assert "immutable" in answer.headers["Cache-Control"]
                sizes[address.rpartition(".")[2]] = sum(len(piece) for piece in answer.iter_raw())
        assert sizes["js"] <= 85 * 1024
        assert sizes["css"] <= 8 * 1024
        for path in (
            "static/../program.py",
            "static/%2e%2e/program.py",
            "static/files.json/../../program.py",
        ):
            assert "RefusedError" not in alice.get(CONSOLE + path).text


def test_names_that_are_written_as_html_are_shown_as_text(hub: Hub, browser: Browser) -> None:
    submit(hub, "alice", job("odd", "echo '<img src=x onerror=alert(1)>'"))
    with opened(browser, hub, "alice", "jobs/alice/odd") as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        expect(page.get_by_text("<img src=x onerror=alert(1)>")).to_be_visible()
        page.goto(f"{hub.url}{CONSOLE}jobs/alice/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E")
        expect(page.get_by_role("main")).to_contain_text("There is no job")


def test_a_person_works_in_a_terminal_of_a_task_and_finds_it_again(hub: Hub, browser: Browser) -> None:
    submit(hub, "alice", job("two", "exec sleep 600", taskNumber=2))
    with opened(browser, hub, "alice", "jobs/alice/two", viewport={"width": 1200, "height": 800}) as page:
        broken: list[str] = []
        page.on("console", lambda said: broken.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: broken.append(str(error)))
        expect(page.get_by_text("Running").first).to_be_visible()
        page.get_by_role("button", name="Terminal").click()
        page.get_by_role("dialog").get_by_label("Task").select_option("worker-1")
        page.get_by_role("dialog").get_by_role("button", name="Open").click()
        expect(page).to_have_url(re.compile(r"/pai-console/terminal/alice/two\?task=worker-1$"))
        expect(page).to_have_title("worker-1 · two · PAI")
        screen = page.locator(".xterm-rows")

        def run(command: str) -> None:
            page.keyboard.type(command)
            page.keyboard.press("Enter")

        expect(screen).to_contain_text(re.compile(r"[$#]"))
        run("echo task-$PAI_TASK_INDEX; kept=yes; stty size")
        expect(screen).to_contain_text("task-1")
        # (colours of 24 bits are written as style attributes)
        run("printf '\\033[38;2;1;90;3mgre''en\\033[0m\\n'")
        green = screen.get_by_text("green", exact=True)
        assert green.evaluate("element => getComputedStyle(element).color") == "rgb(1, 90, 3)"
        wide = int(re.findall(r"\d+ (\d{2,3})", screen.inner_text())[0])
        page.set_viewport_size({"width": 600, "height": 500})
        run("clear; echo now-$(stty size | cut -d' ' -f2)-")
        expect(screen).to_contain_text(re.compile(r"now-\d+-"))
        assert int(re.findall(r"now-(\d+)-", screen.inner_text())[0]) < 0.6 * wide
        page.reload()
        expect(screen).to_contain_text(re.compile(r"now-\d+-"))
        run("echo kept=$kept.; exit")
        expect(page.get_by_text("This terminal has ended.")).to_be_visible()
        expect(screen).to_contain_text("kept=yes.")
        page.get_by_role("button", name="New terminal").click()
        expect(page.get_by_text("This terminal has ended.")).not_to_be_visible()
        # (a shell that begins throws away what was typed before)
        expect(screen).to_contain_text(re.compile(r"[$#]"))
        run("echo another-$kept-")
        expect(screen).to_contain_text("another--")
        assert broken == []
        # the rest of the console has the strict policy again
        page.get_by_role("link", name="two").click()
        expect(page.get_by_role("tab", name="Tasks")).to_be_visible()
        page.evaluate("document.body.innerHTML = '<p style=\"color: red\">x</p>'")
        colour = page.evaluate("getComputedStyle(document.querySelector('p')).color")
        assert colour != "rgb(255, 0, 0)"


def test_a_person_finds_out_how_programs_reach_a_task(hub: Hub, browser: Browser) -> None:
    submit(hub, "alice", job("one", "exec sleep 600", portList=[{"label": "board", "portNumber": 1}]))
    with opened(browser, hub, "alice", "connect/alice/one") as page:
        expect(page.get_by_role("heading", name="Connect to worker-0")).to_be_visible()
        expect(page).to_have_url(re.compile(r"/pai-console/connect/alice/one\?task=worker-0$"))
        page.get_by_role("button", name="Check the connection").click()
        expect(page.get_by_text("It works: logged in and ran a command.")).to_be_visible()
        page.get_by_role("tab", name="My keys").click()
        expect(page.get_by_text("You have registered no key yet.")).to_be_visible()
        page.get_by_role("tab", name="Ports").click()
        link = page.get_by_role("link", name="board").get_attribute("href")
        assert link == f"{hub.url}{CONSOLE}ports/alice/one/worker-0/board/"


def token_of(client: httpx.Client) -> str:
    """Return the token by which the console tells its own page's requests."""
    return next(
        (
            cookie.value or ""
            for cookie in client.cookies.jar
            if cookie.name == "_xsrf" and cookie.path == CONSOLE
        ),
        xsrf(client),
    )
