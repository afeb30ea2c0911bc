"""The scheduler's API through a real Jupyter server: what passes, what does not, and that all of it flows."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from jupyter_server.auth import Authorizer

from pai_labextension.proxy.forwarding import (
    MethodError,
    NoResourceError,
    ParameterError,
    RequestTarget,
    target,
)
from pai_scheduler.api.operations import operations_of
from pai_scheduler.api.routes import ROUTES

LOG = "user/alice/jobs/train/taskRoles/worker/tasks/0/logs/stdout"


async def test_a_request_reaches_the_scheduler_with_its_method_path_query_and_body(browser, scheduler):
    answer = await browser.post("pai/api/v1/jobs", json={"jobName": "a"})
    assert answer.status_code == 200
    assert answer.json() == {"path": "jobs", "method": "POST", "body": '{"jobName":"a"}'}
    await browser.get("pai/api/v1/jobs?username=al+ice%26b&1700000000000")
    await browser.put("pai/api/v1/user/al%20ice/jobs/a~1/executionType", json={"value": "STOP"})
    await browser.delete("pai/api/v1/user/alice/jobs/a")
    assert [(asked.method, asked.uri.partition("/api/v1/")[2]) for asked in scheduler.asked] == [
        ("POST", "jobs"),
        ("GET", "jobs?username=al+ice%26b"),
        ("PUT", "user/al%20ice/jobs/a~1/executionType"),
        ("DELETE", "user/alice/jobs/a"),
    ]
    assert scheduler.asked[0].headers["Content-Type"] == "application/json"


async def test_the_scheduler_sees_the_users_own_token_and_nothing_of_the_browsers(browser, scheduler):
    await browser.get(
        "pai/api/v1/nodes?token=the-browsers-token&_xsrf=2",
        headers={
            "Cookie": "jupyterhub-session-id=secret",
            "X-XSRFToken": "secret",
            "X-Forwarded-For": "10.0.0.1",
            "Origin": "",
            "TE": "trailers",
            "Accept-Language": "zh-CN",
            "Last-Event-ID": "7",
        },
    )
    (asked,) = scheduler.asked
    assert asked.uri.endswith("/api/v1/nodes")
    assert asked.headers["Authorization"] == "Bearer the-users-own-token"
    assert asked.headers["Accept-Language"] == "zh-CN"
    assert asked.headers["Last-Event-ID"] == "7"
    passed = {name.lower() for name in asked.headers}
    assert passed.isdisjoint({"cookie", "x-xsrftoken", "x-forwarded-for", "te", "origin"})
    assert "secret" not in str(list(asked.headers.get_all()))


async def test_of_an_answer_only_what_belongs_to_the_api_comes_back(browser):
    answer = await browser.get("pai/api/v1/nodes")
    assert answer.headers["X-Warning"] == "said by the scheduler"
    assert "scheduler=1" not in answer.headers.get("Set-Cookie", "")
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path",
    [
        "",
        "token",
        "healthz",
        "user/alice/jobs/../../nodes",
        "user/alice/jobs/%2e%2e/%2e%2e/nodes",
        "user/alice/jobs/..%2f..%2fnodes",
        "user/alice/jobs/%252e%252e",
        "user/alice/jobs/a%5c..%5cb",
        "user/alice/jobs/a%00",
        "user/alice/jobs/",
        "user//jobs",
        "/nodes",
        "nodes/",
        "nodes;x",
        "user/alice/jobs/a/taskRoles/r/tasks/0/terminal",
        "user/alice/jobs/a/taskRoles/r/tasks/-1/metrics",
        "user/alice/jobs/a/taskRoles/r/tasks/0/logs/passwd",
        "http://example.com/nodes",
    ],
)
async def test_a_path_that_the_api_does_not_have_ends_here(browser, scheduler, path):
    assert await raw_status(browser, f"pai/api/v1/{path}") == 404
    assert scheduler.asked == []


async def raw_status(browser: httpx.AsyncClient, path: str) -> int:
    """Ask for a path as it is written here: an ordinary client would tidy it up before it sends it."""
    url = browser.base_url
    reader, writer = await asyncio.open_connection(url.host, url.port)
    lines = (
        f"GET {url.raw_path.decode()}{path} HTTP/1.1",
        f"Host: {url.netloc.decode()}",
        f"Authorization: {browser.headers['Authorization']}",
        "Connection: close",
    )
    writer.write("\r\n".join((*lines, "", "")).encode())
    status = int((await reader.readline()).split()[1])
    writer.close()
    await writer.wait_closed()
    return status


async def test_other_versions_and_other_paths_of_the_scheduler_are_not_reached(browser, scheduler):
    for path in ("pai/api/v2/nodes", "pai/api/nodes", "pai/nodes", "pai/api/v1"):
        assert (await browser.get(path)).status_code == 404
    assert scheduler.asked == []


async def test_a_method_or_parameter_that_a_resource_does_not_have_ends_here(browser, scheduler):
    wrong_method = await browser.delete("pai/api/v1/nodes")
    assert (wrong_method.status_code, wrong_method.json()["code"]) == (405, "MethodNotAllowedError")
    assert wrong_method.headers["Allow"] == "GET"
    assert (await browser.head("pai/api/v1/nodes")).status_code == 405
    wrong_parameter = await browser.get("pai/api/v1/nodes?redirect=x", headers={"Accept-Language": "zh-CN"})
    assert (wrong_parameter.status_code, wrong_parameter.json()["code"]) == (400, "InvalidParametersError")
    assert wrong_parameter.json()["message"] == "“nodes”没有参数“redirect”。"
    assert scheduler.asked == []


async def test_who_is_not_logged_in_is_refused(browser, scheduler):
    del browser.headers["Authorization"]
    for method, path in (
        ("GET", "nodes"),
        ("POST", "jobs"),
        ("PUT", "user/a/jobs/b"),
        ("DELETE", "user/a/jobs/b"),
    ):
        answer = await browser.request(method, f"pai/api/v1/{path}", json={} if method != "GET" else None)
        assert answer.status_code == 403
    assert scheduler.asked == []


async def test_a_browser_with_a_cookie_needs_the_xsrf_token_to_change_something(browser, scheduler):
    del browser.headers["Authorization"]
    await browser.get("login")
    await browser.get("api/me?token=the-browsers-token")
    assert (await browser.get("pai/api/v1/nodes")).status_code == 200
    forged = await browser.post("pai/api/v1/jobs", json={"jobName": "a"})
    assert (forged.status_code, len(scheduler.asked)) == (403, 1)
    own = await browser.post(
        "pai/api/v1/jobs", json={"jobName": "a"}, headers={"X-XSRFToken": browser.cookies["_xsrf"]}
    )
    assert (own.status_code, len(scheduler.asked)) == (200, 2)


class ReadOnly(Authorizer):
    """Lets everybody read what is PAI's, and nothing else."""

    def is_authorized(self, _handler: Any, _user: Any, action: str, resource: str) -> bool:
        return (action, resource) == ("read", "pai")


