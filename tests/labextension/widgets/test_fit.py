"""Asking whether a job fits, while it is typed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pai_labextension.widgets.fit import MOST_LOOKS, ClusterSummary, FitChecker
from pai_scheduler.rest.models import Validation
from pai_scheduler.testing.scheduler import FakeScheduler
from tests.labextension.widgets.waiting import turns, until


class Typing:
    """A job that changes, and what is heard about it."""

    def __init__(self, peer: FakeScheduler, refresh: float = 3600) -> None:
        self.version, self.config = 0, {"jobName": "0"}
        self.clusters: list[ClusterSummary] = []
        self.answers: list[Validation] = []
        self.troubles: list[str] = []
        self.client = peer.client()
        self.checker = FitChecker(
            self.client,
            self._question,
            on_cluster=self.clusters.append,
            on_answer=self.answers.append,
            on_trouble=self.troubles.append,
            quiet=0,
            refresh=refresh,
        )
        self.task = asyncio.create_task(self.checker.run())

    def _question(self) -> tuple[int, Mapping[str, Any] | None]:
        return self.version, self.config if self.config["jobName"] else None

    def type(self, name: str) -> None:
        self.version += 1
        self.config = {"jobName": name}
        self.checker.ask()


@pytest.fixture
async def typing(peer: FakeScheduler) -> Any:
    typing = Typing(peer)
    yield typing
    typing.task.cancel()
    await typing.client.close()


async def test_the_first_look_needs_no_key(peer: FakeScheduler, typing: Typing) -> None:
    await until(lambda: typing.answers)
    assert typing.answers == [peer.validation]
    assert set(typing.clusters[0].virtual_clusters) == {"default", "vision"}
    assert [node["name"] for node in typing.clusters[0].nodes] == ["node-a"]


async def test_questions_never_overlap_and_old_answers_are_dropped(
    peer: FakeScheduler, typing: Typing
) -> None:
    peer.gate.clear()
    await until(lambda: peer.asked)
    for name in ("1", "2", "3"):
        typing.type(name)
        await turns()
    peer.gate.set()
    await until(lambda: typing.answers)
    # the answer about "0" came when "3" stood there, and "1" and "2" were never asked about
    assert [body["jobName"] for body in peer.asked] == ["0", "3"]
    assert len(typing.answers) == 1
    assert peer.most_asking == 1


async def test_fit_is_checked_again_by_itself_but_not_for_ever(peer: FakeScheduler) -> None:
    typing = Typing(peer, refresh=0)
    try:
        await until(lambda: len(typing.clusters) == MOST_LOOKS)
        await turns(200)
        assert len(typing.clusters) == MOST_LOOKS
        typing.type("1")
        await until(lambda: len(typing.clusters) == 2 * MOST_LOOKS)
    finally:
        typing.task.cancel()
        await typing.client.close()


async def test_a_job_with_errors_is_not_asked_about_but_the_cluster_is_seen(
    peer: FakeScheduler, typing: Typing
) -> None:
    await until(lambda: typing.answers)
    typing.type("")
    await until(lambda: len(typing.clusters) == 2)
    assert [body["jobName"] for body in peer.asked] == ["0"]


async def test_an_unreachable_scheduler_is_said_and_asked_again_with_the_next_key(
    peer: FakeScheduler, typing: Typing
) -> None:
    await until(lambda: typing.answers)
    await peer.stop()
    typing.type("1")
    await until(lambda: typing.troubles)
    assert "does not answer" in typing.troubles[0]
    await peer.start()
    typing.type("2")
    await until(lambda: len(typing.answers) == 2)
    assert peer.asked[-1] == {"jobName": "2"}
