"""Terminals, *Connect* and ports on the web: each person's own, from the console's own pages alone."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from functools import partial
from typing import Any

import httpx
import pytest
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, websocket_connect

from tests.hub import Hub, wait_for
from tests.labextension.console.test_on_the_web import CONSOLE, job, submit, token_of


@pytest.fixture
def people(hub: Hub) -> Any:
    """Log alice and bob in, each with a job of the same name that tells whose it is."""
    for user in ("alice", "bob"):
        submit(hub, user, job("same", "exec sleep 600", portList=[{"label": "web", "portNumber": 1}]))
    with ExitStack() as stack:
        clients = {user: stack.enter_context(hub.browser(user)) for user in ("alice", "bob")}
        for user, client in clients.items():
            assert client.get(CONSOLE).status_code == 200
            wait_for(partial(running, hub, user), "the job to run")
        yield clients


def running(hub: Hub, user: str) -> bool:
    state = hub.scheduler(user, "GET", f"user/{user}/jobs/same").json()["jobStatus"]["state"]
    return bool(state == "RUNNING")


def ask(client: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response:
    headers = {"X-XSRFToken": token_of(client)}
    return client.request(method, CONSOLE + path, headers=headers, follow_redirects=False, **options)


def terminals(user: str) -> str:
    return f"terminals/{user}/same/worker-0"


def opened(client: httpx.Client, user: str) -> str:
    answer = ask(client, "POST", f"{terminals(user)}/api/terminals", json={})
    assert answer.status_code == 200, answer.text
    return str(answer.json()["name"])


def listed(client: httpx.Client, user: str) -> list[str]:
    return [one["name"] for one in ask(client, "GET", f"{terminals(user)}/api/terminals").json()]


def cookies(client: httpx.Client) -> str:
    known = [cookie for cookie in client.cookies.jar if CONSOLE.startswith(cookie.path)]
    return "; ".join(f"{cookie.name}={cookie.value}" for cookie in known)


async def connected(
    client: httpx.Client, user: str, name: str, query: str = "", **headers: str
) -> WebSocketClientConnection:
    url = f"{str(client.base_url).rstrip('/')}{CONSOLE}{terminals(user)}/terminals/websocket/{name}{query}"
    cookies = "; ".join(
        f"{cookie.name}={cookie.value}" for cookie in client.cookies.jar if CONSOLE.startswith(cookie.path)
    )
    headers = {"Cookie": cookies, "Sec-Fetch-Mode": "websocket", **headers}
    return await websocket_connect(HTTPRequest(url.replace("http", "ws", 1), headers=headers))


@asynccontextmanager
async def shell(client: httpx.Client, user: str, name: str) -> AsyncIterator[WebSocketClientConnection]:
    socket = await connected(client, user, name)
    await socket.write_message(token_of(client))
    # a shell that begins throws away what was typed before
    await heard(socket, "# ", "$ ")
    yield socket
    socket.close()


async def heard(socket: WebSocketClientConnection, *ends: str) -> str:
    text = ""
    async with asyncio.timeout(60):
        while not any(end in text for end in ends):
            message = await socket.read_message()
            assert message is not None, f"closed after {text!r}"
            kind, content = json.loads(message)
            text += content if kind == "stdout" else ""
    return text


async def said(socket: WebSocketClientConnection, command: str, until: str) -> str:
    await socket.write_message(json.dumps(["stdin", f"{command}\r"]))
    return await heard(socket, until)


async def closed(socket: WebSocketClientConnection) -> int | None:
    while await socket.read_message() is not None:
        pass
    return socket.close_code


async def test_two_people_in_one_process_are_each_in_their_own_task(people):
    names = {user: opened(client, user) for user, client in people.items()}
    # (each person's terminals are counted by themselves)
    assert names == {"alice": "1", "bob": "1"}
    async with AsyncExitStack() as stack:
        shells = {
            user: await stack.enter_async_context(shell(client, user, names[user]))
            for user, client in people.items()
        }
        for turn in range(3):
            for user, socket in shells.items():
                text = await said(socket, f"echo {turn}:$PAI_USER_NAME:", f"{turn}:{user}:")
                assert ("alice" in text) == (user == "alice")
        for user, client in people.items():
            assert listed(client, user) == ["1"]
            checked = ask(client, "POST", f"connect/{user}/same/worker-0/check", json={}).json()
            assert checked["ok"], checked
            told = ask(client, "GET", f"connect/{user}/same/worker-0").json()
            assert (told["login"], told["off"]) == (f"{user}+same+worker-0", None)
            urls = {one["label"]: one["url"] for one in told["ports"]}
            assert urls["web"] == f"{CONSOLE}ports/{user}/same/worker-0/web/"


async def test_nobody_reaches_anothers_task_by_any_route(people):
    name = opened(people["alice"], "alice")
    bob = people["bob"]
    for method, path, allowed in (
        ("GET", f"{terminals('alice')}/api/terminals", {200}),
        ("POST", f"{terminals('alice')}/api/terminals", {502}),
        ("GET", f"{terminals('alice')}/api/terminals/{name}", {404}),
        ("DELETE", f"{terminals('alice')}/api/terminals/{name}", {404}),
        ("GET", "connect/alice/same/worker-0", {404}),
        ("POST", "connect/alice/same/worker-0/check", {200}),
        ("POST", "connect/alice/same/worker-0/code-server", {403}),
    ):
        answer = ask(bob, method, path, **({"json": {}} if method == "POST" else {}))
        assert answer.status_code in allowed, (method, path, answer.text)
        if answer.status_code == 200:
            assert answer.json() == [] or answer.json()["ok"] is False
    with pytest.raises(HTTPClientError) as refused:
        await connected(bob, "alice", name)
    assert refused.value.code == 404
    assert [
        one["name"] for one in ask(people["alice"], "GET", f"{terminals('alice')}/api/terminals").json()
    ] == [name]


async def test_content_of_a_task_is_never_shown_at_the_consoles_own_address(people):
    alice = people["alice"]
    answer = alice.get(f"{CONSOLE}ports/alice/same/worker-0/web/?a=b%26c", follow_redirects=False)
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/hub/user-redirect/pai/ports/alice/same/worker-0/web/?a=b%26c"
    for path in ("alice/same/worker-0/%2e%2e", "alice/same/worker/web", "alice/sa%2Fme/worker-0/web"):
        answer = alice.get(f"{CONSOLE}ports/{path}/", follow_redirects=False)
        assert "Location" not in answer.headers
    # what stands below a port is the notebook server's business
    page = alice.get(f"{CONSOLE}ports/alice/same/worker-0/web/index.html")
    assert "data-facts" in page.text


async def test_a_socket_opens_to_the_consoles_own_page_alone(people, hub: Hub):
    alice = people["alice"]
    name = opened(alice, "alice")
    for headers in ({"Origin": "https://elsewhere.example"}, {"Origin": "null"}, {"Cookie": ""}):
        with pytest.raises(HTTPClientError) as refused:
            await connected(alice, "alice", name, **headers)
        assert refused.value.code == 403
    with pytest.raises(HTTPClientError) as refused:
        await connected(alice, "alice", name, f"?token={hub.token('alice')}", Cookie="")
    assert refused.value.code == 403

    async def silent() -> None:
        begun = time.monotonic()
        socket = await connected(alice, "alice", name, Origin=hub.url)
        assert await socket.read_message() is None
        assert socket.close_code == 4403
        assert 4 < time.monotonic() - begun < 10

    async def wrong(word: str) -> None:
        socket = await connected(alice, "alice", name)
        await socket.write_message(word)
        assert await socket.read_message() is None
        assert socket.close_code == 4403

    command = json.dumps(["stdin", "touch was-here\r"])
    await asyncio.gather(silent(), wrong(""), wrong(command), wrong(token_of(people["bob"])))
    async with shell(alice, "alice", name) as socket:
        assert "none" in await said(socket, "ls was-here 2>/dev/null || echo no''ne", "none")


async def test_a_login_that_ends_ends_its_sockets_and_its_shells(people):
    alice, bob = people["alice"], people["bob"]
    async with (
        shell(alice, "alice", opened(alice, "alice")) as socket,
        shell(bob, "bob", opened(bob, "bob")) as other,
    ):
        await said(socket, "echo rea''dy", "ready")
        begun = time.monotonic()
        assert alice.get("/hub/logout").is_success
        async with asyncio.timeout(25):
            # (the gateway notices as well, and may be the first to end the shell)
            assert await closed(socket) in {4401, None}
        assert time.monotonic() - begun < 20
        assert ask(alice, "GET", f"{terminals('alice')}/api/terminals").status_code == 403
        await said(other, "echo still-$((1+1))", "still-2")


async def test_the_page_of_a_terminal_alone_may_have_styles_of_its_own(people):
    alice = people["alice"]
    page = alice.get(f"{CONSOLE}terminal/alice/same?task=worker-0")
    again = alice.get(f"{CONSOLE}terminal/alice/same?task=worker-0")
    policy = page.headers["Content-Security-Policy"]
    assert "style-src-attr 'unsafe-inline'" in policy
    assert "script-src 'self';" in policy
    assert policy.count("unsafe") == 1
    assert policy != again.headers["Content-Security-Policy"]
    for path in ("connect/alice/same", "jobs/alice/same", "terminals"):
        assert "unsafe" not in alice.get(CONSOLE + path).headers["Content-Security-Policy"]
