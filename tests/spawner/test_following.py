"""What a person is told of a start, from events and looks in an order that a scheduler seldom gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.rest.models import JobEvent
from pai_spawner import startup
from pai_spawner.server_job import ROLE
from pai_spawner.startup import PLACED, PULLED, QUEUED, wait_until_running


def event(number: int, kind: str, message: str, **data: Any) -> JobEvent:
    return JobEvent(
        id=number, time=0, type=kind, attempt=0, taskRole=None, taskIndex=None, message=message, data=data
    )


def look(
    sub_state: str, reason: str = "", place: int | None = None, starts_within: int | None = None
) -> dict[str, Any]:
    """Return a job as the scheduler shows it."""
    state = "RUNNING" if sub_state == "RUNNING" else "WAITING"
    task = {"containerPorts": {"http": "8888"}, "containerIp": "10.0.0.1"}
    status = {
        "state": state,
        "subState": sub_state,
        "waitingReason": reason,
        "queuePlace": place,
        "startsWithin": starts_within,
    }
    return {"jobStatus": status, "taskRoles": {ROLE: {"taskStatuses": [task]}}}


async def told(
    monkeypatch: pytest.MonkeyPatch, looks: list[dict[str, Any]], events: list[JobEvent]
) -> list[dict[str, Any]]:
    """Play a start: all events come after the first look. Return what is told."""
    monkeypatch.setattr(startup, "LOOK_EVERY", 0.01)
    heard: list[dict[str, Any]] = []
    looked, ended = asyncio.Event(), asyncio.Event()

    async def job(_user: str, _job: str) -> dict[str, Any]:
        if len(looks) == 1:
            await ended.wait()
        elif len(looks) < count:
            looked.set()
        return looks.pop(0)

    async def follow(_user: str, _job: str, *, after: int) -> AsyncIterator[JobEvent]:
        await looked.wait()
        for happened in events[after:]:
            yield happened
        ended.set()

    def tell(message: Any, percent: int | None, /, **facts: Any) -> None:
        known = {name: fact for name, fact in facts.items() if fact not in (None, False)}
        waits = {"waiting": facts["waiting"]} if facts.get("waiting") is not None else {}
        heard.append({"message": str(message), "bar": percent} | known | waits)

    count = len(looks)
    client = cast(Client, SimpleNamespace(job=job, events=follow))
    address = await wait_until_running(client, "alice", "job", tell, patience=5)
    assert (address.ip, address.port) == ("10.0.0.1", 8888)
    return heard


async def test_each_per_cent_of_a_pull_moves_the_bar_and_says_that_it_is_the_same_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    starting = look("STARTING", "Has its resources; its tasks are being started.")
    heard = await told(
        monkeypatch,
        [look("QUEUED", "Waiting.", 1), starting, look("RUNNING")],
        [
            event(1, "submitted", "Submitted by alice."),
            event(2, "progress", "waiting to pull x"),
            event(3, "progress", "pulling x: 50 % of 2.1 GB", percent=50),
            event(4, "progress", "pulling x: 100 % of 2.1 GB", percent=100),
        ],
    )
    middle = PLACED + (PULLED - PLACED) // 2
    assert heard[0] == {"message": "Waiting.", "bar": QUEUED, "waiting": True, "place": 1}
    assert [line for line in heard if "pull" in line["message"]] == [
        {"message": "waiting to pull x", "bar": None},
        {"message": "pulling x: 50 % of 2.1 GB", "bar": middle, "waiting": False, "again": True},
        {"message": "pulling x: 100 % of 2.1 GB", "bar": PULLED, "waiting": False, "again": True},
    ]


async def test_who_waits_is_told_when_the_server_starts_each_time_that_this_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = [look("QUEUED", "Waiting.", 1, seconds) for seconds in (590, 580, 530, None)]
    heard = await told(monkeypatch, [*waits, look("RUNNING")], [])
    assert [(line["message"], str(line.get("starts"))) for line in heard] == [
        ("Waiting.", "It starts in about 10 minutes."),
        ("Waiting.", "It starts in about 9 minutes."),
        ("Waiting.", "None"),
    ]


async def test_a_look_that_was_behind_the_events_does_not_leave_a_start_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    queued = look("QUEUED", "Waiting.", 1)
    late = look("QUEUED", "Waiting for more.", 1)
    starting = look("STARTING", "Has its resources; its tasks are being started.")
    heard = await told(
        monkeypatch,
        [queued, late, starting, look("RUNNING")],
        [event(1, "placed", "Has its resources on a.")],
    )
    assert {"message": "Has its resources on a.", "bar": PLACED, "waiting": False} in heard
    states = [line["waiting"] for line in heard if "waiting" in line]
    assert states[-1] is False
    assert {"message": "Waiting for more.", "bar": QUEUED, "waiting": True, "place": 1} in heard
