"""One request at the scheduler for all who listen, from the first to the last of them."""

from __future__ import annotations

import asyncio

import pytest

from pai_scheduler.client.rest import Client
from pai_spawner import handlers
from pai_spawner.handlers import ChangeFeed
from tests.testbed.scheduler import RunningScheduler, hello_job


async def heard(news: asyncio.Event) -> bool:
    try:
        async with asyncio.timeout(30):
            await news.wait()
    except TimeoutError:
        return False
    news.clear()
    return True


async def test_all_who_listen_hear_of_a_change_and_nobody_asks_when_nobody_listens(
    scheduler: RunningScheduler,
) -> None:
    asked = 0

    class Counting(Client):
        async def changes(self, after: str | None = None) -> str:
            nonlocal asked
            asked += 1
            return await super().changes(after)

    async with Counting(scheduler.url, "token-of-root") as client:
        feed = ChangeFeed(client)
        async with feed.listening() as first, feed.listening() as second:
            assert asked <= 2, "one request, however many listen"
            await client.submit(hello_job("heard"), user="alice")
            assert await heard(first)
            assert await heard(second)
        asked = 0
        await client.delete("alice", "heard")
        await asyncio.sleep(0.2)
        assert asked == 0
        async with feed.listening() as again:
            await client.submit(hello_job("heard-again"), user="alice")
            assert await heard(again)


async def test_who_listens_hears_that_the_scheduler_went_away_and_came_back(
    scheduler: RunningScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handlers, "_TRY_EVERY", 0.1)
    async with Client(scheduler.url, "token-of-root") as client, ChangeFeed(client).listening() as news:
        scheduler.kill()
        assert await heard(news)
        await asyncio.to_thread(scheduler.start)
        assert await heard(news)


async def test_who_begins_to_listen_to_a_scheduler_that_is_away_does_not_wait_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(handlers, "_PATIENCE", 0.2)
    async with Client("http://127.0.0.1:9", "token") as client, ChangeFeed(client).listening() as news:
        assert await heard(news), "that it is away"
