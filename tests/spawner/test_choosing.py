"""Choosing a server on a real Hub with profiles: the answer before Start, by API and in a browser."""

from __future__ import annotations

import html
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from pai_spawner.handlers import MOST_STREAMS
from tests.hub import PASSWORD, REPOSITORY, Hub, open_hub, wait_for, xsrf
from tests.testbed.browser import CHROMIUM_FLAGS

PROFILES = REPOSITORY / "hub_config" / "examples" / "profiles.yaml"
AXE = REPOSITORY / "pai_labextension" / "ui" / "node_modules" / "axe-core" / "axe.min.js"
#: Milliseconds that anything on a page may take, on a slow machine under load.
PATIENCE = 90_000
FREE = {"profile": "as-i-say"}

OpenPage = Callable[..., Page]


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with open_hub(tmp_path_factory.mktemp("hub"), PAI_PROFILES=str(PROFILES)) as hub:
        yield hub


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """Return a browser that nobody is logged in with."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        expect.set_options(timeout=PATIENCE)
        yield browser
        browser.close()


@pytest.fixture
def open_page(hub: Hub, browser: Browser) -> Iterator[OpenPage]:
    """Return what logs somebody in and opens the form."""
    with ExitStack() as opened:

        def open_page(name: str, server: str = "", **context: Any) -> Page:
            page = opened.enter_context(browser.new_context(**context)).new_page()
            page.set_default_timeout(PATIENCE)
            page.goto(f"{hub.url}/hub/spawn/{name}{server}")
            page.fill("#username_input", name)
            page.fill("#password_input", PASSWORD)
            page.locator("form [type=submit]").first.click()
            expect(page.locator(".pai-form")).to_be_visible()
            return page

        yield open_page


@contextmanager
def titanx_held(hub: Hub, **extras: Any) -> Iterator[None]:
    """Let a job of alice's have all three TITANX of virtual cluster `default`."""
    role = {"name": "main", "command": "sleep 1000", "gpuNumber": 3}
    job = {
        "jobName": f"holds-{uuid.uuid4().hex[:8]}",
        "image": "local/python",
        "gpuType": "TITANX",
        "taskRoles": [role],
        "extras": {"preemptible": False, **extras},
    }
    hub.scheduler("alice", "POST", "jobs", json=job).raise_for_status()

    def running() -> bool:
        return [one["state"] for one in hub.running_jobs("alice")] == ["RUNNING"]

    wait_for(running, "alice's job to run")
    yield
    path = f"user/alice/jobs/{job['jobName']}/executionType"
    hub.scheduler("alice", "PUT", path, json={"value": "STOP"}).raise_for_status()
    wait_for(lambda: not hub.running_jobs("alice"), "alice's job to end")


def ask(hub: Hub, name: str, options: dict[str, Any], language: str = "en", **body: Any) -> dict[str, Any]:
    answer = hub.api(
        name,
        "POST",
        f"pai/choosing/{name}",
        json=body or {"options": {**FREE, **options}},
        headers={"Accept-Language": language},
    )
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def answer_in(page: Page, fits: str) -> str:
    """Wait until the page says that it fits like that; return what it says."""
    expect(page.locator(f".pai-answer[data-pai-fits={fits}]")).to_be_visible()
    return page.locator(".pai-answer").inner_text()


def field(name: str) -> str:
    return f'[name="as-i-say.{name}"]'


def choose(page: Page, name: str) -> None:
    page.locator(".pai-choice", has_text=name).click()


def test_programs_are_told_what_they_may_choose(hub: Hub) -> None:
    told = hub.api("frank", "GET", "pai/choosing/frank").json()
    # "Large machines" is open to the group vision only
    assert [one["slug"] for one in told["profiles"]] == [
        *("write-and-explore", "train-on-a-gpu", "as-i-say"),
        "look-at-my-files",
    ]
    schema = Draft202012Validator(told["schema"])
    assert schema.is_valid({"profile": "train-on-a-gpu", "gpus": 2, "gpu_type": "P100"})
    assert not schema.is_valid({"profile": "large-machines"})
    assert schema.is_valid(told["last"])
    told = hub.api("frank", "GET", "pai/choosing/frank", headers={"Accept-Language": "zh-CN"}).json()
    assert told["profiles"][1]["display_name"] == "使用 GPU 训练"


