"""One user's open streams are bounded, and only those that are open count."""

from __future__ import annotations

from contextlib import AsyncExitStack

import httpx
import pytest

from pai_scheduler.api.limits import Streams
from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.principal import Principal
from pai_scheduler.rest.errors import RequestError
from tests.testbed.scheduler import CLUSTER, RunningScheduler, StartScheduler, hello_job


def test_a_stream_counts_for_as_long_as_it_is_open_and_for_its_user_only() -> None:
    streams, alice = Streams(2), Principal("alice")
    with streams.counted(alice), streams.counted(alice):
        with pytest.raises(RequestError, match="2 logs and events") as refused, streams.counted(alice):
            pass
        assert (refused.value.status, refused.value.code) == (429, "TooManyStreamsError")
        with streams.counted(Principal("bob")):
            pass
    with pytest.raises(ZeroDivisionError), streams.counted(alice):
        raise ZeroDivisionError
    with streams.counted(alice), streams.counted(alice):
        pass


def test_an_administrator_is_not_counted() -> None:
    streams, root = Streams(1), Principal("root", admin=True)
    with streams.counted(root), streams.counted(root):
        pass


@pytest.fixture
def few(own_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler that lets a user follow three things."""
    return own_scheduler(cluster=f"{CLUSTER}\ndefaults: {{streamsPerUser: 3}}\n")


async def test_the_stream_after_the_last_is_refused_until_another_ends(few: RunningScheduler) -> None:
    log = "/user/alice/jobs/long/taskRoles/main/tasks/0/logs/all"
    async with (
        Client(few.url, "token-of-alice") as alice,
        Client(few.url, "token-of-bob") as bob,
        httpx.AsyncClient(
            base_url=f"{few.url}/api/v1", headers={"Authorization": "Bearer token-of-alice"}, trust_env=False
        ) as http,
        AsyncExitStack() as open_streams,
    ):
        await alice.submit(hello_job("long", "sleep 600"))
        for path in (log, "/events", "/user/alice/jobs/long/events"):
            stream = http.stream("GET", path, params={"follow": 1})
            assert (await open_streams.enter_async_context(stream)).status_code == 200
        for path in (log, "/events"):
            refused = await http.get(path, params={"follow": 1}, headers={"Accept-Language": "zh-CN"})
            assert (refused.status_code, refused.json()["code"]) == (429, "TooManyStreamsError")
            assert "3" in refused.json()["message"]
        # what is not followed is not bounded, nor is anybody else
        assert (await http.get(log)).status_code == 200
        with pytest.raises(ApiError, match="not found"):
            [part async for part in bob.follow_log("alice", "long", "main", 0)]
        await open_streams.aclose()
        await alice.stop("alice", "long")
        for _ in range(200):
            answer = await http.get(log, params={"follow": 1})
            if answer.status_code == 200:
                break
        assert answer.status_code == 200
