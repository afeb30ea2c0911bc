"""The charts of a task, followed."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from pai_labextension.widgets.background import Background
from pai_labextension.widgets.language import Language
from pai_labextension.widgets.usage_panel import MOST_POINTS, UsageChoice, UsagePanel
from pai_scheduler.client.rest import Client
from pai_scheduler.testing.scheduler import FakeScheduler
from tests.labextension.widgets.waiting import turns, until

RUNNING = UsageChoice("alice", "worker", 0, 0, alive=True)
ENDED = UsageChoice("alice", "worker", 0, 0, alive=False)


@pytest.fixture
async def client(peer: FakeScheduler) -> AsyncIterator[Client]:
    client = peer.client()
    yield client
    await client.close()


@pytest.fixture
async def panel(client: Client) -> AsyncIterator[UsagePanel]:
    background = Background(pytest.fail)
    yield UsagePanel(client, "demo", Language("en"), background, shortest_pause=0.01)
    background.close()


def visible(panel: UsagePanel) -> bool:
    return panel.layout.display != "none"


async def test_charts_grow_while_the_task_runs_and_only_what_is_new_is_asked_for(
    peer: FakeScheduler, panel: UsagePanel
) -> None:
    points = [(1000, 10.0)]
    peer.add("demo").usage[0, "worker", 0] = {"memoryMB": points, "cpuPercent": []}
    panel.choose(RUNNING)
    await until(lambda: "10 MB now" in panel.charts.value)
    assert visible(panel)
    assert panel.charts.value.count("<svg") == 1
    points.append((2000, 30.0))
    await until(lambda: "30 MB now" in panel.charts.value)
    await until(lambda: peer.usage_asked[-1] == (0, "worker", 0, 2000))
    assert peer.usage_asked[0] == (0, "worker", 0, 0)


async def test_after_the_end_of_the_task_it_is_asked_once_more_and_no_more(
    peer: FakeScheduler, panel: UsagePanel
) -> None:
    points = [(1000, 10.0)]
    peer.add("demo").usage[0, "worker", 0] = {"memoryMB": points}
    panel.choose(RUNNING)
    await until(lambda: "10 MB now" in panel.charts.value)
    points.append((2000, 30.0))
    panel.choose(ENDED)
    await until(lambda: "30 MB now" in panel.charts.value)
    count = len(peer.usage_asked)
    await turns(200)
    assert len(peer.usage_asked) == count


async def test_each_attempt_has_its_own_usage_chart(peer: FakeScheduler, panel: UsagePanel) -> None:
    job = peer.add("demo")
    job.usage[1, "worker", 0] = {"memoryMB": [(9000, 90.0)]}
    job.usage[0, "worker", 0] = {"memoryMB": [(1000, 10.0)]}
    panel.choose(UsageChoice("alice", "worker", 0, 1, alive=True))
    await until(lambda: "90 MB now" in panel.charts.value)
    panel.choose(ENDED)
    await until(lambda: "10 MB now, 10 MB at most" in panel.charts.value)


async def test_a_task_of_which_nothing_is_known_shows_nothing(peer: FakeScheduler, panel: UsagePanel) -> None:
    peer.add("demo")
    panel.choose(ENDED)
    await until(lambda: peer.usage_asked)
    await turns()
    assert not visible(panel)


async def test_a_restart_of_the_scheduler_is_survived(peer: FakeScheduler, panel: UsagePanel) -> None:
    points = [(1000, 10.0)]
    peer.add("demo").usage[0, "worker", 0] = {"memoryMB": points}
    panel.choose(RUNNING)
    await until(lambda: "10 MB now" in panel.charts.value)
    await peer.stop()
    points.append((2000, 30.0))
    await peer.start()
    await until(lambda: "30 MB now" in panel.charts.value)


async def test_very_many_points_are_asked_for_anew(peer: FakeScheduler, panel: UsagePanel) -> None:
    points = [(1000 * n, 10.0) for n in range(1, MOST_POINTS + 2)]
    peer.add("demo").usage[0, "worker", 0] = {"memoryMB": points}
    panel.choose(RUNNING)
    await until(lambda: [after for *_, after in peer.usage_asked].count(0) > 1)
