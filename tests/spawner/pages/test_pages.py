"""The Hub's pages, of a real Hub: what they say of servers, and that they say it in the reader's language."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser

import httpx
import pytest

from tests.hub import Hub, wait_for

WAITING = {"gpus": 3, "gpu_type": "TITANX"}
CHINESE = "zh-CN,zh;q=0.9"
#: What stands on pages in Latin letters in every language: names, units, and what people typed.
SAME_IN_ALL = re.compile(
    r"JupyterHub|Hub|PAI|JavaScript|HTTPS?|API|CPU|GPU|MB|GB|vision|TITANX|P100|scope|admin-ui|default|node-[ab]|"
    r"carol|holder|This machine's Python|https?://\S+|[a-z]+:[a-z!:=-]+|\d{4}-\d\d-\d\dT\S+"
)


class Words(HTMLParser):
    """Collects what a reader sees of a page, or hears of it."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self._hidden = ""
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in ("script", "style", "pre"):
            self._hidden = tag
        told = [value for name, value in attrs if name in ("title", "placeholder", "aria-label", "alt")]
        self.words += [value for value in told if value]

    def handle_endtag(self, tag: str) -> None:
        if tag == self._hidden:
            self._hidden = ""

    def handle_data(self, data: str) -> None:
        if not self._hidden and data.strip():
            self.words.append(" ".join(data.split()))


def english(page: str) -> list[str]:
    """List what a page says in Latin letters that is no name."""
    return [word for word in Words(page).words if re.search("[A-Za-z]{2}", SAME_IN_ALL.sub("", word))]


def said(page: str) -> str:
    return " ".join(Words(page).words)


@pytest.fixture(scope="module")
def hub(process_hub: Hub) -> Iterator[Hub]:
    assert process_hub.start_server("holder", WAITING).is_success
    process_hub.wait_ready("holder")
    yield process_hub
    process_hub.clear()


@pytest.fixture(scope="module")
def reader(hub: Hub) -> Iterator[httpx.Client]:
    """Return carol's browser, which asks for Chinese."""
    with hub.browser("carol", language=CHINESE) as browser:
        yield browser


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("login?next=/hub/home", 200, "我的服务器"),  # who is logged in is sent on
        ("home", 200, "我的服务器"),
        ("token", 200, "申请新的 API 令牌"),
        ("spawn/carol", 200, "服务器选项"),
        ("user/carol/lab", 424, "服务器没有运行"),
        ("admin", 403, "没有权限"),
        ("nowhere", 404, "找不到"),
        ("spawn/nobody", 404, "没有访问权限，或资源不存在"),
        ("accept-share?code=x", 404, "共享不存在或已过期"),
        ("logout-not", 404, "这个页面不存在"),
    ],
)
def test_every_page_is_whole_in_chinese(reader: httpx.Client, path: str, status: int, words: str) -> None:
    page = reader.get(f"/hub/{path}")
    assert page.status_code == status
    assert '<html lang="zh-CN">' in page.text
    assert words in said(page.text)
    assert english(page.text) == []


def test_the_login_is_whole_in_chinese_also_where_the_password_is_wrong(hub: Hub) -> None:
    with httpx.Client(base_url=hub.url, headers={"Accept-Language": CHINESE}, trust_env=False) as browser:
        page = browser.get("/hub/login").text
        (token,) = re.findall(r'name="_xsrf" value="(.*?)"', page)
        refused = browser.post("/hub/login", data={"username": "x", "password": "no", "_xsrf": token})
    assert refused.status_code == 403
    assert "用户名或密码不正确" in said(refused.text)
    assert english(page) == english(refused.text) == []


def test_pages_are_english_for_those_who_ask_for_it(hub: Hub) -> None:
    with hub.browser("carol") as browser:
        page = browser.get("/hub/home").text
    assert '<html lang="en">' in page
    assert "My servers" in said(page)
    assert not re.search("[\u4e00-\u9fff]", page)


