"""The service on a real Hub with a real scheduler and real notebook servers."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.hub import PASSWORD, Hub, open_hub, wait_for
from tests.testbed.browser import CHROMIUM_FLAGS

#: Nobody waits here: who is to be ended is ended at once, and whose end is looked at has ten minutes.
POLICY = """
every: 1s
rules:
  - {idleAfter: 10m, warnBefore: 9m 59s}
  - when: {users: [leaver]}
    idleAfter: 1s
    warnBefore: 1s
  - when: {users: [limited]}
    sessions: 1
    gpus: 1
"""
ARTEFACTS = Path(__file__).parents[3] / "test-artifacts" / "sessions"
KEEPER = "api/users/keeper/server"


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    folder = tmp_path_factory.mktemp("hub")
    file = folder / "sessions.yaml"
    file.write_text(POLICY)
    with open_hub(folder, "process", "--sessions", str(file), "--admin", "root") as hub:
        yield hub


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Return a browser that nobody is logged in with."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        expect.set_options(timeout=90_000)
        yield browser
        browser.close()


def test_an_idle_session_is_warned_and_its_user_keeps_it(hub: Hub) -> None:
    assert hub.start_server("keeper", {"gpus": 1}).is_success
    hub.wait_ready("keeper")
    wait_for(lambda: hub.sessions("keeper", "GET", KEEPER).json().get("warned"), "a warning", hub.log)
    warned = hub.sessions("keeper", "GET", KEEPER, headers={"Accept-Language": "zh-CN"}).json()
    assert (warned["cause"], warned["mayKeep"], warned["gpus"]) == ("idle", True, 1)
    assert "空闲" in warned["why"]

    kept = hub.sessions("keeper", "POST", f"{KEEPER}/keep").json()
    assert not kept["warned"]
    assert kept["endTime"] > warned["endTime"]
    # nobody else sees it, or keeps it
    for method, path in (("GET", KEEPER), ("POST", f"{KEEPER}/keep"), ("POST", f"{KEEPER}/end")):
        assert hub.sessions("mallory", method, path).status_code == 404
    assert hub.sessions("keeper", "POST", f"{KEEPER}/end").status_code == 403
    assert hub.sessions("mallory", "GET", "api/sessions").json() == {"sessions": []}
    hub.stop_server("keeper")


def test_the_home_says_how_long_a_server_has_left_and_what_ends_it_first(hub: Hub, browser: Browser) -> None:
    assert hub.start_server("planner", {}).is_success
    hub.wait_ready("planner")
    with browser.new_page(locale="en-GB") as page:
        page.goto(f"{hub.url}/hub/login?next=/hub/home")
        page.fill("#username_input", "planner")
        page.fill("#password_input", PASSWORD)
        page.click("#login_submit")
        row = page.locator("[data-server=''][data-state=running]")
        expect(row.locator("[data-part=left]")).to_have_text(
            re.compile("^([89]|10) minutes left if nobody uses it.$")
        )
        expect(row.locator("time[data-form=clock]")).to_have_text(re.compile(r"^\d\d:\d\d"))
        hub.stop_server("planner")
        assert hub.start_server("planner", {"run_minutes": 5}).is_success
        hub.wait_ready("planner")
        page.reload()
        expect(row.locator("[data-part=left]")).to_have_text(
            re.compile("^[45] minutes left of its time limit.$")
        )
    with hub.browser("planner", language="zh-CN") as reader:
        assert re.search("距其时间限制还剩 [45] 分钟。", reader.get("/hub/home").text)
    hub.stop_server("planner")


def test_an_idle_session_is_ended_and_its_job_says_why(hub: Hub) -> None:
    assert hub.start_server("leaver").is_success
    wait_for(lambda: hub.server("leaver") == {} and not hub.running_jobs("leaver"), "the end", hub.log)
    (job,) = hub.scheduler("leaver", "GET", "jobs").json()
    status = hub.scheduler("leaver", "GET", f"user/leaver/jobs/{job['name']}").json()["jobStatus"]
    assert status["state"] == "STOPPED"
    assert status["appExitDiagnostics"].startswith("Stopped by pai-sessions: the session was idle for")
    assert "Your files are kept" in status["appExitDiagnostics"]
    with hub.browser("leaver") as reader:
        home = html.unescape(reader.get("/hub/home").text)
    assert 'data-ending="session-ended"' in home
    assert "Stopped by pai-sessions: the session was idle for" in home


def test_a_session_beyond_a_users_limits_is_refused(hub: Hub) -> None:
    refused = hub.start_server("limited", {"gpus": 2})
    assert refused.status_code == 403
    assert "Your sessions may have 1 GPU together." in refused.json()["message"]
    assert hub.start_server("limited", {"gpus": 1}).is_success
    hub.wait_ready("limited")
    second = hub.start_server("limited", server="more")
    assert second.status_code == 403
    assert "You may have 1 session at once, and have your default server." in second.json()["message"]
    hub.stop_server("limited")
    assert hub.running_jobs("limited") == []


def test_an_administrator_sees_all_sessions_tells_their_users_something_and_ends_them(hub: Hub) -> None:
    assert hub.start_server("erin", {"gpus": 1}).is_success
    hub.wait_ready("erin")
    own = "api/users/erin/server"
    assert hub.sessions("erin", "GET", own).is_success
    (row,) = hub.sessions("root", "GET", "api/sessions").json()["sessions"]
    assert (row["user"], row["gpus"]) == ("erin", 1)
    told = hub.sessions("root", "POST", f"{own}/messages", json={"text": "Back at <noon>"})
    assert told.status_code == 202
    (message,) = hub.sessions("erin", "GET", own).json()["messages"]
    assert (message["sender"], message["text"]) == ("root", "Back at <noon>")
    reason = {"reason": "GPU needed for a demo"}
    assert hub.sessions("root", "POST", f"{own}/end", json=reason).status_code == 202
    wait_for(lambda: hub.server("erin") == {}, "the end", hub.log)
    (job,) = hub.scheduler("erin", "GET", "jobs").json()
    status = hub.scheduler("erin", "GET", f"user/erin/jobs/{job['name']}").json()["jobStatus"]
    assert status["appExitDiagnostics"] == (
        "Stopped by pai-sessions: ended by the administrator root: GPU needed for a demo"
    )


def test_the_job_of_a_deleted_user_runs_on_until_an_administrator_sees_it_and_stops_it(hub: Hub) -> None:
    job = {
        "jobName": "left-behind",
        "image": "i",
        "taskRoles": [{"name": "w", "command": "sleep 600", "memoryMB": 100}],
    }
    assert hub.scheduler("gone", "POST", "jobs", json=job).is_success
    assert hub.scheduler("stays", "POST", "jobs", json={**job, "jobName": "own"}).is_success
    assert hub.api("root", "DELETE", "users/gone").status_code == 204
    asked = hub.sessions("root", "POST", "api/strangers", json={"names": ["gone", "stays"]})
    assert asked.json() == {"strangers": ["gone"]}
    for names in (None, ["x"] * 101, [1], "gone"):
        assert hub.sessions("root", "POST", "api/strangers", json={"names": names}).status_code == 400
    assert hub.sessions("stays", "POST", "api/strangers", json={"names": ["gone"]}).status_code == 403
    for name, one in (("gone", "left-behind"), ("stays", "own")):
        path = f"user/{name}/jobs/{one}/executionType"
        assert hub.scheduler("root", "PUT", path, json={"value": "STOP"}).is_success


def open_lab(hub: Hub, page: Page, user: str) -> None:
    page.set_default_timeout(60_000)
    page.goto(f"{hub.url}/hub/login?next=/user/{user}/lab")
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()


def test_jupyterlab_warns_keeps_tells_and_says_that_the_session_was_ended(hub: Hub, browser: Browser) -> None:
    ARTEFACTS.mkdir(parents=True, exist_ok=True)
    assert hub.start_server("zoe", {"gpus": 1}).is_success
    hub.wait_ready("zoe")
    with browser.new_page(viewport={"width": 1280, "height": 800}) as page:
        open_lab(hub, page, "zoe")
        shown = page.locator(".Toastify__toast")
        warning = shown.filter(has_text="This session is idle")
        expect(warning).to_contain_text("It ends in 10 minutes.")
        expect(page.locator(".pai-SessionStatus")).to_contain_text("10 minutes left")
        expect(page.locator(".pai-SessionStatus")).to_contain_text("of 2 GB")
        page.screenshot(path=ARTEFACTS / "warned.png")
        # in a narrow window, too
        size = page.viewport_size
        page.set_viewport_size({"width": 600, "height": 700})
        expect(page.locator(".pai-SessionStatus-text")).to_be_in_viewport(ratio=1)
        # (a part that is cut off counts as one that is out of view)
        expect(page.locator(".pai-SessionStatus-left")).to_be_in_viewport(ratio=1)
        page.screenshot(path=ARTEFACTS / "warned-600.png")
        if size is not None:
            page.set_viewport_size(size)
        warning.get_by_role("button", name="Keep").click()
        expect(shown.filter(has_text="This session is kept.")).to_be_visible()

        told = hub.sessions(
            "root", "POST", "api/users/zoe/server/messages", json={"text": "Maintenance at six"}
        )
        assert told.status_code == 202, told.text
        expect(shown.filter(has_text="root: Maintenance at six")).to_be_visible()
        # (the service warns again a second later, as the test's policy wants it)
        expect(shown.filter(has_text="This session is idle")).to_be_visible()

        file = hub.folder / "sessions.yaml"
        file.write_text(POLICY + "  - {when: {users: [zoe]}, idleAfter: 1s, warnBefore: 1s}\n")
        ended = shown.filter(has_text="This session was ended; your files are kept.")
        expect(ended).to_contain_text("the session was idle")
        page.screenshot(path=ARTEFACTS / "ended.png")
    (job,) = hub.scheduler("zoe", "GET", "jobs").json()
    status = hub.scheduler("zoe", "GET", f"user/zoe/jobs/{job['name']}").json()["jobStatus"]
    assert status["appExitDiagnostics"].startswith("Stopped by pai-sessions: the session was idle")


def test_jupyterlab_takes_the_warning_back_when_the_user_stops_the_session(
    hub: Hub, browser: Browser
) -> None:
    assert hub.start_server("yan").is_success
    hub.wait_ready("yan")
    with browser.new_page(viewport={"width": 1280, "height": 800}) as page:
        open_lab(hub, page, "yan")
        shown = page.locator(".Toastify__toast")
        expect(shown.filter(has_text="This session is idle")).to_be_visible()
        hub.stop_server("yan")
        expect(shown.filter(has_text="This session is idle")).to_have_count(0)
        expect(shown.filter(has_text="This session was ended")).to_have_count(0)
    with hub.browser("yan") as reader:
        assert 'data-ending="stopped"' in reader.get("/hub/home").text