async def test_the_servers_authorizer_decides(make_jupyter, scheduler):
    browser = await make_jupyter(scheduler.url, authorizer_class=ReadOnly)
    assert (await browser.get("pai/api/v1/nodes")).status_code == 200
    for method, path in (("POST", "jobs"), ("PUT", "virtual-clusters/a"), ("DELETE", "virtual-clusters/a")):
        refused = await browser.request(method, f"pai/api/v1/{path}", json={})
        assert (refused.status_code, refused.json()["code"]) == (403, "ForbiddenUserError")
    assert len(scheduler.asked) == 1


async def test_events_arrive_one_by_one_while_the_job_goes_on(browser, scheduler):
    more = asyncio.Event()

    async def events(handler):
        handler.set_header("Content-Type", "text/event-stream")
        handler.write("id: 1\ndata: {}\n\n")
        await handler.flush()
        await more.wait()
        handler.write("id: 2\ndata: {}\n\n")

    scheduler.answers["user/alice/jobs/train/events"] = events
    async with browser.stream("GET", "pai/api/v1/user/alice/jobs/train/events?follow=1") as answer:
        assert answer.headers["Content-Type"] == "text/event-stream"
        pieces = answer.aiter_text()
        assert await anext(pieces) == "id: 1\ndata: {}\n\n"
        more.set()
        assert await anext(pieces) == "id: 2\ndata: {}\n\n"


