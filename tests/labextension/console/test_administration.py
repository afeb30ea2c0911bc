"""The pages of administrators on the web, on a real Hub: what they do there, and that nobody else may."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.hub import Hub, wait_for

from .test_on_the_web import CONSOLE, job, opened, serious_faults, submit, token_of


@pytest.fixture
def hub(hub: Hub) -> Iterator[Hub]:
    yield hub
    # what a test has left of the cluster's own state
    for node in hub.scheduler("root", "GET", "nodes").json():
        hub.scheduler("root", "PUT", f"nodes/{node['name']}", json={"schedulable": True})
    for window in hub.scheduler("root", "GET", "maintenance").json():
        hub.scheduler("root", "DELETE", f"maintenance/{window['name']}")
    shares = {"vcCapacity": 40, "vcMaxCapacity": 100}
    hub.scheduler("root", "PUT", "virtual-clusters/vision", json=shares)


def act(page: Page, row: str, action: str) -> None:
    """Choose something in the menu of a row."""
    page.get_by_role("button", name=f"What can be done with “{row}”", exact=True).click()
    page.get_by_role("menuitem", name=action, exact=True).click()


def ended(hub: Hub, user: str, name: str) -> str:
    """Return why a job was stopped; empty while it was not."""
    status = hub.scheduler("root", "GET", f"user/{user}/jobs/{name}").json()["jobStatus"]
    return str(status["appExitDiagnostics"] or "")


def test_an_administrator_looks_after_servers_jobs_nodes_and_virtual_clusters(
    hub: Hub, browser: Browser
) -> None:
    assert hub.start_server("erin", {"gpus": 1}).is_success
    # (three GPUs of that type are on node-b alone)
    spread = {**job("spread", "exec sleep 600", gpuNumber=3), "gpuType": "TITANX"}
    submit(hub, "carol", spread)
    submit(hub, "dave", *(job(f"try-{number}", "exec sleep 600") for number in range(3)))
    submit(hub, "dave", job("too-large", "true", gpuNumber=8, taskNumber=20))
    hub.wait_ready("erin")
    # (the service looks for new servers once a minute, and at one that it is asked about)
    assert hub.sessions("erin", "GET", "api/users/erin/server").is_success
    wait_for(lambda: len(hub.running_jobs("carol")) == 1, "carol's job")
    with opened(browser, hub, "root", "admin") as page:
        broken: list[str] = []
        page.on("console", lambda said: broken.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: broken.append(str(error)))
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        expect(page).to_have_title("Admin · PAI")
        stuck = page.get_by_role("region", name="Overview")
        expect(stuck).to_contain_text("Jobs that cannot start")
        expect(stuck).to_contain_text("too-large")
        expect(stuck).to_contain_text("the largest node has 4")

        page.get_by_role("link", name="Servers").last.click()
        expect(page).to_have_url(re.compile(r"/admin\?show=servers$"))
        act(page, "default server of erin", "Send message")
        page.get_by_role("textbox", name="Message").fill("Back at <img src=x onerror=alert(1)>")
        page.get_by_role("dialog").get_by_role("button", name="Send message").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        own = "api/users/erin/server"
        wait_for(lambda: hub.sessions("erin", "GET", own).json()["messages"], "the message", hub.log)
        (message,) = hub.sessions("erin", "GET", own).json()["messages"]
        assert message["sender"] == "root"
        act(page, "default server of erin", "Stop")
        asked = page.get_by_role("dialog", name="Stop 1 server?")
        expect(asked).to_contain_text("default server of erin")
        asked.get_by_label("Reason").fill("GPU needed for a demo")
        asked.get_by_role("button", name="Stop", exact=True).click()
        expect(page.get_by_text("No notebook server is running.")).to_be_visible()

        page.get_by_role("link", name="Jobs", exact=True).last.click()
        expect(page.get_by_role("row", name=re.compile("too-large"))).to_contain_text("Waiting")
        for name in ("try-0", "try-1"):
            page.get_by_role("checkbox", name=f"Choose “{name}”").check()
        page.get_by_role("button", name="Stop", exact=True).click()
        asked = page.get_by_role("dialog", name="Stop 2 jobs?")
        expect(asked).to_contain_text("“try-1” of dave")
        asked.get_by_label("Reason").fill("too <many>")
        asked.get_by_role("button", name="Stop 2 jobs").click()
        expect(page.get_by_role("row", name=re.compile("try-1"))).to_have_count(0)
        expect(page.get_by_role("row", name=re.compile("try-2"))).to_be_visible()

        page.get_by_role("link", name="Nodes", exact=True).click()
        act(page, "node-b", "Drain")
        asked = page.get_by_role("dialog", name="Drain node-b?")
        expect(asked).to_contain_text("1 task of carol on node-b: spread")
        expect(asked.get_by_role("button", name=re.compile("Drain and stop"))).to_be_disabled()
        asked.get_by_label("Reason").fill("new <disk>")
        asked.get_by_role("button", name=re.compile("Drain and stop")).click()
        row = page.get_by_role("row", name=re.compile("node-b"))
        expect(row).to_contain_text("closed by root: new <disk>")
        wait_for(lambda: "new <disk>" in ended(hub, "carol", "spread"), "carol's job to be stopped")
        act(page, "node-b", "Uncordon")
        expect(row).to_contain_text("ready")
        act(page, "node-a", "Plan maintenance")
        asked = page.get_by_role("dialog", name="Plan maintenance")
        asked.get_by_label("Name").fill("disks")
        asked.get_by_label("Reason").fill("new disks")
        asked.get_by_role("button", name="Plan maintenance").click()
        windows = page.get_by_role("table", name="Maintenance")
        expect(windows).to_contain_text("new disks")
        act(page, "disks", "Delete")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_text("No maintenance is planned.")).to_be_visible()

        page.get_by_role("link", name="Virtual clusters").click()
        act(page, "vision", "Change quota and users")
        asked = page.get_by_role("dialog", name="Quota of “vision”")
        asked.get_by_label("Guaranteed quota (%)").fill("120")
        expect(asked.get_by_role("alert")).to_contain_text("from 0 to 100")
        expect(asked.get_by_role("button", name="Save")).to_be_disabled()
        asked.get_by_label("Guaranteed quota (%)").fill("30")
        asked.get_by_label("Maximum quota (%)").fill("80")
        expect(asked.get_by_role("row", name=re.compile("default"))).to_contain_text("60 % → 70 %")
        expect(asked.get_by_role("row", name=re.compile("Sum"))).to_contain_text("100 %")
        asked.get_by_role("button", name="Save").click()
        expect(page.get_by_role("row", name=re.compile("vision"))).to_contain_text("80 %")
        page.get_by_role("link", name="Usage").click()
        expect(page.get_by_role("table", name="Users")).to_contain_text("dave")
        assert broken == []
    vision = hub.scheduler("dave", "GET", "virtual-clusters").json()["vision"]
    assert (vision["capacity"], vision["maxCapacity"]) == (30, 80)
    assert "too <many>" in ended(hub, "dave", "try-0")
    wait_for(lambda: hub.server("erin") == {}, "the server to stop", hub.log)
    (server,) = hub.scheduler("erin", "GET", "jobs").json()
    assert ended(hub, "erin", server["name"]) == (
        "Stopped by pai-sessions: ended by the administrator root: GPU needed for a demo"
    )


def test_the_pages_of_administrators_have_no_serious_fault_and_every_action_is_in_sight_on_a_phone(
    hub: Hub, browser: Browser
) -> None:
    submit(hub, "alice", job("running", "exec sleep 600", gpuNumber=1), job("huge", "true", gpuNumber=99))
    with opened(
        browser,
        hub,
        "root",
        "admin",
        locale="zh-CN",
        color_scheme="dark",
        viewport={"width": 360, "height": 740},
    ) as page:
        expect(page).to_have_title("管理 · PAI")
        for show in ("overview", "nodes", "clusters", "servers", "jobs", "usage"):
            page.goto(f"{hub.url}{CONSOLE}admin?show={show}")
            expect(page.get_by_role("navigation", name="管理")).to_be_visible()
            expect(page.get_by_text("请稍候")).to_have_count(0)
            if show in ("nodes", "clusters", "jobs"):
                expect(page.locator(".pai-Table-menu button").first).to_be_in_viewport(ratio=1)
            assert serious_faults(page) == [], show
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 360, show


#: What only administrators may do, by the console: its path, and what is sent.
WRITES: list[tuple[str, str, Any]] = [
    ("PUT", "api/v1/nodes/node-a", {"schedulable": False, "reason": "mine"}),
    ("PUT", "api/v1/virtual-clusters/vision", {"vcCapacity": 0}),
    ("PUT", "api/v1/virtual-clusters/vision/status", {"vcStatus": "stopped"}),
    ("DELETE", "api/v1/virtual-clusters/vision", None),
    (
        "PUT",
        "api/v1/maintenance/mine",
        {"nodes": ["*"], "begin": 1, "end": int((time.time() + 3600) * 1000), "reason": "mine"},
    ),
    ("DELETE", "api/v1/maintenance/mine", None),
    ("POST", "sessions/strangers", {"names": ["alice"]}),
    ("POST", "sessions/users/alice/server/end", {"reason": ""}),
    ("POST", "sessions/users/alice/servers/big/messages", {"text": "hi"}),
]


def test_nobody_but_administrators_does_any_of_it_and_nobody_by_a_forged_request(hub: Hub) -> None:
    submit(hub, "alice", job("own", "exec sleep 600"))
    with hub.browser("mallory") as mallory, hub.browser("root") as root:
        assert '"administrator": false' in page_of(mallory).replace("&quot;", '"')
        page_of(root)
        for method, path, body in WRITES:
            sent: dict[str, Any] = {} if body is None else {"json": body}
            answer = mallory.request(
                method, CONSOLE + path, headers={"X-XSRFToken": token_of(mallory)}, **sent
            )
            # (of others' servers they are told that there is none)
            assert answer.status_code in ((404,) if "/users/" in path else (403,)), f"{path}: {answer.text}"
            assert answer.json()["message"]
            for headers in ({}, {"X-XSRFToken": token_of(mallory)}):
                forged = {"Origin": "https://elsewhere.example", "Sec-Fetch-Site": "cross-site", **headers}
                answer = root.request(method, CONSOLE + path, headers=forged, **sent)
                assert answer.status_code == 403, f"{path}: {answer.text}"
        headers = {"X-XSRFToken": token_of(mallory)}
        answer = mallory.get(CONSOLE + "sessions/sessions", headers=headers)
        assert answer.json() == {"sessions": []}
        answer = mallory.put(
            CONSOLE + "api/v1/user/alice/jobs/own/executionType", headers=headers, json={"value": "STOP"}
        )
        assert answer.status_code == 404
        # what is not an administrator's business there stays where it is
        headers = {"X-XSRFToken": token_of(root)}
        for path in ("", "sessions/..", "users/alice/server/keep", "%2e%2e/api/sessions", "oauth_callback"):
            assert root.post(f"{CONSOLE}sessions/{path}", headers=headers).status_code in (404, 405), path
        answer = root.post(CONSOLE + "sessions/strangers", headers=headers, json={"names": ["alice", "no"]})
        assert answer.json() == {"strangers": ["no"]}
        # where the page was, there is the way to the new one
        old = root.get("/services/pai-sessions/", follow_redirects=False)
        assert (old.status_code, old.headers["Location"]) == (302, CONSOLE + "admin")
        home = root.get("/hub/home").text
        assert f'href="{CONSOLE}admin"' in home
        assert f'href="{CONSOLE}admin"' not in mallory.get("/hub/home").text
    # neither was anything done, nor does the service that has lost its page take a browser's login
    nodes = hub.scheduler("alice", "GET", "nodes").json()
    assert not any(node["closed"] for node in nodes)
    vision = hub.scheduler("alice", "GET", "virtual-clusters").json()["vision"]
    assert (vision["capacity"], vision["status"]) == (40, "RUNNING")
    with httpx.Client(base_url=hub.url, trust_env=False) as stranger:
        assert stranger.get("/services/pai-sessions/api/sessions").status_code == 403
        assert stranger.post(CONSOLE + "sessions/strangers", json={"names": []}).status_code == 403


def test_who_is_no_administrator_is_told_so(hub: Hub, browser: Browser) -> None:
    with opened(browser, hub, "alice", "admin?show=nodes") as page:
        expect(page.get_by_role("alert")).to_have_text("This page is for administrators of the Hub.")
        expect(page.get_by_role("link", name="Admin")).to_have_count(0)


def page_of(client: httpx.Client) -> str:
    """Return the console's page, with which its cookies come."""
    answer = client.get(CONSOLE)
    assert answer.status_code == 200
    return answer.text
