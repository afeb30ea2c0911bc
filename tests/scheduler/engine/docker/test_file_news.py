"""Who watches one of Docker's files is told once when it is written or renamed; no watch stays behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine.docker.log_files import DockerFiles, FileNews


@pytest.fixture
async def news() -> AsyncIterator[FileNews]:
    found = FileNews()
    await found.start()
    yield found
    found.close()


async def told(event: asyncio.Event) -> None:
    async with asyncio.timeout(30):
        await event.wait()
    event.clear()


async def test_a_write_and_a_new_name_are_told(news: FileNews, tmp_path: Path) -> None:
    file, event = tmp_path / "log", asyncio.Event()
    file.touch()
    assert news.watch(file, event)
    file.write_bytes(b"line")
    await told(event)
    assert news.watch(file, event)
    file.rename(tmp_path / "log.1")
    await told(event)


async def test_each_is_told_of_their_own_file_only(news: FileNews, tmp_path: Path) -> None:
    events = [asyncio.Event(), asyncio.Event()]
    for number, event in enumerate(events):
        (tmp_path / str(number)).touch()
        assert news.watch(tmp_path / str(number), event)
    (tmp_path / "1").write_bytes(b"line")
    await told(events[1])
    assert not events[0].is_set()


async def test_a_file_that_is_not_there_yet_is_to_be_looked_for_again(news: FileNews, tmp_path: Path) -> None:
    event = asyncio.Event()
    assert news.watch(tmp_path / "log", event)
    await told(event)


async def test_who_is_dismissed_is_told_no_more(news: FileNews, tmp_path: Path) -> None:
    file, event, other = tmp_path / "log", asyncio.Event(), asyncio.Event()
    file.touch()
    (tmp_path / "other").touch()
    assert news.watch(file, event)
    assert news.watch(tmp_path / "other", other)
    news.dismiss(event)
    file.write_bytes(b"line")
    (tmp_path / "other").write_bytes(b"line")
    await told(other)
    assert not event.is_set()


def test_without_the_kernels_help_nobody_is_told(tmp_path: Path) -> None:
    assert not FileNews().watch(tmp_path, asyncio.Event())


def test_a_log_is_in_its_containers_folder(tmp_path: Path) -> None:
    assert DockerFiles(tmp_path, FileNews()).log_folder("abc") == tmp_path / "abc" / "local-logs"
