"""A follower is told when its log has grown, wherever that comes from, and leaves no watch behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.logs.reader import TaskLog
from pai_scheduler.engine.logs.replication import extents, missing, take_over
from pai_scheduler.engine.logs.segment import places
from pai_scheduler.engine.logs.watcher import Follower, LogGrowth
from pai_scheduler.engine.logs.writer import LEAST_LIMIT, TaskLogWriter


@pytest.fixture
async def growth() -> AsyncIterator[LogGrowth]:
    found = LogGrowth()
    await found.start()
    yield found
    found.close()


def write(writer: TaskLogWriter, data: bytes = b"line\n") -> None:
    """Write as a task does that prints."""
    writer.append(0, data, time.time_ns())


async def read_when_told(follower: Follower, log: TaskLog, size: int) -> bytes:
    """Read as a follower does, until there are so many bytes; never look without being told."""
    received = b""
    async with asyncio.timeout(60):
        while True:
            assert follower.arm()
            received += log.read("all", len(received))
            if len(received) >= size:
                return received
            await follower.news.wait()


@pytest.mark.parametrize("missing_folders", ["none", "log", "task/log", "tasks/task/log"])
async def test_a_log_is_told_of_that_was_not_there_yet(
    growth: LogGrowth, tmp_path: Path, missing_folders: str
) -> None:
    folder = tmp_path / missing_folders
    if missing_folders == "none":
        folder.mkdir()
    log, news = TaskLog(folder), asyncio.Event()
    with growth.following(log, news) as follower:
        reading = asyncio.create_task(read_when_told(follower, log, 5))
        await asyncio.sleep(0)
        write(TaskLogWriter(folder))
        assert await reading == b"line\n"


async def test_every_line_is_told_of_also_in_segments_that_come_and_go(
    growth: LogGrowth, tmp_path: Path
) -> None:
    writer, log, news = TaskLogWriter(tmp_path, LEAST_LIMIT), TaskLog(tmp_path), asyncio.Event()
    line = b"x" * 99 + b"\n"
    with growth.following(log, news) as follower:
        for number in range(200):  # five times as much as is kept
            begin = log.size("all")
            assert begin == number * len(line)
            assert follower.arm()
            write(writer, line)
            async with asyncio.timeout(60):
                await follower.news.wait()
            assert log.read("all", begin) == line
        assert writer.shortened
        assert len(places(tmp_path)) > 3
    assert growth.watches == 0


async def test_a_log_that_is_copied_from_another_machine_is_told_of(
    growth: LogGrowth, tmp_path: Path
) -> None:
    writer, log, news = TaskLogWriter(tmp_path / "there"), TaskLog(tmp_path / "here"), asyncio.Event()
    with growth.following(log, news) as follower:
        for count in range(1, 4):
            reading = asyncio.create_task(read_when_told(follower, log, 5 * count))
            await asyncio.sleep(0)
            write(writer)
            take_over(tmp_path / "here", missing(tmp_path / "there", extents(tmp_path / "here"), limit=2**20))
            assert await reading == b"line\n" * count


async def test_all_who_follow_a_log_are_told_and_each_as_often_as_it_asks(
    growth: LogGrowth, tmp_path: Path
) -> None:
    writer, log = TaskLogWriter(tmp_path), TaskLog(tmp_path)
    first, second = asyncio.Event(), asyncio.Event()
    with growth.following(log, first) as one, growth.following(log, second) as other:
        assert one.arm()
        assert other.arm()
        write(writer)
        async with asyncio.timeout(60):
            await first.wait()
            await second.wait()
        assert one.arm()
        other.news.clear()
        write(writer)
        async with asyncio.timeout(60):
            await first.wait()
        assert not second.is_set()


async def test_who_leaves_takes_the_watches_along_that_nobody_else_needs(
    growth: LogGrowth, tmp_path: Path
) -> None:
    writer, log = TaskLogWriter(tmp_path), TaskLog(tmp_path)
    with growth.following(log, asyncio.Event()) as stays:
        assert stays.arm()
        watched = growth.watches
        assert watched
        with growth.following(log, asyncio.Event()) as leaves:
            assert leaves.arm()
            assert growth.watches == watched
        write(writer)
        async with asyncio.timeout(60):
            await stays.news.wait()
    assert growth.watches == 0


async def test_who_cannot_be_told_hears_so(tmp_path: Path) -> None:
    growth = LogGrowth()  # not started, as where the kernel has nothing to give
    with growth.following(TaskLog(tmp_path), asyncio.Event()) as follower:
        assert not follower.arm()


async def test_who_waits_at_the_end_of_the_program_is_woken(tmp_path: Path) -> None:
    growth = LogGrowth()
    await growth.start()
    with growth.following(TaskLog(tmp_path), asyncio.Event()) as follower:
        assert follower.arm()
        growth.close()
        assert follower.news.is_set()
