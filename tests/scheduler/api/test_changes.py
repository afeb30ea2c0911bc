"""Waiting for a change over REST."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest

from pai_scheduler.api import changes
from pai_scheduler.client.rest import Client
from tests.scheduler.conftest import checked
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run a scheduler in which nothing happens that these tests do not do."""
    running = WarmScheduler(tmp_path_factory.mktemp("changes"))
    yield running
    running.close()


@pytest.fixture
async def alice(own: RunningScheduler) -> AsyncIterator[Client]:
    client = checked(Client(own.url, "token-of-alice"))
    yield client
    await client.close()


async def test_who_knows_nothing_or_an_old_version_is_answered_at_once(alice: Client) -> None:
    async with asyncio.timeout(changes.LONGEST_WAIT - 5):
        version = await alice.changes()
        assert await alice.changes("of another run") == version


async def test_who_is_up_to_date_waits_for_a_change_of_anybodys(alice: Client, own: RunningScheduler) -> None:
    version = await alice.changes()
    waiting = asyncio.create_task(alice.changes(version))
    async with checked(Client(own.url, "token-of-bob")) as bob:
        done, _ = await asyncio.wait({waiting}, timeout=1.0)
        assert not done
        await bob.submit(hello_job("changes-something"))
        async with asyncio.timeout(changes.LONGEST_WAIT - 5):
            assert await waiting != version
        async for _ in bob.events("bob", "changes-something"):
            pass


async def test_a_long_wait_ends_unchanged(alice: Client) -> None:
    version = await alice.changes()
    async with asyncio.timeout(2 * changes.LONGEST_WAIT):
        assert await alice.changes(version) == version
