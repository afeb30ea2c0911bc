"""Following one log."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pai_labextension.widgets import log_follow
from pai_labextension.widgets.log_follow import LogChoice, follow_log
from pai_scheduler.client.rest import Client
from pai_scheduler.testing.scheduler import FakeScheduler
from tests.labextension.widgets.waiting import until

LIVE = LogChoice("worker", 0, "all", 0, live=True)


class Reader:
    def __init__(self, client: Client, choice: LogChoice) -> None:
        self.text = b""
        self.troubles: list[str | None] = []
        self.client = client
        self.task = asyncio.create_task(
            follow_log(
                client,
                "alice",
                "demo",
                choice,
                on_begin=self._begin,
                on_data=self._data,
                on_trouble=self.troubles.append,
            )
        )

    def _begin(self) -> None:
        self.text = b""

    def _data(self, data: bytes) -> None:
        self.text += data


@pytest.fixture
async def read(peer: FakeScheduler, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(log_follow, "FIRST_RETRY", 0.01)
    made: list[Reader] = []

    def start(choice: LogChoice = LIVE) -> Reader:
        made.append(Reader(peer.client(), choice))
        return made[-1]

    yield start
    for reader in made:
        reader.task.cancel()
        await asyncio.gather(reader.task, return_exceptions=True)
        await reader.client.close()


async def test_what_is_written_is_read_until_the_task_has_ended(peer: FakeScheduler, read: Any) -> None:
    job = peer.add("demo")
    job.write("worker", 0, b"one\n")
    reader = read()
    await until(lambda: reader.text == b"one\n")
    job.write("worker", 0, b"two\n")
    await until(lambda: reader.text == b"one\ntwo\n")
    job.happen("done", state="SUCCEEDED")
    await asyncio.wait_for(reader.task, 10)


async def test_only_the_last_megabyte_is_read(peer: FakeScheduler, read: Any) -> None:
    peer.add("demo").write("worker", 0, b"x" * 1_500_000 + b"end")
    reader = read()
    await until(lambda: reader.text.endswith(b"end"))
    assert len(reader.text) == 1_000_000


async def test_after_a_restart_nothing_is_missing_and_nothing_twice(peer: FakeScheduler, read: Any) -> None:
    job = peer.add("demo")
    job.write("worker", 0, b"one\n")
    reader = read()
    await until(lambda: reader.text == b"one\n")
    await peer.stop()
    await until(lambda: any(reader.troubles))
    job.write("worker", 0, b"two\n")
    await peer.start()
    await until(lambda: reader.text == b"one\ntwo\n")
    assert reader.troubles[-1] is None


async def test_an_earlier_attempt_is_read_once(peer: FakeScheduler, read: Any) -> None:
    peer.add("demo").write("worker", 0, b"old", "stderr")
    reader = read(LogChoice("worker", 0, "stderr", 0, live=False))
    await asyncio.wait_for(reader.task, 10)
    assert reader.text == b"old"


async def test_a_refusal_is_said_and_ends_it(read: Any) -> None:
    reader = read()
    await asyncio.wait_for(reader.task, 10)
    assert "no job" in str(reader.troubles[-1])
