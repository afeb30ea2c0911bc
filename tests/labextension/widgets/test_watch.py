"""Watching a job."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pai_labextension.widgets.watch import JobWatch, Pace
from pai_scheduler.client.rest import ApiError, Client
from pai_scheduler.rest.models import AttemptInfo, JobDetail
from pai_scheduler.testing.scheduler import FakeScheduler
from tests.labextension.widgets.waiting import until

#: Events alone must tell: nothing is looked at twice in the time a test has.
PACE = Pace(gap=0, first_retry=0.01, longest_retry=0.05, poll=3600)


class Seen:
    def __init__(self, client: Client, name: str, pace: Pace = PACE) -> None:
        self.states: list[str] = []
        self.events: list[str] = []
        self.troubles: list[str | None] = []
        self.client = client
        watch = JobWatch(
            client,
            "alice",
            name,
            on_job=self._job,
            on_event=lambda event: self.events.append(event["message"]),
            on_trouble=self.troubles.append,
            pace=pace,
        )
        self.task = asyncio.create_task(watch.run())

    def _job(self, detail: JobDetail, attempts: list[AttemptInfo]) -> None:
        assert attempts
        self.states.append(detail["jobStatus"]["state"])


@pytest.fixture
async def watching(peer: FakeScheduler) -> Any:
    made: list[Seen] = []

    def watch(name: str, pace: Pace = PACE) -> Seen:
        made.append(Seen(peer.client(), name, pace))
        return made[-1]

    yield watch
    for seen in made:
        seen.task.cancel()
        await asyncio.gather(seen.task, return_exceptions=True)
        await seen.client.close()


async def test_it_watches_until_the_last_task_has_been_stopped(peer: FakeScheduler, watching: Any) -> None:
    job = peer.add("demo")
    seen = watching("demo")
    await until(lambda: seen.states)
    looks = len(seen.states)
    job.happen("Stopped by alice.", sub_state="ENDING", exit_code=-7351)
    await until(lambda: len(seen.states) > looks)
    assert not seen.task.done()
    job.happen("Stopped by alice.", state="STOPPED", sub_state="ENDED")
    await seen.task
    assert seen.states[-1] == "STOPPED"


async def test_each_event_brings_a_look_and_the_end_ends_the_watch(
    peer: FakeScheduler, watching: Any
) -> None:
    job = peer.add("demo")
    seen = watching("demo")
    await until(lambda: seen.states)
    job.happen("it runs", state="RUNNING")
    await until(lambda: seen.states[-1] == "RUNNING")
    job.happen("it is done", state="SUCCEEDED", exit_code=0)
    await asyncio.wait_for(seen.task, 10)
    assert seen.states[-1] == "SUCCEEDED"
    assert "it runs" in seen.events


async def test_after_a_break_it_goes_on_with_the_next_event(peer: FakeScheduler, watching: Any) -> None:
    job = peer.add("demo")
    seen = watching("demo")
    job.happen("first")
    await until(lambda: seen.events == ["first"])
    await peer.stop()
    job.happen("second", state="RUNNING")
    await peer.start()
    await until(lambda: seen.events == ["first", "second"])
    await until(lambda: seen.states[-1] == "RUNNING")
    job.happen("third", state="STOPPED")
    await asyncio.wait_for(seen.task, 10)
    assert seen.events.count("first") == seen.events.count("second") == 1


async def test_trouble_is_told_and_taken_back(peer: FakeScheduler, watching: Any) -> None:
    job = peer.add("demo")
    await peer.stop()
    seen = watching("demo")
    await until(lambda: any(seen.troubles))
    assert "does not answer" in str(seen.troubles[0])
    await peer.start()
    await until(lambda: seen.states)
    assert seen.troubles[-1] is None
    job.happen("done", state="SUCCEEDED")
    await asyncio.wait_for(seen.task, 10)


async def test_without_events_it_looks_by_itself(peer: FakeScheduler, watching: Any) -> None:
    job = peer.add("demo")
    seen = watching("demo", Pace(gap=0, first_retry=0.01, longest_retry=0.05, poll=0.01))
    await until(lambda: seen.states)
    job.state = "SUCCEEDED"  # and nobody tells
    await asyncio.wait_for(seen.task, 10)
    assert seen.states[-1] == "SUCCEEDED"


async def test_a_job_that_is_not_there_ends_the_watch_with_the_refusal(watching: Any) -> None:
    with pytest.raises(ApiError) as caught:
        await asyncio.wait_for(watching("nowhere").task, 10)
    assert caught.value.code == "NoJobError"
