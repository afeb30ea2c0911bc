"""How much a folder takes: what counts, what it costs to know, and a folder that changes meanwhile."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.engine import disk_usage
from pai_scheduler.engine.disk_usage import DiskMeter, sizes


def size(folder: Path) -> int:
    return list(sizes(folder))[-1]


def du(folder: Path) -> int:
    """Return what `du` says of a folder's content."""
    said = subprocess.run(["du", "-s", "-B1", folder], capture_output=True, text=True, check=True).stdout
    return int(said.split()[0]) - folder.stat().st_blocks * 512


@pytest.fixture
async def meter() -> AsyncIterator[DiskMeter]:
    meter = DiskMeter()
    yield meter
    meter.close()


def test_a_folders_size_is_the_one_of_du(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "file").write_bytes(b"x" * 100_000)
    (tmp_path / "two names").write_bytes(b"x" * 50_000)
    os.link(tmp_path / "two names", deep / "second")
    (tmp_path / "link").symlink_to("/")
    with open(tmp_path / "sparse", "wb") as sparse:
        sparse.truncate(10**9)
    assert size(tmp_path) == du(tmp_path) > 150_000


def test_what_is_not_there_takes_nothing(tmp_path: Path) -> None:
    assert size(tmp_path / "nothing") == 0


def test_another_disk_that_is_mounted_inside_does_not_count(tmp_path: Path, tiny_disk: Path) -> None:
    before = size(tmp_path)
    (tiny_disk / "file").write_bytes(b"x" * 500_000)
    assert size(tmp_path) == before


def test_a_large_folder_is_gone_through_in_slices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_usage, "_SLICE", 10)
    for number in range(95):
        (tmp_path / str(number)).write_bytes(b"x")
    found = list(sizes(tmp_path))
    assert len(found) == 10
    assert found == sorted(found)
    assert found[-1] == 95 * 4096


def test_what_vanishes_meanwhile_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_usage, "_SLICE", 5)
    for number in range(20):
        (tmp_path / str(number)).mkdir()
    measuring = sizes(tmp_path)
    next(measuring)
    for folder in tmp_path.iterdir():
        folder.rmdir()
    assert list(measuring)


async def test_a_folder_is_measured_again_and_again(
    meter: DiskMeter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_usage, "LEAST_PAUSE", 0.01)
    seen = []
    async with asyncio.timeout(30):
        async for found in meter.follow(tmp_path):
            seen.append(found)
            if found:
                break
            (tmp_path / "file").write_bytes(b"x" * 5000)
    assert seen == [0, 8192]


async def test_a_quiet_folder_is_looked_at_as_soon_as_its_disk_fills(
    meter: DiskMeter, tiny_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_usage, "LEAST_PAUSE", 0.01)
    monkeypatch.setattr(disk_usage, "_QUIET_PAUSE", 3600.0)
    monkeypatch.setattr(disk_usage, "_GROWTH", 100_000)
    seen = []
    async with asyncio.timeout(30):
        async for found in meter.follow(tiny_disk):
            seen.append(found)
            if found:
                break
            if len(seen) == 2:
                asyncio.get_running_loop().call_later(0.2, (tiny_disk / "file").write_bytes, b"x" * 200_000)
    # twice without a change, and not again before there was one
    assert seen[:2] == [0, 0]
    assert len(seen) == 3


async def test_a_quiet_folder_is_looked_at_after_a_while_in_any_case(
    meter: DiskMeter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_usage, "LEAST_PAUSE", 0.01)
    monkeypatch.setattr(disk_usage, "_QUIET_PAUSE", 0.1)
    monkeypatch.setattr(disk_usage, "_GROWTH", 2**60)
    seen = []
    async with asyncio.timeout(30):
        async for found in meter.follow(tmp_path):
            seen.append(found)
            if found:
                break
            if len(seen) == 3:
                (tmp_path / "file").write_bytes(b"x" * 5000)
    assert seen[-1] == 8192


def test_a_folder_that_was_just_looked_at_is_left_alone_for_a_moment_though_its_disk_fills() -> None:
    quiet = disk_usage._Quiet({7: (Path("/"), 0)}, since=5.0, until=10.0)
    assert not quiet.is_over(4.9, {7: 2**40})
    assert quiet.is_over(5.0, {7: 2**40})
    assert not quiet.is_over(9.9, {7: 0})
    assert quiet.is_over(10.0, {7: 0})