def test_the_home_tells_of_a_server_from_its_wait_to_its_end(hub: Hub, reader: httpx.Client) -> None:
    assert hub.start_server("carol", WAITING).status_code == 202
    wait_for(lambda: hub.running_jobs("carol"), "carol's job")
    home = reader.get("/hub/home").text
    progress = reader.get("/hub/spawn-pending/carol").text
    for page in (home, progress):
        assert 'data-state="waiting"' in page
        assert "1 个 CPU、2048 MB 内存和 3 × TITANX" in said(page)
        assert "TITANX" in said(page)
    assert "正在排队" in said(home)
    assert english(home) == english(progress) == []

    hub.stop_server("carol")
    cancelled = reader.get("/hub/home").text
    assert 'data-state="ended"' in cancelled
    assert "启动已取消。" in said(cancelled)
    assert "启动已取消。" in said(reader.get("/hub/user/carol/").text)

    assert hub.start_server("carol", {"cpus": 2}).is_success
    hub.wait_ready("carol")
    running = reader.get("/hub/home").text
    assert 'data-state="running"' in running
    assert "启动已取消。" not in said(running)
    assert "2 个 CPU" in said(running)


def test_a_server_that_has_ended_is_noticed_by_who_looks_and_says_why(hub: Hub, reader: httpx.Client) -> None:
    if not hub.server("carol"):
        assert hub.start_server("carol", {"cpus": 2}).is_success
    hub.wait_ready("carol")
    (job,) = hub.running_jobs("carol")
    hub.scheduler("carol", "PUT", f"user/carol/jobs/{job['name']}/executionType", json={"value": "STOP"})
    wait_for(lambda: not hub.running_jobs("carol"), "carol's job to end")
    home = reader.get("/hub/home").text
    assert 'data-state="ended"' in home
    assert "服务器已被停止。" in said(home)
    assert "carol" in said(home)
    assert english(home) == []
    # the proxy has forgotten it by then, and the Hub's page says the same
    assert "服务器已被停止。" in said(reader.get("/user/carol/lab").text)


def test_a_start_that_fails_says_why_and_asks_whether_to_start_again(hub: Hub, reader: httpx.Client) -> None:
    refused = hub.start_server("carol", {"gpus": 3, "gpu_type": "P100"})
    assert refused.status_code == 400
    home = reader.get("/hub/home").text
    assert "服务器没有启动。" in said(home)
    assert "重新启动" in said(home)
    assert "P100" in said(home)


def test_the_proxys_error_page_asks_the_hub_in_the_readers_language(hub: Hub) -> None:
    page = httpx.get(f"{hub.url}/hub/error/503?url=/user/carol/lab", trust_env=False).text
    assert json.dumps("服务器没有响应") in page
    assert '"/hub/home"' in page


def test_named_servers_have_a_place_and_a_name_of_their_own(hub: Hub, reader: httpx.Client) -> None:
    made = hub.api("carol", "PUT", "users/carol/servers/big", json={"display_name": "大模型 <b>"})
    assert made.status_code == 201
    home = reader.get("/hub/home").text
    assert 'data-server="big"' in home
    assert "大模型 &lt;b&gt;" in home
    assert "大模型" in said(reader.get("/hub/user/carol/big/").text)


def test_a_form_tells_how_its_own_server_ended_and_not_another(hub: Hub, reader: httpx.Client) -> None:
    assert hub.start_server("carol", {"gpus": 3, "gpu_type": "P100"}).status_code == 400
    assert hub.api("carol", "PUT", "users/carol/servers/other").status_code == 201
    assert "服务器没有启动。" in said(reader.get("/hub/spawn/carol").text)
    assert "服务器没有启动。" not in said(reader.get("/hub/spawn/carol/other").text)


def test_a_page_that_is_not_open_to_somebody_says_so_without_the_hubs_terms(reader: httpx.Client) -> None:
    refused = reader.get("/hub/admin")
    assert refused.status_code == 403
    assert "您的账户不能打开这个页面" in said(refused.text)
    assert "我的服务器" in said(refused.text)
    assert "admin-ui" not in refused.text
