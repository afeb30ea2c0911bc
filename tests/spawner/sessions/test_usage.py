"""When a session's GPUs and processors were used last."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from pai_scheduler.client.rest import Client, UnreachableError
from pai_scheduler.rest.models import TaskMetrics
from pai_spawner.sessions.hub_client import JobUsage, UsageReader
from pai_spawner.sessions.policy import SessionSettings


def metrics(**series: list[tuple[int, float]]) -> TaskMetrics:
    return {"interval": 10.0, "gpuMemoryTotalMB": None, "series": series}


def at(ms: int) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)


def test_gpus_are_used_when_they_work_at_the_threshold_or_above() -> None:
    usage = JobUsage()
    usage.take(metrics(gpuPercent=[(1000, 80.0), (2000, 5.0), (3000, 4.9)]), SessionSettings(gpu_below=5.0))
    assert usage.gpu_used == at(2000)
    usage.take(metrics(gpuPercent=[(4000, 0.0)]), SessionSettings(gpu_below=5.0))
    assert usage.gpu_used == at(2000)
    assert usage.latest["gpuPercent"] == 0.0
    assert usage.seen == 4000


def test_what_is_not_asked_for_counts_for_nothing() -> None:
    usage = JobUsage()
    points = metrics(gpuPercent=[(1000, 80.0)], cpuPercent=[(1000, 300.0)])
    usage.take(points, SessionSettings(gpu_below=None, cpu_below=None))
    assert (usage.gpu_used, usage.cpu_used) == (None, None)
    usage.take(points, SessionSettings(gpu_below=None, cpu_below=50.0))
    assert (usage.gpu_used, usage.cpu_used) == (None, at(1000))


def test_a_task_that_tells_nothing_is_not_known_to_be_used() -> None:
    usage = JobUsage()
    usage.take(metrics(gpuPercent=[]), SessionSettings())
    assert usage.gpu_used is None
    assert usage.latest == {"cpuPercent": None, "memoryMB": None, "gpuPercent": None, "gpuMemoryMB": None}


async def test_each_point_is_read_once_and_a_job_that_is_over_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    async def task_metrics(
        _client: Client, user: str, job: str, role: str, index: int, *, after: int = 0
    ) -> TaskMetrics:
        asked.append((user, job, role, index, after))
        if job == "away":
            raise UnreachableError("no answer")
        return metrics(gpuPercent=[(after + 1000, 50.0)])

    monkeypatch.setattr(Client, "task_metrics", task_metrics)
    async with Client("http://127.0.0.1:1", "t") as client:
        reader = UsageReader(client)
        for _ in range(2):
            usage = await reader.read("alice", "job", SessionSettings())
        assert usage is not None
        assert usage.gpu_used == at(2000)
        assert asked == [("alice", "job", "notebook", 0, 0), ("alice", "job", "notebook", 0, 1000)]
        assert await reader.read("alice", "away", SessionSettings()) is None
        reader.forget_others(set())
        assert reader.known("alice", "job").seen == 0
