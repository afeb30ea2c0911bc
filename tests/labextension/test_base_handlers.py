"""Who is not logged in is refused before anything else is said, at every address of the extension."""

from __future__ import annotations

import re
from importlib import import_module

import httpx
import pytest

from pai_labextension.extension import _PARTS
from pai_labextension.lazy_routes import RouteSettings

#: Addresses that no route has, below those that some have.
UNKNOWN = ["pai/terminals/alice/job/main-0", "pai/run-plan/more", "pai/kernels/a/b/c", "pai/service/nothing"]


async def addresses() -> list[str]:
    """Return an address of each route, below the base URL, and some of none."""
    found = []
    for module, _ in _PARTS:
        settings = RouteSettings("http://127.0.0.1:9", "", "/", "/")
        part = import_module(module, "pai_labextension").make_part(settings)
        await part.close()
        for pattern, *_ in part.routes:
            path = re.sub(r"\((?:\?:)?([^()]*)\)", _an_example, pattern).replace("?", "")
            assert re.fullmatch(pattern, path), pattern
            found.append(path.removeprefix("/"))
    return [*found, *UNKNOWN]


def _an_example(group: re.Match[str]) -> str:
    """Return what a group of a pattern matches."""
    return next(one for one in ("main-0", "main", "/page", "a-b-c-d-e") if re.fullmatch(group[1], one))


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"])
async def test_nobody_learns_without_a_login_what_is_at_an_address(make_jupyter, method: str) -> None:
    browser = await make_jupyter("http://127.0.0.1:9")
    paths = await addresses()
    assert len(paths) >= 25
    async with httpx.AsyncClient(base_url=browser.base_url, trust_env=False) as stranger:
        for path in paths:
            for headers in ({}, {"Origin": "http://elsewhere"}):
                answer = await stranger.request(method, path, headers=headers)
                if answer.status_code == 302:
                    assert "/login?" in answer.headers["Location"], path
                else:
                    assert answer.status_code in (401, 403), (method, path, answer.status_code)


async def test_who_is_logged_in_learns_what_is_not_there(browser) -> None:
    answers = [await browser.get(path) for path in UNKNOWN]
    assert [(answer.status_code, answer.json()["code"]) for answer in answers] == [(404, "NoApiError")] * 4
    wrong = await browser.get("pai/run-plan")
    assert (wrong.status_code, wrong.json()["code"]) == (405, "MethodNotAllowedError")
