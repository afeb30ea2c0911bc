"""Job events: listed, followed, resumed, and each user's own."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import httpx
import pytest

from pai_scheduler.client.rest import Client
from tests.testbed.scheduler import hello_job


async def _frames(response: httpx.Response) -> AsyncIterator[tuple[int, dict[str, object]]]:
    """Return id and data of each event."""
    number = 0
    async for line in response.aiter_lines():
        name, _, value = line.partition(": ")
        if name == "id":
            number = int(value)
        elif name == "data":
            yield number, json.loads(value)


async def test_events_are_listed_oldest_first(alice: Client) -> None:
    await alice.submit(hello_job("listed"))
    followed = [event async for event in alice.events("alice", "listed")]
    listed = await alice.list_events("alice", "listed")
    assert listed == followed
    assert [event["type"] for event in listed][:2] == ["submitted", "placed"]
    assert listed[-1]["type"] == "ended"
    assert [event["id"] for event in listed] == sorted({event["id"] for event in listed})
    ended = next(event for event in listed if event["type"] == "task-ended")
    assert (ended["attempt"], ended["taskRole"], ended["taskIndex"]) == (0, "main", 0)
    assert "user" not in ended
    assert await alice.list_events("alice", "listed", after=listed[-2]["id"]) == listed[-1:]


async def test_followed_events_come_as_they_happen_and_end_with_the_job(
    http: httpx.AsyncClient, alice: Client
) -> None:
    await alice.submit(hello_job("followed", "sleep 600"))
    seen = []
    async with http.stream("GET", "/user/alice/jobs/followed/events?follow=1") as response:
        assert response.headers["Content-Type"].startswith("text/event-stream")
        async for number, event in _frames(response):
            assert number == event["id"]
            seen.append(event["type"])
            if event["type"] == "running":
                await alice.stop("alice", "followed")
    assert seen[0] == "submitted"
    assert "ended" in seen


async def test_a_stream_of_events_that_broke_is_resumed_without_gap_or_repetition(
    http: httpx.AsyncClient, alice: Client
) -> None:
    await alice.submit(hello_job("resumed", "sleep 1"))
    path = "/user/alice/jobs/resumed/events?follow=1"
    ids = []
    async with http.stream("GET", path) as response:
        async for number, _ in _frames(response):
            ids.append(number)
            if len(ids) == 2:
                break
    async with http.stream("GET", path, headers={"Last-Event-ID": str(ids[-1])}) as response:
        ids += [number async for number, _ in _frames(response)]
    assert ids == [event["id"] for event in await alice.list_events("alice", "resumed")]
    # nothing more will come: a browser is told not to ask again
    answer = await http.get(path, headers={"Last-Event-ID": str(ids[-1])})
    assert (answer.status_code, answer.content) == (204, b"")


async def test_without_a_job_one_reads_the_events_of_all_ones_own_jobs_with_their_names(
    alice: Client, bob: Client, root: Client
) -> None:
    await alice.submit(hello_job("of-alice"))
    await bob.submit(hello_job("of-bob"))
    own = await _all_events(bob)
    assert {event["user"] for event in own} == {"bob"}
    assert "of-bob" in {event["job"] for event in own}
    everybody = await _all_events(root)
    assert {("alice", "of-alice"), ("bob", "of-bob")} <= {
        (event["user"], event["job"]) for event in everybody
    }


async def test_a_reader_of_all_events_hears_of_a_new_job(http: httpx.AsyncClient, alice: Client) -> None:
    last = (await _all_events(alice))[-1:]
    headers = {"Last-Event-ID": str(last[0]["id"] if last else 0)}
    async with http.stream("GET", "/events?follow=1", headers=headers) as response:
        frames = _frames(response)
        await alice.submit(hello_job("news"))
        async for _, event in frames:
            if event["type"] == "submitted":
                assert (event["user"], event["job"]) == ("alice", "news")
                break


@pytest.mark.parametrize("number", ["x", "-1", "1.5", "9" * 30])
async def test_a_wrong_last_event_id_is_refused(http: httpx.AsyncClient, number: str) -> None:
    answer = await http.get("/events", headers={"Last-Event-ID": number})
    assert (answer.status_code, answer.json()["code"]) == (400, "InvalidParametersError")


async def test_events_of_an_unknown_job_are_refused_before_the_stream_begins(http: httpx.AsyncClient) -> None:
    answer = await http.get("/user/alice/jobs/nobody/events?follow=1")
    assert (answer.status_code, answer.json()["code"]) == (404, "NoJobError")


async def test_events_are_in_the_readers_language(http: httpx.AsyncClient, alice: Client) -> None:
    await alice.submit(hello_job("in-chinese"))
    path = "/user/alice/jobs/in-chinese/events"
    english = (await http.get(path)).json()[0]["message"]
    chinese = (await http.get(path, headers={"Accept-Language": "zh-CN"})).json()[0]["message"]
    assert english == "Submitted by alice."
    assert chinese != english


async def _all_events(client: Client) -> list[dict[str, object]]:
    response = await client._send("GET", "events")
    listed: list[dict[str, object]] = response.json()
    return listed


async def test_who_follows_from_now_on_hears_nothing_of_before_and_from_where_to_go_on(
    http: httpx.AsyncClient, alice: Client
) -> None:
    await alice.submit(hello_job("before"))
    before = [event["id"] async for event in alice.events("alice", "before")]
    async with http.stream("GET", "/events?follow=1&new=1") as response:
        lines = response.aiter_lines()
        async for line in lines:
            if line.startswith("id: "):
                break
        assert int(line.removeprefix("id: ")) >= before[-1]
        await alice.submit(hello_job("after"))
        async for line in lines:
            if line.startswith("data: "):
                break
        assert json.loads(line.removeprefix("data: "))["job"] == "after"
    headers = {"Last-Event-ID": str(before[0])}
    async with http.stream("GET", "/events?follow=1&new=1", headers=headers) as response:
        async for number, _ in _frames(response):
            assert number == before[1]
            break
