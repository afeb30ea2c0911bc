"""Uploads to a real HDFS behind the scheduler: a file whose writer went away is closed by HDFS itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pai_scheduler.client.storage import transfer
from pai_scheduler.client.storage import upload as module
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.client.storage.upload import upload
from tests.scheduler.client.storage.cutting import cutting
from tests.scheduler.client.storage.test_client import contents
from tests.scheduler.client.storage.test_upload import LARGE, names, upload_with_a_late_append
from tests.testbed.hdfs import ACCOUNT, Hdfs
from tests.testbed.scheduler import RunningScheduler, StartScheduler


@pytest.fixture(scope="module")
def scheduler(hdfs: Hdfs, module_scheduler: StartScheduler) -> RunningScheduler:
    """Run a scheduler in front of HDFS."""
    return module_scheduler("--storage", hdfs.url, "--storage-user", ACCOUNT)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 1_000_000)
    monkeypatch.setattr(module, "APPENDED", 1_300_000)
    monkeypatch.setattr(module, "PIECE", 100_000)
    monkeypatch.setattr(transfer, "_PAUSE", 0.1)


async def test_an_upload_goes_on_after_broken_connections(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    async with cutting(scheduler.url) as way, FilesClient(way.url, "token-of-alice") as client:
        way.up, way.cuts = 800_000, 3
        outcome = await upload(client, folder, home)
        assert (outcome.files, way.cuts) == (1, 0)
    assert await contents(files, f"{home}/large") == LARGE
    again = await upload(files, folder, home)
    assert (again.files, again.same) == (0, 1)


async def test_what_a_broken_connection_brings_late_is_never_mixed_in(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    await upload_with_a_late_append(scheduler, files, folder / "large", f"{home}/large")
    assert await contents(files, f"{home}/large") == LARGE
    assert await names(files, home) == ["large"]


async def test_an_upload_that_was_ended_is_gone_on_with(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    async with cutting(scheduler.url) as way, FilesClient(way.url, "token-of-alice") as client:
        sent = asyncio.create_task(upload(client, folder / "large", f"{home}/large"))
        await way.until_up(1_600_000)
        sent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent
    assert await files.find(f"{home}/large") is None
    await upload(files, folder / "large", f"{home}/large")
    assert await names(files, home) == ["large"]
    assert await contents(files, f"{home}/large") == LARGE


async def test_a_name_that_hdfs_does_not_take_is_left_out_alone(
    files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "12:30").mkdir()
    (folder / "a:b").write_bytes(b"1")
    (folder / "ab").write_bytes(b"2")
    outcome = await upload(files, folder, home)
    assert {Path(item.path).name for item in outcome.left_out} == {"12:30", "a:b"}
    assert all("colon" in str(item.reason) for item in outcome.left_out)
    assert await names(files, home) == ["ab"]
