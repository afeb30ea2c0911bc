"""The cluster's storage through a real Jupyter server: it flows both ways and never becomes a page."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from pai_labextension.proxy.forwarding import MethodError, NoResourceError, ParameterError, storage_target
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


# Which paths and operations of the storage may be asked for from the browser, and how they go on.


@pytest.mark.parametrize(
    ("method", "query"),
    [
        ("GET", "op=OPEN&offset=5&length=7"),
        ("GET", "op=ARCHIVE"),
        ("GET", "op=GETFILESTATUS"),
        ("GET", "op=LISTSTATUS_BATCH&startAfter=a&limit=10"),
        ("GET", "op=GETCONTENTSUMMARY"),
        ("GET", "op=GETHOMEDIRECTORY"),
        ("PUT", "op=CREATE&overwrite=true"),
        ("POST", "op=APPEND&offset=5"),
        ("PUT", "op=MKDIRS"),
        ("PUT", "op=RENAME&destination=%2Falice%2Fb&renameoptions=OVERWRITE"),
        ("PUT", "op=COPY&destination=%2Falice%2Fb&overwrite=true"),
        ("PUT", "op=SETTIMES&modificationtime=5&accesstime=-1"),
        ("DELETE", "op=DELETE&recursive=true"),
    ],
)
def test_what_the_drive_does_passes_and_is_asked_without_a_redirect(method: str, query: str) -> None:
    target = storage_target(method, "alice/a", query)
    assert (target.path, target.query) == ("webhdfs/v1/alice/a", f"{query}&data=true")


def test_a_path_is_encoded_anew() -> None:
    target = storage_target("GET", "/alice//数据 1%/a?b#c;d/", "op=OPEN")
    assert target.path == "webhdfs/v1/alice/%E6%95%B0%E6%8D%AE%201%25/a%3Fb%23c%3Bd"
    assert target.name == "a?b#c;d"
    assert storage_target("GET", "", "op=LISTSTATUS_BATCH").path == "webhdfs/v1/"


def test_a_destination_is_encoded_anew_too() -> None:
    target = storage_target("PUT", "alice/a", "op=RENAME&destination=//alice/%E6%95%B0%26b/")
    assert target.query == "op=RENAME&destination=%2Falice%2F%E6%95%B0%26b&data=true"


@pytest.mark.parametrize("path", ["..", "alice/../bob/a", "alice/./a", "alice/a\0", "alice/" + "x" * 256])
def test_a_path_that_could_lead_elsewhere_is_no_path(path: str) -> None:
    with pytest.raises(NoResourceError):
        storage_target("GET", path, "op=OPEN")
    if "\0" not in path:
        with pytest.raises(NoResourceError):
            storage_target("PUT", "alice/a", f"op=RENAME&destination=/{path}")


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("", "op"),
        ("op=GETDELEGATIONTOKEN", "op"),
        ("op=OPEN&user.name=bob", "user.name"),
        ("op=OPEN&doas=bob", "doas"),
        ("op=OPEN&noredirect=true", "noredirect"),
        ("op=OPEN&data=false", "data"),
        ("op=OPEN&ticket=x", "ticket"),
        ("op=OPEN&op=DELETE", "op"),
    ],
)
def test_what_the_drive_never_asks_for_is_named(query: str, name: str) -> None:
    with pytest.raises(ParameterError, match=rf"^{name}$"):
        storage_target("GET", "alice/a", query)


def test_an_operation_has_one_method() -> None:
    with pytest.raises(MethodError, match=r"^DELETE$"):
        storage_target("GET", "alice/a", "op=DELETE")


def test_parameters_of_jupyters_own_stay_here() -> None:
    query = "op=OPEN&token=secret&_xsrf=1&1700000000000"
    assert storage_target("GET", "alice/a", query).query == "op=OPEN&data=true"
