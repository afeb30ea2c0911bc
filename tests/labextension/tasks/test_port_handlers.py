"""Ports of a task through a real Jupyter server, gateway and scheduler; its application tells what it got."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_server.auth import Authorizer
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from pai_scheduler.client.rest import Client
from tests.labextension.conftest import BASE_URL, BROWSER_TOKEN
from tests.testbed.scheduler import RunningScheduler, StartScheduler

pytestmark = pytest.mark.usefixtures("app")

APPLICATION = Path(__file__).with_name("port_application.py")
PORT = "pai/ports/alice/app/main-0/web"


@pytest.fixture(scope="module")
def cluster(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run one scheduler for these tests, with an application in a task of alice's."""
    return module_scheduler(ssh=True)


def app_job(name: str, command: str) -> dict[str, Any]:
    ports = [{"label": "web", "portNumber": 2}, {"label": "idle", "portNumber": 1}]
    role = {"name": "main", "command": command, "portList": ports}
    return {"jobName": name, "image": "local/any", "taskRoles": [role]}


@pytest.fixture
async def alice(cluster: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(cluster.url, "token-of-alice") as client:
        yield client


@pytest.fixture
async def app(alice: Client) -> None:
    """See to it that the application runs."""
    if not any(job["name"] == "app" for job in await alice.jobs()):
        await alice.submit(app_job("app", f"exec {sys.executable} {APPLICATION}"))
    async for line in alice.follow_log("alice", "app", "main", 0):
        if b"listens" in line:
            return
    raise AssertionError("the application ended")


@pytest.fixture
async def browser(make_jupyter, cluster: RunningScheduler) -> httpx.AsyncClient:
    client: httpx.AsyncClient = await make_jupyter(cluster.url, "token-of-alice")
    return client


async def test_a_request_arrives_with_method_path_query_and_body(browser):
    for method in ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
        answer = await browser.request(method, f"{PORT}/tell/a%2Fb%20c;d?x=1&y=%26&y=2", content=b"\x00body")
        told = answer.json()
        assert (told["method"], told["uri"]) == (method, "/tell/a%2Fb%20c;d?x=1&y=%26&y=2")
        assert told["body"] == "00626f6479"
    head = await browser.head(f"{PORT}/much/5")
    assert (head.status_code, head.content) == (200, b"")


async def test_the_path_is_the_applications_own_or_whole_for_one_that_knows_its_prefix(browser):
    assert (await browser.get(f"{PORT}/")).json()["uri"] == "/"
    whole = PORT.replace("/ports/", "/ports-absolute/")
    assert (await browser.get(f"{whole}/a?b")).json()["uri"] == f"{BASE_URL}{whole}/a?b"
    for short in (PORT, whole):
        redirect = await browser.get(f"{short}?a=b")
        assert (redirect.status_code, redirect.headers["Location"]) == (302, f"{BASE_URL}{short}/?a=b")


async def test_an_application_sees_a_browser_of_its_own_machine_and_no_secret(browser, alice):
    port = (await port_of(alice, "web"))[0]
    origin = f"http://{browser.base_url.netloc.decode()}"
    base = str(browser.base_url).rstrip("/")
    answer = await browser.get(
        f"{PORT}/tell?token={BROWSER_TOKEN}&x=1",
        headers={
            "Cookie": (
                "jupyterhub-session-id=SECRET; jupyterhub-user-alice=SECRET; jupyter-hub-token=SECRET; "
                "username-localhost-1=SECRET; _xsrf=SECRET; own=1; username-127-0-0-1=SECRET; "
                f"pai-port-xsrf=inner; username-localhost-{port}=kept"
            ),
            "Origin": origin,
            "Referer": f"{base}/{PORT}/page?q",
            "X-Forwarded-Host": "SECRET",
            "X-Real-IP": "SECRET",
            "Connection": "keep-alive, X-Mine",
            "X-Mine": "SECRET",
            "X-Kept": "yes",
            "Sec-Fetch-Site": "same-origin",
        },
    )
    told = answer.json()
    assert told["uri"] == "/tell?x=1"
    headers = dict(told["headers"])
    assert headers["Host"] == f"localhost:{port}"
    assert headers["Origin"] == f"http://localhost:{port}"
    assert headers["Referer"] == f"http://localhost:{port}/page?q"
    assert headers["Cookie"] == f"own=1; username-localhost-{port}=kept; _xsrf=inner"
    assert headers["X-Forwarded-Prefix"] == f"{BASE_URL}{PORT}"
    assert headers["X-Forwarded-For"] == "127.0.0.1"
    assert headers["X-Kept"] == "yes"
    assert "Authorization" not in headers
    assert "SECRET" not in answer.text
    assert BROWSER_TOKEN not in answer.text
    assert "token-of-alice" not in answer.text


async def test_a_token_that_is_the_applications_own_reaches_it(browser):
    cookies = await logged_in(browser)
    here = {"Sec-Fetch-Site": "same-origin"}
    client = httpx.AsyncClient(base_url=browser.base_url, cookies=cookies, headers=here, trust_env=False)
    async with client as person:
        assert (await person.get(f"{PORT}/tell?token=inner")).json()["uri"] == "/tell?token=inner"


async def test_what_an_application_says_of_its_addresses_is_put_under_its_prefix(browser, alice):
    port = (await port_of(alice, "web"))[0]
    prefix = f"{BASE_URL}{PORT}"
    wanted = {
        "status": 302,
        "headers": [
            ["Location", f"http://localhost:{port}/tree?a"],
            ["Set-Cookie", "_xsrf=V; Path=/; HttpOnly"],
            ["Set-Cookie", "own=1; Domain=example.com; Path=/app; Secure"],
            ["Set-Cookie", "jupyterhub-session-id=evil; Path=/"],
            ["Clear-Site-Data", '"*"'],
            ["Service-Worker-Allowed", "/"],
            ["X-Own", "é"],
        ],
    }
    answer = await browser.post(f"{PORT}/say", json=wanted)
    assert answer.status_code == 302
    assert answer.headers["Location"] == f"{prefix}/tree?a"
    cookies = answer.headers.get_list("Set-Cookie")
    assert [cookie for cookie in cookies if not cookie.startswith("username-")] == [
        f"_xsrf=V; Path={prefix}/; HttpOnly",
        f"pai-port-xsrf=V; Path={prefix}/; HttpOnly",
        f"own=1; Path={prefix}/app; Secure",
    ]
    assert "Clear-Site-Data" not in answer.headers
    assert answer.headers["Service-Worker-Allowed"] == f"{prefix}/"
    assert "frame-ancestors 'self'" in answer.headers["Content-Security-Policy"]
    page = '<a href="/tree">x</a><script>fetch("/api/" + name)</script>'
    html = {"headers": [["Content-Type", "text/html; charset=utf-8"]], "body": page}
    answer = await browser.post(f"{PORT}/say", json=html, headers={"Accept": "text/html"})
    assert answer.text == page.replace("/tree", f"{prefix}/tree")
    text = {"headers": [["Content-Type", "text/plain"]], "body": page}
    assert (await browser.post(f"{PORT}/say", json=text)).text == page


async def test_events_come_while_the_application_sends_them(browser):
    async with asyncio.timeout(60), browser.stream("GET", f"{PORT}/stream") as answer:
        lines = answer.aiter_lines()
        for number in range(3):
            assert await anext(line async for line in lines if line) == f"data: {number}"
            await browser.get(f"{PORT}/next")


async def test_large_bodies_pass_both_ways(browser):
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(30):
            yield b"y" * 1_000_000

    assert (await browser.put(f"{PORT}/much/0", content=pieces())).text == "30000000"
    assert len((await browser.get(f"{PORT}/much/30")).content) == 30_000_000


async def test_an_answer_that_breaks_off_does_not_look_complete(browser):
    with pytest.raises(httpx.RemoteProtocolError):
        await browser.get(f"{PORT}/break")


async def test_a_websocket_passes_text_bytes_its_subprotocol_and_how_it_is_closed(browser, alice):
    port = (await port_of(alice, "web"))[0]
    line = await socket(browser, f"{PORT}/any/echo", ["first", "second"])
    assert line.selected_subprotocol == "second"
    for message in ("汉", b"\x00\xff", "x" * 5_000_000):
        await line.write_message(message, binary=isinstance(message, bytes))
        assert await line.read_message() == message
    await line.write_message("headers")
    headers = dict(json.loads(await line.read_message() or ""))
    assert (headers["Host"], headers["Origin"]) == (f"localhost:{port}", f"http://localhost:{port}")
    assert "Authorization" not in headers
    await line.write_message("bye")
    assert await line.read_message() is None
    assert (line.close_code, line.close_reason) == (4001, "as you wish")
    other = await socket(browser, f"{PORT}/any/echo")
    other.close(4002, "enough")
    async for text in alice.follow_log("alice", "app", "main", 0):
        if b"closed 4002 enough" in text:
            break


async def test_where_nothing_listens_yet_a_page_waits_and_where_there_is_no_port_it_says_so(browser):
    waits = await browser.get(
        "pai/ports/alice/app/main-0/idle/", headers={"Accept": "text/html", "Accept-Language": "zh-CN"}
    )
    assert (waits.status_code, waits.headers["Retry-After"]) == (503, "2")
    assert 'http-equiv="refresh"' in waits.text
    assert "main-0" in waits.text
    assert '<html lang="zh-CN">' in waits.text
    for script in ("web.1", "idle"):
        answer = await browser.get(f"pai/ports/alice/app/main-0/{script}/")
        assert answer.status_code == 503
        assert "Nothing listens" in answer.json()["message"]
    for label in ("nope", "web.2", "0", "65536", "..%2f..%2fweb", "%0d%0aX:y", "web%00", "٣"):
        answer = await browser.get(f"pai/ports/alice/app/main-0/{label}/x", headers={"Accept": "text/html"})
        assert answer.status_code == 404
        assert "http-equiv" not in answer.text
        assert "X" not in answer.headers


async def test_a_number_is_a_port_too(browser, alice):
    port = (await port_of(alice, "web"))[0]
    assert (await browser.get(f"pai/ports/alice/app/main-0/{port}/tell")).json()["uri"] == "/tell"


async def test_a_task_that_has_ended_says_so(browser, alice):
    await alice.submit(app_job("brief", "true"))
    async for event in alice.events("alice", "brief"):
        if event["type"] == "ended":
            break
    answer = await browser.get("pai/ports/alice/brief/main-0/web/", headers={"Accept": "text/html"})
    assert answer.status_code == 503
    assert "has ended" in answer.text
    assert "refresh" not in answer.text
    assert (await browser.get("pai/ports/alice/never/main-0/web/")).status_code == 404


@pytest.mark.parametrize("token", ["token-of-bob", "token-of-root"])
async def test_other_peoples_ports_are_closed_to_an_administrators_pages_too(make_jupyter, cluster, token):
    browser = await make_jupyter(cluster.url, token)
    answer = await browser.get(f"{PORT}/tell")
    assert answer.status_code == 403
    assert "open to alice only" in answer.json()["message"]
    with pytest.raises(HTTPClientError) as error:
        await socket(browser, f"{PORT}/echo")
    assert error.value.code == 403


class NobodyMay(Authorizer):
    def is_authorized(self, _handler: Any, _user: Any, _action: str, resource: str) -> bool:
        return resource != "pai"


async def test_users_whom_the_server_refuses_reach_no_port(make_jupyter, cluster):
    browser = await make_jupyter(cluster.url, "token-of-alice", authorizer_class=NobodyMay)
    for method in ("GET", "HEAD", "POST", "DELETE", "PATCH", "PUT", "OPTIONS"):
        assert (await browser.request(method, f"{PORT}/tell")).status_code == 403
    with pytest.raises(HTTPClientError) as error:
        await socket(browser, f"{PORT}/echo")
    assert error.value.code == 403


async def test_pages_of_other_sites_and_strangers_reach_nothing(browser):
    cookies = await logged_in(browser)
    own = f"http://{browser.base_url.netloc.decode()}"
    async with httpx.AsyncClient(base_url=browser.base_url, cookies=cookies, trust_env=False) as person:
        # an application's pages know no token of the notebook server, and need none
        assert (await person.post(f"{PORT}/tell", headers={"Origin": own})).status_code == 200
        for headers in (
            {"Origin": "http://evil.example"},
            {"Origin": "null"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
            {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
            {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
        ):
            assert (await person.get(f"{PORT}/tell", headers=headers)).status_code == 403
            assert (await person.post(f"{PORT}/tell", headers=headers)).status_code == 403
        link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
        assert (await person.get(f"{PORT}/tell", headers=link)).status_code == 200
        assert (await person.post(f"{PORT}/tell", headers=link)).status_code == 403
        # who does not say where they come from
        for referer in ({}, {"Referer": "http://evil.example/"}):
            assert (await person.post(f"{PORT}/tell", headers=referer)).status_code == 403
            unsaid = await person.get(f"{PORT}/tell", headers={**referer, "Accept": "text/html"})
            assert unsaid.status_code == 403
            # a person's browser asks again from this page, and so from here
            assert '<meta http-equiv="refresh"' in unsaid.text
        inside = {"Referer": f"{own}{BASE_URL}{PORT}/page"}
        assert (await person.get(f"{PORT}/tell", headers=inside)).status_code == 200
        assert (await person.get(f"{PORT}/tell", headers={"Sec-Fetch-Site": "none"})).status_code == 200
    as_browser: dict[str, Any] = {"Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())}
    line = await socket(browser, f"{PORT}/echo", **as_browser, Authorization="", Origin=own)
    line.close()
    refusals: list[dict[str, Any]] = [
        {**as_browser, "Origin": "http://evil.example"},
        {"Origin": own},
        {**as_browser, "Origin": None},
    ]
    for refused in refusals:
        with pytest.raises(HTTPClientError) as error:
            await socket(browser, f"{PORT}/echo", **{"Authorization": "", **refused})
        assert error.value.code == 403
    async with httpx.AsyncClient(base_url=browser.base_url, trust_env=False) as stranger:
        page = await stranger.get(f"{PORT}/tell")
        assert (page.status_code, "login" in page.headers["Location"]) == (302, True)
        assert (await stranger.post(f"{PORT}/tell")).status_code == 403


async def port_of(alice: Client, label: str) -> list[int]:
    detail = await alice.job("alice", "app")
    ports = detail["taskRoles"]["main"]["taskStatuses"][0]["containerPorts"][label]
    return [int(port) for port in ports.split(",")]


async def logged_in(browser: httpx.AsyncClient) -> httpx.Cookies:
    """Return the cookies of a person who has shown the server's token once."""
    await browser.get("api/me")
    assert browser.cookies
    return browser.cookies


async def socket(
    browser: httpx.AsyncClient, path: str, subprotocols: list[str] | None = None, **headers: str | None
) -> WebSocketClientConnection:
    url = str(browser.base_url).replace("http", "ws", 1) + path
    origin = f"http://{browser.base_url.netloc.decode()}"
    given = {"Authorization": f"token {BROWSER_TOKEN}", "Origin": origin, **headers}
    sent = {name: value for name, value in given.items() if value is not None}
    return await websocket_connect(HTTPRequest(url, headers=sent), subprotocols=subprotocols)