def test_the_answer_is_what_start_does(hub: Hub) -> None:
    assert ask(hub, "frank", {})["sentence"] == "Starts now."
    never = ask(hub, "frank", {"gpus": 2, "gpu_type": "P100"})
    assert (never["fits"], never["advice"]) == ("never", "Choose at most 1 × P100.")
    refused = hub.start_server("frank", {**FREE, "gpus": 2, "gpu_type": "P100"})
    assert (refused.status_code, refused.json()["message"]) == (400, never["reason"])
    wrong = ask(hub, "frank", {"gpu": 1, "cpus": 0}, language="zh-CN")
    assert [problem["option"] for problem in wrong["problems"]] == ["gpu", "cpus"]
    refused = hub.start_server("frank", {**FREE, "gpu": 1, "cpus": 0})
    for problem in ask(hub, "frank", {"gpu": 1, "cpus": 0})["problems"]:
        assert problem["message"] in refused.json()["message"]
    assert hub.running_jobs("frank") == []


def test_an_answer_to_the_form_is_that_to_its_options(hub: Hub) -> None:
    form = {"profile": ["as-i-say"], "as-i-say.cpus": ["3"], "write-and-explore.cpus": ["9"], "_xsrf": ["x"]}
    by_form, by_options = ask(hub, "frank", {}, form=form), ask(hub, "frank", {"cpus": 3})
    assert by_form == by_options
    assert by_form["title"] == "3 CPUs, 2 GB"


def test_who_must_wait_is_told_the_place_the_time_and_where_it_starts_now(hub: Hub) -> None:
    with titanx_held(hub, maxRunSeconds=1200):
        later = ask(hub, "bob", {"gpus": 2, "gpu_type": "TITANX"})
        assert (later["fits"], later["queuePlace"]) == ("later", 1)
        assert 0 < later["startsWithin"] <= 1200
        assert later["sentence"].startswith("It would wait: place 1 in the queue of default, about ")
        assert later["elsewhere"] == [
            {"virtual_cluster": "vision", "now": True, "text": "Take vision: it would start there now"}
        ]
        assert later["free"]["gpu_types"]["TITANX"] == "TITANX: 0 of 3 free"
        there = ask(hub, "bob", {"gpus": 2, "gpu_type": "TITANX", "virtual_cluster": "vision"})
        assert (there["fits"], there["free"]["gpu_types"]["TITANX"]) == ("now", "TITANX: 2 of 2 free")


@pytest.mark.parametrize(
    "body", [{}, [], {"options": 1}, {"form": {"cpus": "1"}}, {"options": {}, "form": {}}]
)
def test_what_is_no_question_is_refused_with_an_example(hub: Hub, body: Any) -> None:
    answer = hub.api("frank", "POST", "pai/choosing/frank", json=body, headers={"Accept-Language": "zh-CN"})
    assert (answer.status_code, answer.json()["message"]) == (
        400,
        '请求正文应类似于 {"options": {"cpus": 2}}。',
    )


def test_only_who_may_start_a_server_is_answered(hub: Hub) -> None:
    hub.token("bob")
    question = {"options": FREE}
    assert hub.api("frank", "POST", "pai/choosing/bob", json=question).status_code == 404
    assert hub.api("frank", "GET", "pai/choosing/bob").status_code == 404
    with httpx.Client(base_url=hub.url, trust_env=False) as nobody:
        assert nobody.get("/hub/api/pai/choosing/bob").status_code == 403
    with hub.browser("frank") as browser:
        address = "/hub/api/pai/choosing/frank"
        # another site's page could send the cookie, but does not know the token against that
        assert browser.post(address, json=question).status_code == 403
        allowed = browser.post(address, json=question, headers={"X-XSRFToken": xsrf(browser)})
        assert allowed.status_code == 200


def test_what_was_refused_is_shown_again_as_it_was_typed(hub: Hub) -> None:
    typed = {"profile": "as-i-say", "as-i-say.cpus": "0", "as-i-say.memory_mb": "3333"}
    with hub.browser("frank") as browser:
        browser.get("/hub/spawn/frank")
        refused = browser.post("/hub/spawn/frank", params={"_xsrf": xsrf(browser)}, data=typed)
        assert refused.status_code == 400
        assert "The number of CPUs must be at least 1, not 0." in html.unescape(refused.text)
        assert 'value="3333"' in refused.text
        assert 'value="3333"' not in browser.get("/hub/spawn/frank").text


def test_a_named_server_may_have_any_name(hub: Hub) -> None:
    with hub.browser("frank") as browser:
        page = browser.get("/hub/spawn/frank/xunlian", params={"display_name": "训练 <1>"})
    assert "训练 &lt;1&gt;:" in page.text
    body = {"display_name": "大模型", "user_options": {**FREE, "cpus": 2}}
    assert hub.start_server("frank", body, server="damoxing").is_success
    assert hub.server("frank", "damoxing")["display_name"] == "大模型"
    assert hub.server("frank", "damoxing")["user_options"]["cpus"] == 2
    hub.stop_server("frank", "damoxing")


