"""`pai queue`, `pai move` and `pai priority` on a real scheduler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator

import httpx
import pytest

from pai_scheduler.client.cli.admin import queue_table
from pai_scheduler.rest.models import QueueEntry
from tests.testbed.scheduler import RunningScheduler, hello_job

Pai = Callable[..., subprocess.CompletedProcess[str]]
TOO_BIG = [{"name": "main", "command": "true", "gpuNumber": 99}]
NAMES = ("cli-first", "cli-second")


@pytest.fixture
def waiting(scheduler: RunningScheduler) -> Iterator[None]:
    """Let two jobs of alice's wait."""
    headers = {"Authorization": "Bearer token-of-alice"}
    with httpx.Client(base_url=f"{scheduler.url}/api/v1", headers=headers, trust_env=False) as alice:
        for name in NAMES:
            alice.post("/jobs", json=hello_job(name, taskRoles=TOO_BIG)).raise_for_status()
        yield
        for name in NAMES:
            alice.delete(f"/user/alice/jobs/{name}").raise_for_status()


def _queue(pai: Pai) -> list[QueueEntry]:
    queue: list[QueueEntry] = json.loads(pai("--json", "queue", "default").stdout)["default"]
    return queue


def _order(pai: Pai) -> list[str | None]:
    return [entry["name"] for entry in _queue(pai) if entry["name"] in NAMES]


@pytest.mark.usefixtures("waiting")
def test_the_queue_shows_who_waits_and_why(pai: Pai) -> None:
    shown = pai("queue")
    assert shown.returncode == 0
    assert shown.stdout.splitlines()[0].split()[:5] == ["VIRTUAL", "CLUSTER", "PLACE", "PRIORITY", "USER"]
    line = next(line for line in shown.stdout.splitlines() if "cli-first" in line)
    assert "99" in line
    assert pai("queue", "vision").stdout == "No job waits for resources.\n"
    assert pai("queue", "moon").returncode == 1


@pytest.mark.usefixtures("waiting")
def test_a_job_is_moved_and_its_new_place_is_told(pai: Pai) -> None:
    assert _order(pai) == ["cli-first", "cli-second"]
    moved = pai("move", "cli-second", "1")
    assert moved.returncode == 0, moved.stderr
    assert moved.stdout.startswith("Job cli-second has priority 50, and is at place ")
    assert _order(pai) == ["cli-second", "cli-first"]
    assert pai("priority", "cli-first", "51").stdout.startswith("Job cli-first has priority 51, and is at")
    assert _order(pai) == ["cli-first", "cli-second"]
    assert json.loads(pai("--json", "priority", "cli-first", "52").stdout)["priority"] == 52
    refused = pai("priority", "cli-first", "101")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "from 0 to 100" in refused.stderr


@pytest.mark.usefixtures("waiting")
def test_a_place_behind_the_last_is_refused_with_the_number_of_places(pai: Pai) -> None:
    assert len(pai("move", "cli-first", "2").stdout.splitlines()) == 1
    # (jobs of other tests wait there too)
    count = sum(entry["user"] == "alice" and entry["priority"] == 50 for entry in _queue(pai))
    assert count >= len(NAMES)
    beyond = pai("move", "cli-first", str(count + 1))
    assert beyond.stdout.splitlines()[1:] == [
        f"Jobs of yours with priority 50 in that queue: {count}. pai priority moves a job past others."
    ], beyond.stderr
    assert json.loads(pai("--json", "move", "cli-first", str(count + 1)).stdout)["priority"] == 50


def test_what_is_kept_for_a_job_is_said_and_what_is_another_users_is_not() -> None:
    entry: QueueEntry = {
        "place": 1,
        "priority": 50,
        "user": "bob",
        "name": None,
        "totalGpuNumber": 8,
        "totalTaskNumber": 2,
        "createdTime": 0,
        "waitingReason": None,
        "neverFits": False,
        "startsWithin": None,
        "overtaken": 20,
        "reserved": True,
    }
    last = queue_table({"default": [entry]}, "en").splitlines()[-1]
    assert last.split()[4] == "-"
    assert last.endswith("20  (what becomes free is kept for it)")
