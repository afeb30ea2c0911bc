"""What every address has in common: who may, which method, in which language, and how a refusal looks."""

from __future__ import annotations

from itertools import product

import httpx
import pytest

from tests.scheduler.api.addresses import METHODS, addresses
from tests.testbed.scheduler import RunningScheduler


async def test_without_a_token_only_a_few_addresses_answer(scheduler: RunningScheduler) -> None:
    async with httpx.AsyncClient(base_url=f"{scheduler.url}/api/v1", trust_env=False) as stranger:
        for path in ("", "/", "/authn/info", "/healthz"):
            assert (await stranger.get(path)).status_code == 200, path
        for path in (
            "/jobs",
            "/user",
            "/user/alice",
            "/nodes",
            "/virtual-clusters",
            "/events",
            "/user/alice/jobs/x",
        ):
            answer = await stranger.get(path)
            assert answer.status_code == 401, path
            assert answer.json()["code"] == "UnauthorizedUserError"
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


async def test_nobody_learns_without_a_token_which_methods_there_are(
    scheduler: RunningScheduler,
) -> None:
    paths = [f"/api/v1{path}" for path, handler in addresses() if not handler.anonymous]
    paths += ["/webhdfs/v1/alice?op=NOTHING", "/webhdfs/v1/?op=CREATE"]
    assert len(paths) > 25
    async with httpx.AsyncClient(base_url=scheduler.url, trust_env=False) as stranger:
        for path, method in product(paths, METHODS):
            assert (await stranger.request(method, path, content=b"{}")).status_code == 401, (method, path)


@pytest.mark.parametrize("header", ["Bearer wrong", "Basic YWxpY2U6eA==", "Bearer"])
async def test_a_wrong_token_is_refused(scheduler: RunningScheduler, header: str) -> None:
    async with httpx.AsyncClient(headers={"Authorization": header}, trust_env=False) as client:
        answer = await client.get(f"{scheduler.url}/api/v1/jobs")
    assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError")


async def test_cookies_and_query_strings_are_no_tokens(scheduler: RunningScheduler) -> None:
    async with httpx.AsyncClient(cookies={"token": "token-of-alice"}, trust_env=False) as client:
        answer = await client.get(f"{scheduler.url}/api/v1/jobs", params={"token": "token-of-alice"})
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers


@pytest.mark.parametrize(
    "path", ["/nothing", "/user/alice/jobs/x/keys", "/user/alice/jobs/x/y/z", "/openapi"]
)
async def test_an_unknown_path_is_no_api(http: httpx.AsyncClient, path: str) -> None:
    answer = await http.get(path)
    assert (answer.status_code, answer.json()["code"]) == (404, "NoApiError")
    assert path in answer.json()["message"]


async def test_outside_of_the_api_there_is_nothing_but_the_health(scheduler: RunningScheduler) -> None:
    async with httpx.AsyncClient(base_url=scheduler.url, trust_env=False) as client:
        assert (await client.get("/healthz")).json() == {"status": "ok"}
        assert (await client.get("/")).json()["code"] == "NoApiError"


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", "/jobs", "GET, POST"),
        ("POST", "/nodes", "GET"),
        ("PATCH", "/user/alice/jobs/x", "GET, PUT, DELETE"),
        ("TRACE", "/user/alice/jobs/x", "GET, PUT, DELETE"),
        ("GET", "/validate", "POST"),
        ("DELETE", "/virtual-clusters", "GET"),
    ],
)
async def test_a_wrong_method_is_told_the_right_ones(
    http: httpx.AsyncClient, method: str, path: str, allowed: str
) -> None:
    answer = await http.request(method, path)
    assert (answer.status_code, answer.json()["code"]) == (405, "MethodNotAllowedError")
    assert answer.headers["Allow"] == allowed


async def test_a_refusal_is_in_the_callers_language(http: httpx.AsyncClient) -> None:
    path = "/user/alice/jobs/nowhere"
    english = (await http.get(path)).json()["message"]
    chinese = (await http.get("/nothing", headers={"Accept-Language": "fr, zh-TW;q=0.9, en;q=0.1"})).json()[
        "message"
    ]
    assert english == "Job nowhere of user alice is not found."
    assert chinese == "这里没有 /api/v1/nothing。"


async def test_no_answer_is_kept_by_caches_or_guessed_to_be_html(http: httpx.AsyncClient) -> None:
    for path in ("/jobs", "/nothing"):
        headers = (await http.get(path)).headers
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Content-Type"].startswith("application/json")


async def test_a_path_that_is_no_text_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.get(f"{http.base_url}user/%ff/jobs")
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")


@pytest.mark.parametrize(
    "query", ["offset=x", "limit=-1", "attempt=1.5", "follow=maybe", "limit=1&limit=2", "follow=1&follow=1"]
)
async def test_a_wrong_query_parameter_is_named(http: httpx.AsyncClient, query: str) -> None:
    answer = await http.get(f"/user/alice/jobs/x/taskRoles/r/tasks/0/logs/all?{query}")
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")
    assert answer.json()["errors"][0]["path"] == query.partition("=")[0]
