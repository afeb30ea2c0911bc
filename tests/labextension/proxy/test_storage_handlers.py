"""The cluster's storage through a real Jupyter server: it flows both ways and never becomes a page."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from tests.labextension.conftest import Scheduler

STORAGE = "pai/webhdfs/v1"


async def test_a_request_reaches_the_storage_with_the_users_own_token(
    browser: httpx.AsyncClient, scheduler: Scheduler
) -> None:
    answer = await browser.put(f"{STORAGE}/alice/%E6%95%B0%20a?op=CREATE&overwrite=true", content=b"contents")
    assert answer.status_code == 200
    (asked,) = scheduler.asked
    assert (asked.method, asked.body) == ("PUT", b"contents")
    assert asked.uri == "/services/pai/webhdfs/v1/alice/%E6%95%B0%20a?op=CREATE&overwrite=true&data=true"
    assert asked.headers["Authorization"] == "Bearer the-users-own-token"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("alice/page%20%E6%95%B0.html?op=OPEN", ("application/octet-stream", "page%20%E6%95%B0.html")),
        ("alice/code?op=ARCHIVE", ("application/zip", "code.zip")),
    ],
)
async def test_what_is_in_a_file_is_a_download_and_never_a_page(
    browser: httpx.AsyncClient, scheduler: Scheduler, path: str, expected: tuple[str, str]
) -> None:
    def page(handler: Any) -> None:
        handler.set_header("Content-Type", "text/html")
        handler.set_header("Content-Disposition", "inline")
        handler.write("<script>alert(1)</script>")

    scheduler.answers["webhdfs"] = page
    answer = await browser.get(f"{STORAGE}/{path}")
    assert answer.text == "<script>alert(1)</script>"
    media_type, name = expected
    assert answer.headers["Content-Type"] == media_type
    assert answer.headers["Content-Disposition"] == f"attachment; filename*=UTF-8''{name}"
    assert answer.headers["Content-Security-Policy"] == "sandbox; default-src 'none'"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Content-Length"] == "25"


async def test_a_redirect_is_not_handed_to_the_browser(
    browser: httpx.AsyncClient, scheduler: Scheduler
) -> None:
    scheduler.answers["webhdfs"] = lambda handler: handler.redirect("http://10.0.0.1:9864/webhdfs/v1/a")
    answer = await browser.get(f"{STORAGE}/alice/a?op=OPEN")
    assert answer.status_code == 502
    assert "Location" not in answer.headers


async def test_what_the_storage_refuses_is_told_in_its_words(
    browser: httpx.AsyncClient, scheduler: Scheduler
) -> None:
    def refuse(handler: Any) -> None:
        handler.set_status(404)
        handler.write(
            {"RemoteException": {"exception": "FileNotFoundException", "message": "There is no file."}}
        )

    scheduler.answers["webhdfs"] = refuse
    answer = await browser.get(f"{STORAGE}/alice/a?op=OPEN")
    assert answer.json()["RemoteException"]["message"] == "There is no file."
    assert "Content-Disposition" not in answer.headers


async def test_a_piece_is_sent_on_before_the_next_arrives(
    browser: httpx.AsyncClient, scheduler: Scheduler
) -> None:
    more = asyncio.Event()

    async def pieces() -> Any:
        yield b"first"
        await scheduler.body_began.wait()
        more.set()
        yield b"second"

    await browser.post(f"{STORAGE}/alice/a?op=APPEND", content=pieces())
    assert more.is_set()
    assert scheduler.asked[0].body == b"firstsecond"


async def test_what_the_drive_never_asks_for_ends_here(
    browser: httpx.AsyncClient, scheduler: Scheduler
) -> None:
    chinese = {"Accept-Language": "zh-CN"}
    refusals = [
        await browser.get(f"{STORAGE}/alice/..%2F..%2Fbob?op=OPEN", headers=chinese),
        await browser.get(f"{STORAGE}/alice/a?op=DELETE"),
        await browser.get(f"{STORAGE}/alice/a?op=OPEN&doas=bob"),
    ]
    assert [answer.status_code for answer in refusals] == [404, 405, 400]
    assert refusals[0].json()["message"] == "“alice/../../bob”不是存储中的路径。"
    del browser.headers["Authorization"]
    browser.cookies.clear()
    assert (await browser.get(f"{STORAGE}/alice/a?op=OPEN")).status_code == 403
    assert scheduler.asked == []