def test_the_page_answers_while_one_chooses_and_goes_where_there_is_room(
    hub: Hub, open_page: OpenPage
) -> None:
    with titanx_held(hub, maxRunSeconds=1200):
        page = open_page("carol")
        assert answer_in(page, "now").startswith("Starts now.")
        expect(page).to_have_title("2 CPUs, 4 GB – Server Options · PAI")
        expect(page.locator(field("cpus"))).to_be_hidden()

        choose(page, "As I say")
        page.select_option(field("gpu_type"), "TITANX")
        assert "0 × TITANX: choose how many GPUs" in answer_in(page, "wrong")
        expect(page.locator(field("gpus"))).to_have_attribute("aria-invalid", "true")

        page.fill(field("gpus"), "2")
        assert "place 1 in the queue of default, about " in answer_in(page, "later")
        expect(page).to_have_title("2 × TITANX, 1 CPU, 2 GB – Server Options · PAI")
        expect(page.locator(field("gpu_type")).locator("option[value=TITANX]")).to_have_text(
            "TITANX (simulated): 0 of 3 free"
        )

        page.get_by_role("button", name="Take vision: it would start there now").click()
        assert answer_in(page, "now").startswith("Starts now.")
        expect(page.locator(field("virtual_cluster"))).to_have_value("vision")
        page.locator("#spawn_form [type=submit]").click()
        wait_for(lambda: hub.running_jobs("carol"), "carol's job")
        (job,) = hub.running_jobs("carol")
        assert (job["virtualCluster"], job["totalGpuNumber"]) == ("vision", 2)
        hub.stop_server("carol")

        # the last choice is chosen again
        page.goto(f"{hub.url}/hub/spawn/carol")
        expect(page.locator(field("gpus"))).to_have_value("2")
        expect(page.locator(field("virtual_cluster"))).to_have_value("vision")


def test_the_answer_is_kept_fresh_while_the_page_is_looked_at_and_only_then(
    hub: Hub, open_page: OpenPage
) -> None:
    page = open_page("dave")
    page.clock.install()
    choose(page, "As I say")
    page.select_option(field("gpu_type"), "TITANX")
    page.fill(field("gpus"), "3")
    page.clock.fast_forward(1000)
    answer_in(page, "now")
    with titanx_held(hub):
        page.clock.fast_forward(10_000)
        assert "It would wait" in answer_in(page, "later")
        show(page, "hidden")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.clock.fast_forward(600_000)
        page.evaluate("1")
        assert asked == []
    show(page, "visible")
    assert "Starts now." in answer_in(page, "now")


def asked_by(page: Page) -> list[float]:
    """Return when the form asks from now on, in seconds; it grows."""
    asked: list[float] = []

    def note(request: Request) -> None:
        if request.method == "POST" and "/pai/choosing/" in request.url:
            asked.append(time.monotonic())

    page.on("request", note)
    return asked


def test_the_form_asks_when_something_has_changed_and_only_then(hub: Hub, open_page: OpenPage) -> None:
    with titanx_held(hub), open_page_of_titanx(open_page, "gina") as page:
        assert "It would wait" in answer_in(page, "later")
        page.wait_for_timeout(2000)
        asked = asked_by(page)
        page.clock.fast_forward(20_000)
        page.evaluate("1")
        assert asked == [], "nothing has changed; every eight seconds it was asked before"
        (job,) = hub.running_jobs("alice")
        path = f"user/alice/jobs/{job['name']}/executionType"
        hub.scheduler("alice", "PUT", path, json={"value": "STOP"}).raise_for_status()
        wait_for(lambda: not hub.running_jobs("alice"), "alice's job to end")
        free = time.monotonic()
        assert "Starts now." in answer_in(page, "now")
        late = time.monotonic() - free
        print(f"the form said so {late:.2f} s after the GPUs were free, and asked {len(asked)} times")
        assert 1 <= len(asked) <= 4


def test_a_form_that_is_told_of_no_changes_asks_every_few_seconds(hub: Hub, open_page: OpenPage) -> None:
    with open_page_of_titanx(open_page, "hugo", silent=True) as page:
        assert "Starts now." in answer_in(page, "now")
        asked = asked_by(page)
        with titanx_held(hub):
            page.clock.fast_forward(10_000)
            assert "It would wait" in answer_in(page, "later")
        assert asked


