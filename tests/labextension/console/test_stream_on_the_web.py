"""The console's connection for all that a page follows, on a real Hub with a real scheduler."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import suppress
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect, sync_playwright
from tornado.httpclient import HTTPClientError, HTTPRequest
from tornado.websocket import WebSocketClientConnection, WebSocketClosedError, websocket_connect

from tests.hub import Hub
from tests.labextension.console.test_on_the_web import (
    CONSOLE,
    job,
    opened,
    submit,
    token_of,
)
from tests.testbed.browser import CHROMIUM_FLAGS


def log_of(user: str, name: str) -> dict[str, Any]:
    task = {"role": "worker", "index": 0, "attempt": 0, "stream": "all"}
    return {"kind": "log", "user": user, "job": name, **task}


async def connected(hub: Hub, client: httpx.Client, **headers: str) -> WebSocketClientConnection:
    cookies = "; ".join(f"{one.name}={one.value}" for one in client.cookies.jar if one.path in ("/", CONSOLE))
    url = hub.url.replace("http", "ws", 1) + CONSOLE + "stream"
    headers = {"Cookie": cookies, "Origin": hub.url, **headers}
    return await websocket_connect(HTTPRequest(url, headers=headers))


async def heard(socket: WebSocketClientConnection) -> dict[str, Any]:
    async with asyncio.timeout(60):
        message = await socket.read_message()
    assert message is not None, (socket.close_code, socket.close_reason)
    frame: dict[str, Any] = json.loads(message)
    return frame


async def follow(socket: WebSocketClientConnection, subject: object, cursor: str | None = None) -> None:
    await socket.write_message(json.dumps({"type": "sub", "id": 1, "subject": subject, "cursor": cursor}))


def test_a_line_of_a_log_and_the_end_of_a_job_are_shown_without_a_question(
    hub: Hub,
    chromium: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    go = tmp_path_factory.mktemp("go") / "go"
    go.parent.chmod(0o777)
    until_told = f"while [ ! -e {go} ]; do sleep 0.05; done"
    until_done = f"while [ -e {go} ]; do sleep 0.05; done"
    submit(hub, "alice", job("followed", f"echo begun; {until_told}; echo pushed; {until_done}"))
    with sync_playwright() as playwright:
        expect.set_options(timeout=60_000)
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        page = opened(browser, hub, "alice", "jobs/alice/followed")
        expect(page.get_by_text("begun", exact=True)).to_be_visible()
        page.wait_for_timeout(2_000)
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_timeout(5_000)
        assert asked == []
        go.touch()
        expect(page.get_by_text("pushed", exact=True)).to_be_visible()
        assert [url for url in asked if "/logs/" in url] == []
        go.unlink()
        expect(page.get_by_text("Succeeded", exact=True).first).to_be_visible()
        browser.close()


def test_nobody_follows_what_is_anothers_nor_from_another_page_nor_after_the_login(hub: Hub) -> None:
    submit(hub, "alice", job("secret", "while true; do echo secret; sleep 0.1; done"))
    with hub.browser("alice") as alice, hub.browser("bob") as bob:
        for client in (alice, bob):
            client.get(CONSOLE)
        asyncio.run(attack(hub, alice, bob))


async def attack(hub: Hub, alice: httpx.Client, bob: httpx.Client) -> None:
    with pytest.raises(HTTPClientError, match="403"):
        await connected(hub, alice, Origin="https://elsewhere.example")
    with pytest.raises(HTTPClientError, match="403"):
        await connected(hub, alice, Cookie="")
    for hello in ("", token_of(alice), "{}"):
        forged = await connected(hub, bob)
        await forged.write_message(hello)
        with suppress(WebSocketClosedError):  # (it is closed before, or after)
            await follow(forged, {"kind": "changes"})
        assert await forged.read_message() is None
    own, other = await connected(hub, alice), await connected(hub, bob)
    await own.write_message(token_of(alice))
    await other.write_message(token_of(bob))
    await follow(own, log_of("alice", "secret"), "0")
    assert (await heard(own))["type"] == "live"
    assert "secret" in (await heard(own))["data"]["text"]
    # while it is followed by whoever may
    await follow(other, log_of("alice", "secret"), "0")
    refusal = await heard(other)
    assert (refusal["type"], refusal["error"]["status"]) == ("end", 404)
    assert "secret" not in json.dumps(await heard_events(other))
    began = time.monotonic()
    await asyncio.to_thread(alice.get, "/hub/logout")
    async with asyncio.timeout(20):
        while await own.read_message() is not None:
            pass
    assert (own.close_code, time.monotonic() - began < 20) == (4401, True)
    other.close()


async def heard_events(socket: WebSocketClientConnection) -> list[dict[str, Any]]:
    """Return what somebody hears who follows the events of alice's jobs."""
    await follow(socket, {"kind": "events", "user": "alice"})
    return [await heard(socket), await heard(socket)]