async def test_closing_a_followed_log_closes_it_at_the_scheduler(browser, scheduler):
    async def silent_log(handler):
        handler.set_header("Content-Type", "text/plain")
        handler.write("the only line\n")
        await handler.flush()
        await scheduler.hung_up.wait()

    scheduler.answers[LOG] = silent_log
    async with browser.stream("GET", f"pai/api/v1/{LOG}?follow=1") as answer:
        assert await anext(answer.aiter_text()) == "the only line\n"
        assert not scheduler.hung_up.is_set()
    await asyncio.wait_for(scheduler.hung_up.wait(), 30)


async def test_a_client_that_leaves_before_the_answer_is_not_waited_for(browser, scheduler):
    asked = asyncio.Event()

    async def slow(_handler):
        asked.set()
        await scheduler.hung_up.wait()

    scheduler.answers["nodes"] = slow
    request = asyncio.create_task(browser.get("pai/api/v1/nodes"))
    await asked.wait()
    request.cancel()
    await asyncio.wait_for(scheduler.hung_up.wait(), 30)


async def test_a_reader_that_pauses_makes_the_scheduler_pause(browser, scheduler):
    total, piece, sent = 2048, b"x" * 65536, 0

    async def long_log(handler):
        nonlocal sent
        for _ in range(total):
            handler.write(piece)
            await handler.flush()
            sent += 1

    scheduler.answers[LOG] = long_log
    async with browser.stream("GET", f"pai/api/v1/{LOG}") as answer:
        pieces = answer.aiter_raw()
        await anext(pieces)
        before = -1
        while sent != before:  # until nothing moves any more
            before = sent
            await asyncio.sleep(0.3)
        assert sent < total / 2
        received = [len(part) async for part in pieces]
    assert sent == total
    assert sum(received) > total * len(piece) * 0.99


async def test_a_body_goes_to_the_scheduler_while_it_comes(browser, scheduler):
    async def body():
        yield b'{"jobName": '
        await asyncio.wait_for(scheduler.body_began.wait(), 30)
        yield b'"a"}'

    answer = await browser.post("pai/api/v1/jobs", content=body())
    assert json.loads(answer.json()["body"]) == {"jobName": "a"}


async def test_a_body_that_the_scheduler_refuses_early_does_not_hang(browser, scheduler):
    async def body():
        for _ in range(64):
            yield b"x" * 65536

    def refuse(handler):
        handler.set_status(413)
        handler.write({"code": "InvalidParametersError", "message": "too much"})

    scheduler.answers["jobs"] = refuse
    answer = await browser.post("pai/api/v1/jobs", content=body())
    assert (answer.status_code, answer.json()["message"]) == (413, "too much")


async def test_the_schedulers_own_refusals_come_back_word_for_word(browser, scheduler):
    refusal = {"code": "NoJobError", "message": "no job “b”", "errors": []}

    def refuse(handler):
        handler.set_status(404)
        handler.write(refusal)

    scheduler.answers["user/a/jobs/b"] = refuse
    answer = await browser.get("pai/api/v1/user/a/jobs/b")
    assert (answer.status_code, answer.json()) == (404, refusal)


def page(handler):
    handler.set_status(503)
    handler.set_header("Content-Type", "text/html")
    handler.write("<h1>Service Unavailable</h1>")


def login(handler):
    handler.redirect("http://example.com/hub/login")


@pytest.mark.parametrize("proxy", [page, login])
async def test_what_a_proxy_says_in_place_of_the_scheduler_is_not_shown(browser, scheduler, proxy):
    scheduler.answers["nodes"] = proxy
    answer = await browser.get("pai/api/v1/nodes")
    assert (answer.status_code, answer.json()["code"]) == (502, "SchedulerUnreachable")
    assert "Location" not in answer.headers


