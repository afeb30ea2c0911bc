"""What is to be told is told once, tried again with growing pauses, and given up after a day."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.cluster.placement import Cluster
from pai_scheduler.core.instructions import Announcement, Outcome
from pai_scheduler.core.model import JobEvent
from pai_scheduler.core.state_machine import Core
from pai_scheduler.i18n import Message, msg
from pai_scheduler.rest.errors import RequestError
from pai_scheduler.service.notifications import (
    AT_ONCE_PER_USER,
    GIVE_UP,
    Notifications,
    Sender,
    UndeliveredError,
    fair,
)
from pai_scheduler.service.writer import Writer
from pai_scheduler.store.database import StoreError
from pai_scheduler.store.records import WaitingAnnouncement
from pai_scheduler.store.store import Store
from tests.scheduler.store.stored_jobs import add
from tests.testbed.empty_store import put_empty_store

HOUR = 3_600_000


class Way:
    """A way out that is closed for as long as a test wants."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.documents: list[dict[str, Any]] = []
        self.tried = 0
        self.fault: Exception | None = None

    def refusal(self, user: str, target: str) -> Message | None:  # noqa: ARG002
        return None

    def where(self, announcement: Announcement) -> str:  # noqa: ARG002
        return "hooks.lab"

    async def send(self, announcement: Announcement) -> None:
        self.tried += 1
        if self.fault is not None:
            raise self.fault
        self.sent.append(announcement.job_id)
        self.documents.append(dict(announcement.document))


class FlakyStore(Store):
    """A real database that does not take the end of an announcement for a while."""

    broken = False
    overtaken = False

    def check_writable(self) -> None:
        if self.overtaken:
            raise StoreError("another scheduler leads")
        super().check_writable()

    def settle(self, announcement: Announcement, entry: JobEvent | None = None) -> None:
        if self.broken:
            raise StoreError("database is locked")
        super().settle(announcement, entry)


class World:
    """A sender over a real database, with a clock that stands until it is set."""

    def __init__(self, folder: Path) -> None:
        self.store = FlakyStore.in_folder(put_empty_store(folder))
        self.writer = Writer(self.store, lambda: Core(Cluster([])), lambda _: None)
        self.way, self.now = Way(), 1000
        self.told: list[JobEvent] = []
        self.sender = Sender(
            self.store,
            self.writer,
            Notifications({"webhook": self.way}, "https://hub.lab/console/"),
            self.told.append,
            lambda: self.now,
        )

    def ends(self, job_id: str = "j1", channel: str = "webhook") -> None:
        add(self.store, job_id)
        one = Announcement(job_id, channel, "ada", "https://hooks.lab/", self.now, {"name": job_id})
        self.store.commit(Outcome(announcements=[one]), {})


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    opened = World(tmp_path)
    yield opened
    await opened.sender.close()
    await opened.writer.close()
    opened.store.close()


async def test_an_end_is_told_once_with_the_page_of_the_job(world: World) -> None:
    world.ends()
    assert await world.sender.look() is None
    assert await world.sender.look() is None
    assert world.way.sent == ["j1"]
    assert world.way.documents[0]["consoleUrl"] == "https://hub.lab/console/jobs/ada/j1"


async def test_a_receiver_that_is_away_is_tried_again_after_growing_pauses(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.way.fault = UndeliveredError(msg("it answers with status {status}.", status=503))
    world.ends()
    pauses = []
    for _ in range(8):
        due = await world.sender.look()
        assert due is not None
        pauses.append((due - world.now) // 1000)
        world.now = due
    assert pauses == [10, 30, 90, 270, 810, 2430, 3600, 3600]
    (line,) = caplog.messages
    assert line.endswith("trying again for a day: it answers with status 503."), "said once, at once"
    world.way.fault = None
    assert await world.sender.look() is None
    assert world.way.sent == ["j1"]
    assert world.told == []


async def test_after_a_day_it_is_given_up_and_the_job_says_so(world: World) -> None:
    world.way.fault = UndeliveredError(msg("it answers with status {status}.", status=503))
    world.ends()
    begin = world.now
    while (due := await world.sender.look()) is not None:
        world.now = due
    assert 23 * HOUR < world.now - begin < GIVE_UP
    (entry,) = (event.entry for event in world.store.job_events(job_id="j1"))
    assert entry.type == "not-told"
    assert str(entry.message) == (
        "The end of this job could not be told to hooks.lab: it answers with status 503."
    )
    assert [event.job_id for event in world.told] == ["j1"]


async def test_what_would_never_be_taken_is_given_up_at_once(world: World) -> None:
    world.way.fault = UndeliveredError(msg("it answers with status {status}.", status=410), final=True)
    world.ends()
    world.ends("j2", channel="mail")
    assert await world.sender.look() is None
    assert [str(event.message).partition(": ")[2] for event in world.told] == [
        "it answers with status 410.",
        "the administrator has closed this way.",
    ]


async def test_a_fault_of_ours_in_one_keeps_none_of_the_others(world: World) -> None:
    world.way.fault = ZeroDivisionError()
    world.ends()
    assert await world.sender.look() == world.now + 10_000


async def test_what_was_told_is_not_told_again_where_the_database_fails_afterwards(world: World) -> None:
    world.ends()
    world.store.broken = True
    with pytest.raises(RequestError):
        await world.sender.look()
    world.store.broken = False
    assert await world.sender.look() is None
    assert world.way.sent == ["j1"]


async def test_a_service_that_was_overtaken_tells_nothing(world: World) -> None:
    world.ends()
    world.store.overtaken = True
    with pytest.raises(StoreError):
        await world.sender.look()
    assert world.way.tried == 0


def test_one_users_ends_do_not_hold_up_those_of_others() -> None:
    def waiting(number: int, user: str) -> WaitingAnnouncement:
        return WaitingAnnouncement(Announcement(f"j{number}", "webhook", user, "", 0, {}), 0, 0)

    many = [waiting(number, "ada") for number in range(50)]
    chosen = fair([*many, waiting(50, "bob")])
    assert [one.announcement.user for one in chosen] == ["ada"] * AT_ONCE_PER_USER + ["bob"]