@contextmanager
def open_page_of_titanx(open_page: OpenPage, name: str, *, silent: bool = False) -> Iterator[Page]:
    """Open a form that asks for three TITANX; `silent`: the Hub tells it of no changes."""
    page = open_page(name)
    if silent:
        page.route("**/pai/changes/**", lambda route: route.abort())
        page.reload()
    page.clock.install()
    choose(page, "As I say")
    page.select_option(field("gpu_type"), "TITANX")
    page.fill(field("gpus"), "3")
    yield page
    page.close()


def test_changes_are_told_to_who_may_start_servers_and_to_so_many_pages_of_a_person(hub: Hub) -> None:
    hub.token("bob")
    assert hub.api("frank", "GET", "pai/changes/bob").status_code == 404
    with httpx.Client(base_url=hub.url, trust_env=False) as nobody:
        assert nobody.get("/hub/api/pai/changes/frank").status_code == 403
    headers = {"Authorization": f"token {hub.token('frank')}", "Accept-Language": "zh-CN"}
    with httpx.Client(base_url=hub.url, trust_env=False, headers=headers, timeout=60) as frank:
        with ExitStack() as pages:
            for _ in range(MOST_STREAMS):
                stream = pages.enter_context(frank.stream("GET", "/hub/api/pai/changes/frank"))
                assert stream.headers["Content-Type"] == "text/event-stream"
            refused = frank.get("/hub/api/pai/changes/frank")
            assert (refused.status_code, refused.json()["message"]) == (
                429,
                "您已打开 10 个等待更新的页面。请先关闭一个。",
            )

        def is_open_again() -> bool:
            with frank.stream("GET", "/hub/api/pai/changes/frank") as stream:
                return stream.status_code == 200

        wait_for(is_open_again, "a place for another page")


def show(page: Page, state: str) -> None:
    """Let the page be looked at, or not: a browser without a window has no other way."""
    page.evaluate(
        "state => { Object.defineProperty(document, 'visibilityState', {value: state, configurable: true});"
        " document.dispatchEvent(new Event('visibilitychange')); }",
        state,
    )


def test_it_works_without_javascript(open_page: OpenPage) -> None:
    page = open_page("erin", java_script_enabled=False)
    assert "Starts now." in page.locator(".pai-answer").inner_text()
    choose(page, "As I say")
    page.fill(field("cpus"), "999")
    page.locator("#spawn_form [type=submit]").click()
    expect(page.locator(".spawn-error-msg")).to_contain_text("999 CPUs")
    # what was chosen is there still
    expect(page.locator("[value=as-i-say]")).to_be_checked()
    expect(page.locator(field("cpus"))).to_have_value("999")
    assert "Choose at most 32 CPUs." in page.locator(".pai-answer").inner_text()


def test_it_works_by_keyboard(open_page: OpenPage) -> None:
    page = open_page("frank")
    answer_in(page, "now")
    page.locator("[name=profile]:checked").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    expect(page.locator("[value=as-i-say]")).to_be_checked()
    reached = []
    while "submit" not in reached:
        page.keyboard.press("Tab")
        reached.append(page.evaluate("document.activeElement.name || document.activeElement.type || ''"))
        assert len(reached) < 40, reached
    names = ("gpu_type", "gpus", "cpus", "memory_mb", "virtual_cluster", "run_minutes")
    wanted = [f"as-i-say.{name}" for name in names]
    assert [name for name in reached if name in wanted] == wanted


@pytest.mark.parametrize("language", ["en", "zh-CN"])
def test_labels_and_contrast_are_good_on_a_phone_too(open_page: OpenPage, language: str) -> None:
    narrow = {"width": 360, "height": 740}
    page = open_page("frank", locale=language, reduced_motion="reduce", viewport=narrow)
    choose(page, "自定义" if language == "zh-CN" else "As I say")
    page.locator("details").evaluate_all("all => all.forEach(one => { one.open = true })")
    page.add_script_tag(path=str(AXE))
    for fits, gpus, cpus in (("now", "1", "1"), ("never", "9", "1"), ("wrong", "1", "0")):
        page.fill(field("gpus"), gpus)
        page.fill(field("cpus"), cpus)
        answer_in(page, fits)
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found = page.evaluate("axe.run('.pai-form')")
            wrong = [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]]
            assert not wrong, scheme
    width = page.evaluate("document.documentElement.scrollWidth")
    assert width <= narrow["width"], "nothing sticks out at the side"
    if language == "zh-CN":
        # what is left of Latin letters are names and units
        text = page.locator(".pai-form").inner_text()
        assert not [word for word in ("Choose", "Write", "Train", "server", "files") if word in text]
