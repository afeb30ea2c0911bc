"""Waiting for a change over REST."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from pai_scheduler.api import events
from pai_scheduler.client.rest import Client
from tests.testbed.scheduler import RunningScheduler, StartScheduler, hello_job
from tests.testbed.warm import WarmScheduler


@pytest.fixture(scope="module")
def scheduler(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler in which nothing happens that these tests do not do."""
    return module_scheduler()


async def test_who_knows_nothing_or_an_old_version_is_answered_at_once(alice: Client) -> None:
    async with asyncio.timeout(events.LONGEST_WAIT - 5):
        version = await alice.changes()
        assert await alice.changes("of another run") == version


async def test_who_is_up_to_date_waits_for_a_change_of_anybodys(alice: Client, bob: Client) -> None:
    version = await alice.changes()
    waiting = asyncio.create_task(alice.changes(version))
    done, _ = await asyncio.wait({waiting}, timeout=1.0)
    assert not done
    await bob.submit(hello_job("changes-something"))
    async with asyncio.timeout(events.LONGEST_WAIT - 5):
        assert await waiting != version
    async for _ in bob.events("bob", "changes-something"):
        pass


class Impatient(WarmScheduler):
    """A scheduler whose longest wait is short."""

    def preparation(self) -> Callable[[], None]:
        """Return what makes it so."""
        return _wait_shortly


def _wait_shortly() -> None:
    events.LONGEST_WAIT = 0.5


async def test_a_long_wait_ends_unchanged(tmp_path: Path) -> None:
    running = await asyncio.to_thread(Impatient, tmp_path)
    async with Client(running.url, "token-of-alice") as alice, asyncio.timeout(events.LONGEST_WAIT - 5):
        version = await alice.changes()
        assert await alice.changes(version) == version
    await asyncio.to_thread(running.close)
