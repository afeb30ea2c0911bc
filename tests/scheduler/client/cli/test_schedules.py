"""`pai schedule` on a real scheduler."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

from pai_scheduler.client.cli.schedules import last_in_words, schedules_table
from pai_scheduler.rest.schedules import (
    ScheduleInfo,
)
from tests.testbed.scheduler import hello_job

Pai = Callable[..., subprocess.CompletedProcess[str]]
INFO: ScheduleInfo = {
    "name": "nightly",
    "username": "alice",
    "cron": "0 2 * * *",
    "timeZone": "UTC",
    "overlap": "skip",
    "paused": True,
    "createdTime": 0,
    "nextTime": None,
    "lastRun": {"job": "nightly-1", "time": 0, "outcome": "refused", "message": "There is no vision."},
}


def test_a_job_is_scheduled_paused_run_and_forgotten(pai: Pai, tmp_path: Path) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(hello_job("cli-nightly")))
    begin = ("schedule", "create", file, "--cron")
    wrong = pai(*begin, "61 * * * *", "--timezone", "UTC")
    assert (wrong.returncode, wrong.stdout) == (1, "")
    assert "minute must be 0 to 59" in wrong.stderr
    assert pai(*begin, "0 2 * * *").returncode == 2
    made = pai(*begin, "0 2 * * *", "--timezone", "Asia/Shanghai")
    assert (made.returncode, made.stderr) == (0, "")
    assert made.stdout.startswith("Schedule cli-nightly runs next at ")
    assert pai("schedule", "pause", "cli-nightly").stdout == "Schedule cli-nightly is paused.\n"
    listed = pai("schedule", "list").stdout
    assert "cli-nightly" in listed
    assert "paused" in listed
    started = pai("schedule", "run", "cli-nightly").stdout
    assert started.startswith("Job cli-nightly-")
    shown = json.loads(pai("--json", "schedule", "show", "cli-nightly").stdout)
    assert shown["lastRun"]["job"] in started
    assert shown["job"]["jobName"] == "cli-nightly"
    assert "runs at" in pai("schedule", "show", "cli-nightly").stdout
    assert pai("schedule", "resume", "cli-nightly").stdout.startswith("Schedule cli-nightly runs next at ")
    assert pai("schedule", "delete", "cli-nightly").returncode == 0
    gone = pai("schedule", "show", "cli-nightly")
    assert (gone.returncode, gone.stderr) == (1, "Schedule cli-nightly of user alice is not found.\n")


def test_why_a_run_was_refused_stands_in_the_list() -> None:
    (header, row) = schedules_table([INFO], "en").splitlines()
    assert header.split()[:2] == ["NAME", "CRON"]
    assert "paused" in row
    assert row.endswith("refused: There is no vision.")
    assert last_in_words(None, "en") == "-"
    assert "vision" in schedules_table([INFO], "zh_CN")
