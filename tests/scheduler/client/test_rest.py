"""The client: refusals and silence are errors of their own, settings come from the environment."""

from __future__ import annotations

import httpx
import pytest

from pai_scheduler.client.rest import ApiError, Client, UnreachableError
from pai_scheduler.rest.address import DEFAULT_URL
from tests.testbed.scheduler import RunningScheduler, hello_job


async def test_a_refusal_carries_code_status_and_the_wrong_fields(alice: Client) -> None:
    with pytest.raises(ApiError) as refusal:
        await alice.submit({"jobName": "a b", "image": "x", "taskRoles": [{"name": "r", "command": "true"}]})
    assert (refusal.value.status, refusal.value.code) == (400, "InvalidParametersError")
    assert [error["path"] for error in refusal.value.errors] == ["$.jobName"]
    assert refusal.value.errors[0]["message"]


async def test_messages_come_in_the_chosen_language(scheduler: RunningScheduler) -> None:
    async with Client(scheduler.url, "wrong", locale="zh_CN") as client:
        with pytest.raises(ApiError, match="此令牌无效"):
            await client.jobs()


async def test_no_answer_is_no_refusal() -> None:
    async with Client("http://127.0.0.1:1", "t") as client:
        with pytest.raises(UnreachableError):
            await client.jobs()
        with pytest.raises(UnreachableError):
            async for _ in client.events("a", "b"):
                pass


async def test_a_refused_stream_is_a_refusal(alice: Client) -> None:
    with pytest.raises(ApiError) as refusal:
        async for _ in alice.follow_log("alice", "never", "main", 0):
            pass
    assert (refusal.value.status, refusal.value.code) == (404, "NoJobError")


async def test_an_answer_that_is_none_of_ours_is_a_refusal_too() -> None:
    def answer(_request: httpx.Request) -> httpx.Response:
        return httpx.Response(502, html="<h1>Bad gateway</h1>")

    async with Client("http://hub", "t", transport=httpx.MockTransport(answer)) as client:
        with pytest.raises(ApiError) as refusal:
            await client.jobs()
    assert (refusal.value.status, refusal.value.code) == (502, "UnknownError")
    assert "Bad Gateway" in str(refusal.value)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"<h1>Log in</h1>", "JSON is malformed"),
        (b"", "truncated"),
        (b'["\xe9"]', ""),
        (b'[{"fingerprint": "SHA256:x", "type": "ssh-rsa", "comment": ""}]', r"`addedTime` - at `\$\[0\]`"),
    ],
)
async def test_an_answer_that_does_not_fit_is_a_refusal_that_says_where(answer: bytes, reason: str) -> None:
    peer = httpx.MockTransport(lambda _: httpx.Response(200, content=answer))
    async with Client("http://hub", "t", transport=peer) as client:
        with pytest.raises(
            ApiError, match=rf"^What answers at http://hub is no scheduler, or .*{reason}"
        ) as no:
            await client.public_keys("alice")
    assert (no.value.status, no.value.code) == (502, "UnexpectedAnswerError")


async def test_what_a_newer_scheduler_says_beside_is_left_out() -> None:
    key = {"fingerprint": "SHA256:x", "type": "ssh-rsa", "comment": "", "addedTime": 1}
    peer = httpx.MockTransport(lambda _: httpx.Response(200, json=[{**key, "lastUsed": {"by": "a"}}]))
    async with Client("http://hub", "t", transport=peer) as client:
        assert await client.public_keys("alice") == [key]


async def test_address_and_token_come_from_the_environment(
    scheduler: RunningScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_API_URL", scheduler.url + "/")
    monkeypatch.setenv("JUPYTERHUB_API_TOKEN", "token-of-bob")
    monkeypatch.delenv("PAI_TOKEN", raising=False)
    async with Client() as client:
        assert (await client.whoami())["username"] == "bob"
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    async with Client() as client:
        assert (await client.whoami())["username"] == "alice"
    monkeypatch.delenv("PAI_API_URL")
    assert Client(token="t").url == DEFAULT_URL


async def test_a_job_is_submitted_watched_and_read_with_the_client(alice: Client) -> None:
    job = hello_job("by-the-client", "echo from the client")
    assert await alice.submit(job) == "by-the-client"
    assert await alice.config("alice", "by-the-client") == job
    assert (await alice.validate(job))["errors"] == []
    types = [event["type"] async for event in alice.events("alice", "by-the-client")]
    assert types == [event["type"] for event in await alice.list_events("alice", "by-the-client")]
    parts = [part async for part in alice.log_parts("alice", "by-the-client", "main", 0, offset=5)]
    assert b"".join(parts) == b"the client\n"
    assert await alice.log("alice", "by-the-client", "main", 0, offset=-7, limit=6) == b"client"
    await alice.delete("alice", "by-the-client")
