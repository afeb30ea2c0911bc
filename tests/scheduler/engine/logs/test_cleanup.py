"""Logs that are old enough go, all others stay, and nobody waits for it."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from pathlib import Path

import pytest

from pai_scheduler.engine.logs import cleanup
from pai_scheduler.engine.logs.cleanup import keep_clean, sweep
from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.logs.writer import TaskLogWriter

DAY = 24 * 3600


def log_of(folder: Path, name: str, days_ago: float) -> TaskLog:
    """Make the log of a task that was released some days ago."""
    writer = TaskLogWriter(folder / name)
    writer.append(0, b"words", 1)
    writer.close()
    then = time.time() - days_ago * DAY
    os.utime(folder / name, (then, then))
    return TaskLog(folder / name)


async def eventually_gone(log: TaskLog, folder: Path) -> None:
    async with asyncio.timeout(30):
        # (what is removed gets another name first)
        while log.exists or list(folder.glob(".removing-*")):  # noqa: ASYNC110 (a thread does it)
            await asyncio.sleep(0.01)


async def test_logs_go_when_they_are_old_enough_and_not_in_use(tmp_path: Path) -> None:
    old, used, young = (log_of(tmp_path, name, days) for name, days in [("a", 8), ("b", 8), ("c", 6)])
    keeping = asyncio.create_task(keep_clean(tmp_path, 7, lambda name: name == "b"))
    await eventually_gone(old, tmp_path)
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert used.read("all") == young.read("all") == b"words"
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["b", "c"]


def test_a_removal_that_was_interrupted_is_finished_by_the_next_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = log_of(tmp_path, "a", 8)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)
        list(sweep(tmp_path, time.time() - 7 * DAY, lambda _: False))
    # killed in the middle, it is gone as a whole for every reader
    assert not log.exists
    assert len(list(tmp_path.iterdir())) == 1
    list(sweep(tmp_path, time.time() - 7 * DAY, lambda _: False))
    assert list(tmp_path.iterdir()) == []


def test_many_logs_are_gone_through_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cleanup, "_SLICE", 10)
    for number in range(95):
        (tmp_path / str(number)).mkdir()
    assert len(list(sweep(tmp_path, time.time() - DAY, lambda _: False))) == 9
    assert len(list(tmp_path.iterdir())) == 95


async def test_a_folder_that_cannot_be_read_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cleanup, "_PASS_SECONDS", 0.01)
    keeping = asyncio.create_task(keep_clean(tmp_path / "logs", 7, lambda _: False))
    async with asyncio.timeout(30):
        while "cannot be removed" not in caplog.text:  # noqa: ASYNC110 (a thread does it)
            await asyncio.sleep(0.01)
    (tmp_path / "logs").mkdir()
    await eventually_gone(log_of(tmp_path / "logs", "a", 8), tmp_path / "logs")
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