@pytest.mark.parametrize(
    ("language", "sentence"), [("en", "does not answer"), ("zh-CN,zh;q=0.9", "没有响应")]
)
async def test_nobody_at_the_schedulers_address_is_said_in_the_readers_language(
    make_jupyter, language, sentence
):
    browser = await make_jupyter("http://127.0.0.1:9")
    answer = await browser.get("pai/api/v1/nodes", headers={"Accept-Language": language})
    assert (answer.status_code, answer.json()["code"]) == (502, "SchedulerUnreachable")
    assert sentence in answer.json()["message"]
    assert "http://127.0.0.1:9" in answer.json()["message"]


async def test_a_body_for_a_scheduler_that_is_not_there_does_not_hang(make_jupyter):
    browser = await make_jupyter("http://127.0.0.1:9")
    answer = await browser.post("pai/api/v1/jobs", content=b"x" * 1_000_000)
    assert answer.status_code == 502


async def test_without_a_token_of_the_users_own_nothing_is_asked(make_jupyter, scheduler):
    browser = await make_jupyter(scheduler.url, token="")
    answer = await browser.get("pai/api/v1/nodes")
    assert (answer.status_code, answer.json()["code"]) == (401, "UnauthorizedUserError")
    assert scheduler.asked == []


async def test_an_answer_that_breaks_off_does_not_look_complete(browser, scheduler):
    async def broken(handler):
        handler.write("the first line\n")
        await handler.flush()
        handler.detach().close()

    scheduler.answers[LOG] = broken
    with pytest.raises(httpx.RemoteProtocolError):
        await browser.get(f"pai/api/v1/{LOG}?follow=1")


async def test_a_refusal_says_that_the_connection_ends(browser):
    refusals = [
        await browser.get("pai/api/v1/secrets"),
        await browser.post("pai/api/v1/nodes", content=b"x" * 100),
    ]
    assert [answer.status_code for answer in refusals] == [404, 405]
    assert [answer.headers.get("Connection") for answer in refusals] == ["close"] * 2


# Which paths, methods and parameters are the API's, and how they are written when they go on.


JOB = "user/alice/jobs/train-1.0~b"
TASK = f"{JOB}/taskRoles/worker/tasks/12"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "user"),
        ("GET", "user/alice"),
        ("GET", "user/user"),
        ("GET", "authn/info"),
        ("GET", "openapi.yaml"),
        ("GET", "jobs"),
        ("POST", "jobs"),
        ("POST", "user/alice/jobs"),
        ("PUT", JOB),
        ("DELETE", JOB),
        ("GET", f"{JOB}/config"),
        ("GET", f"{JOB}/ssh"),
        ("GET", f"{JOB}/ssh/key"),
        ("GET", "user/alice/ssh-keys"),
        ("POST", "user/alice/ssh-keys"),
        ("GET", "user/alice/jobs/ssh-keys/attempts"),
        ("GET", f"{JOB}/attempts"),
        ("GET", f"{JOB}/events"),
        ("PUT", f"{JOB}/executionType"),
        ("GET", f"{TASK}/logs/all"),
        ("GET", f"{TASK}/metrics"),
        ("POST", "validate"),
        ("GET", "events"),
        ("GET", "nodes"),
        ("GET", "cluster/usage"),
        ("GET", "virtual-clusters"),
        ("PUT", "virtual-clusters/vision"),
        ("PUT", "virtual-clusters/vision/status"),
    ],
)
def test_what_the_contract_has_passes_as_it_is(method, path):
    assert target(method, path, "") == RequestTarget(f"api/v1/{path}", "")


#: a value for each part of an address that varies
VALUES = {
    "user": "alice",
    "job": "train",
    "role": "worker",
    "index": "0",
    "port": "8888",
    "stream": "all",
    "virtualCluster": "vision",
    "node": "node-a",
    "maintenance": "disks",
    "schedule": "nightly",
    "fingerprint": "SHA256:" + "a" * 43,
}
#: what a page needs no answer of: passwords, the notebook server's own address, and that of a task's port
KEPT_BACK = {
    # the notebook server itself asks
    "GET /schedule-times",
    "GET /healthz",
    "GET ",
    "POST /token",
    "GET /user/{user}/jobs/{job}/taskRoles/{role}/tasks/{index}/ports/{port}",
}
#: what a page has no use for: a link that is good without a token
UNUSED = {"expires", "signature"}


