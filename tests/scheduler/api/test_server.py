"""A body that is too large gets its answer, whatever the client does meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import httpx

from pai_scheduler.api.http_server import MAX_BODY
from tests.testbed.scheduler import RunningScheduler


def _job_of(size: int, name: str) -> bytes:
    frame = json.dumps(
        {
            "jobName": name,
            "image": "x",
            "taskRoles": [{"name": "a", "command": "true"}],
            "extras": {"pad": ""},
        }
    )
    return frame.replace('""', '"' + "x" * (size - len(frame)) + '"').encode()


async def test_a_body_of_exactly_the_limit_is_read(http: httpx.AsyncClient) -> None:
    body = _job_of(MAX_BODY, "as-large-as-may-be")
    assert len(body) == MAX_BODY
    answer = await http.post("/validate", content=body)
    assert answer.status_code == 200
    assert answer.json()["errors"] == []


async def test_one_byte_more_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/validate", content=_job_of(MAX_BODY + 1, "too-large"))
    assert (answer.status_code, answer.json()["code"]) == (413, "BodyTooLargeError")
    assert "8 MiB" in answer.json()["message"]


async def test_a_client_that_sends_all_of_a_huge_body_still_reads_the_answer(http: httpx.AsyncClient) -> None:
    answer = await http.post("/jobs", content=b"x" * (5 * MAX_BODY))
    assert (answer.status_code, answer.json()["code"]) == (413, "BodyTooLargeError")
    # and the service goes on
    assert (await http.get("/jobs")).status_code == 200


async def test_a_body_of_unknown_length_is_counted(http: httpx.AsyncClient) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(3 * MAX_BODY // 65536):
            yield b"x" * 65536

    answer = await http.post("/jobs", content=endless())
    assert (answer.status_code, answer.json()["code"]) == (413, "BodyTooLargeError")


async def test_a_client_that_asks_first_need_not_send_it(scheduler: RunningScheduler) -> None:
    host, port = scheduler.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: {MAX_BODY + 1}\r\n"
        "Expect: 100-continue\r\nAccept-Language: zh\r\n\r\n".encode()
    )
    answer = await reader.read()
    writer.close()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 413 ")
    assert json.loads(body)["message"] == "请求体过大，最多 8 MiB。"


async def test_a_file_may_be_larger_than_any_body_of_the_api(scheduler: RunningScheduler) -> None:
    headers = {"Authorization": "Bearer token-of-alice"}
    async with httpx.AsyncClient(base_url=scheduler.url, headers=headers, trust_env=False) as alice:
        path, contents = "/webhdfs/v1/alice/large", bytes(MAX_BODY + 1)
        params = {"op": "CREATE", "overwrite": "true", "data": "true"}
        assert (await alice.put(path, params=params, content=contents)).status_code == 201
        # and only there
        for elsewhere in ("/webhdfs/v2/alice/large", "/webhdfs/v10", "/api/v1/webhdfs/v1/alice/large"):
            assert (await alice.put(elsewhere, content=contents)).status_code == 413


async def test_a_job_is_kept_whose_sender_does_not_wait_for_the_answer(
    scheduler: RunningScheduler, http: httpx.AsyncClient
) -> None:
    host, port = scheduler.url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    body = _job_of(400, "left-behind")
    writer.write(
        b"POST /api/v1/jobs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer token-of-alice\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body) + body
    )
    await writer.drain()
    writer.close()
    while (await http.get("/user/alice/jobs/left-behind")).status_code != 200:  # noqa: ASYNC110 - only the API tells
        await asyncio.sleep(0.01)