def test_every_call_that_the_api_declares_passes_with_its_parameters_or_is_kept_back_on_purpose():
    declared = [one for handler in {handler for _, handler in ROUTES} for one in operations_of(handler)]
    kept_back = set()
    for one in declared:
        parameters = {item.name for item in one.parameters if item.place == "query"}
        query = "&".join(f"{name}=1" for name in parameters - UNUSED)
        try:
            target(one.method, one.path.format(**VALUES).removeprefix("/"), query)
        except NoResourceError:
            kept_back.add(f"{one.method} {one.path}")
        for name in parameters & UNUSED:
            with pytest.raises(ParameterError):
                target(one.method, one.path.format(**VALUES).removeprefix("/"), f"{name}=1")
    assert kept_back == KEPT_BACK


def test_names_are_encoded_anew():
    assert target("GET", "user/ä b@c/jobs/x", "").path == "api/v1/user/%C3%A4%20b%40c/jobs/x"


def test_a_fingerprint_is_one_name_whatever_is_in_it():
    fingerprint = "SHA256:" + "aB3/+" * 8 + "aB3"
    found = target("DELETE", f"user/alice/ssh-keys/{fingerprint}", "")
    assert found.path == f"api/v1/user/alice/ssh-keys/{quote(fingerprint, safe='')}"
    for wrong in ("SHA256:short", f"{fingerprint}/x", "../jobs/a", f"MD5{fingerprint}", ""):
        with pytest.raises(NoResourceError):
            target("DELETE", f"user/alice/ssh-keys/{wrong}", "")


def test_parameters_of_jupyters_own_stay_here():
    query = "token=secret&username=a%20b&_xsrf=1&no_track_activity=1&1700000000000"
    assert target("GET", "jobs", query).query == "username=a+b"


def test_what_a_task_uses_can_be_asked_from_a_time_on():
    assert target("GET", f"{TASK}/metrics", "attempt=1&after=1700000000000").query == (
        "attempt=1&after=1700000000000"
    )


def test_a_log_can_be_asked_from_a_time_on_and_attempts_without_their_tasks():
    query = "attempt=1&since=1700000000000&limit=100&timestamps=1"
    assert target("GET", f"{TASK}/logs/all", query).query == query
    assert target("GET", f"{JOB}/attempts", "attempt=1&tasks=0").query == "attempt=1&tasks=0"


def test_an_answer_that_is_followed_is_told_from_one_that_ends():
    assert target("GET", f"{TASK}/logs/stdout", "follow=1&offset=-100").follows
    assert target("GET", f"{JOB}/events", "follow=True").follows
    assert not target("GET", f"{TASK}/logs/stdout", "follow=0").follows
    assert not target("GET", f"{TASK}/logs/stdout", "").follows


@pytest.mark.parametrize(
    "name", ["", ".", "..", "a/b", "a\\b", "%2e%2e", "a\nb", "a\x7f", "a?b", "a#b", "x" * 256]
)
def test_a_name_that_could_lead_elsewhere_is_no_name(name):
    with pytest.raises(NoResourceError):
        target("GET", f"user/alice/jobs/{name}", "")


@pytest.mark.parametrize(
    "path",
    [
        "token",
        "healthz",
        f"{TASK}/terminal",
        f"{TASK}/logs/core",
        "user/a/jobs/b/taskRoles/r/tasks/x/metrics",
    ],
)
def test_the_rest_of_the_scheduler_is_not_there(path):
    with pytest.raises(NoResourceError):
        target("GET", path, "")


def test_a_wrong_method_is_told_the_right_ones():
    with pytest.raises(MethodError, match=r"^GET, POST$"):
        target("DELETE", "jobs", "")


def test_an_unknown_parameter_is_named():
    with pytest.raises(ParameterError, match=r"^size$"):
        target("GET", "jobs", "size=1")
