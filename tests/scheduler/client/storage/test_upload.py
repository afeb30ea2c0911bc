"""Uploads to a real scheduler: only what changed, on where the connection broke, nothing out of the tree."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import UnreachableError
from pai_scheduler.client.storage import transfer
from pai_scheduler.client.storage import upload as module
from pai_scheduler.client.storage.client import FilesClient, FilesError
from pai_scheduler.client.storage.transfer import LocalFileError, TransferProgress, part_name
from pai_scheduler.client.storage.upload import upload
from tests.scheduler.client.storage.cutting import cutting
from tests.scheduler.client.storage.test_client import AWKWARD, contents
from tests.testbed.scheduler import RunningScheduler

LARGE = os.urandom(3_000_000)


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a file of 3 MB be a large one, and nobody wait."""
    monkeypatch.setattr(module, "SMALL", 1_000_000)
    monkeypatch.setattr(module, "APPENDED", 1_300_000)
    monkeypatch.setattr(module, "PIECE", 100_000)
    monkeypatch.setattr(transfer, "_PAUSE", 0.01)


async def names(files: FilesClient, path: str) -> list[str]:
    return [entry.path.removeprefix(f"{path}/") async for entry in files.walk(path)]


async def upload_with_a_late_append(
    scheduler: RunningScheduler, files: FilesClient, local: Path, remote: str
) -> None:
    """Upload a large file; what comes of its first append lands when the next has been decided on.

    A second cut is then so placed that what is there may pass for a beginning of the file.
    """
    part = part_name("large", len(LARGE), local.stat().st_mtime_ns // 1_000_000)
    path = f"{remote.rpartition('/')[0]}/{part}"
    appends = 0

    async with cutting(scheduler.url) as way, FilesClient(way.url, "token-of-alice") as client:
        way.up, way.cuts, way.late = 800_000, 2, True

        async def land(request: httpx.Request) -> None:
            nonlocal appends
            if request.url.params["op"] != "APPEND":
                return
            appends += 1
            if appends == 2:
                way.up = 1_500_000
                begun = now = await files.status(path)
                way.let_go()
                # HDFS sets the time when it closes the file: until then it refuses another writer
                while now.length < 700_000 or now.modified == begun.modified:
                    await asyncio.sleep(0.01)
                    now = await files.status(path)

        client._http.event_hooks = {"request": [land]}
        await upload(client, local, remote)
        assert (way.cuts, appends > 2) == (0, True)


def fill(folder: Path) -> None:
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "sub" / AWKWARD).write_bytes(b"awkward")
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o755)
    (folder / "large").write_bytes(LARGE)
    (folder / "nothing").write_bytes(b"")


async def test_a_tree_is_uploaded_with_its_times_and_empty_folders(
    files: FilesClient, home: str, folder: Path
) -> None:
    fill(folder)
    told: list[TransferProgress] = []
    outcome = await upload(files, folder, f"{home}/x", told.append)
    assert await names(files, f"{home}/x") == [
        *("large", "nothing", "run.sh", "sub"),
        *(f"sub/{AWKWARD}", "sub/empty"),
    ]
    assert await contents(files, f"{home}/x/large") == LARGE
    for name in ("large", "run.sh", f"sub/{AWKWARD}"):
        info = await files.status(f"{home}/x/{name}")
        assert info.modified == (folder / name).stat().st_mtime_ns // 1_000_000
    assert (await files.status(f"{home}/x/run.sh")).permission & 0o111
    assert (outcome.files, outcome.same, outcome.left_out) == (4, 0, [])
    assert outcome.length == 3_000_017
    last = told[-1]
    assert (last.files_done, last.files_total, last.bytes_done, last.bytes_total) == (
        4,
        4,
        3_000_017,
        3_000_017,
    )
    assert len(told) > 30


async def test_a_second_upload_sends_only_what_changed(files: FilesClient, home: str, folder: Path) -> None:
    fill(folder)
    await upload(files, folder, home)
    again = await upload(files, folder, home)
    assert (again.files, again.same, again.length) == (0, 4, 0)
    (folder / "run.sh").write_bytes(b"#!/bin/bash\n")
    # the same length at another time is another file
    os.utime(folder / "nothing", (1, 1))
    changed = await upload(files, folder, home)
    assert (changed.files, changed.same, changed.length) == (2, 2, 12)
    assert await contents(files, f"{home}/run.sh") == b"#!/bin/bash\n"


async def test_one_file_gets_the_name_that_is_said(files: FilesClient, home: str, folder: Path) -> None:
    (folder / "a").write_bytes(b"1")
    await upload(files, folder / "a", f"{home}/new/b")
    assert await names(files, home) == ["new", "new/b"]
    with pytest.raises(LocalFileError, match="cannot be read"):
        await upload(files, folder / "never", f"{home}/c")


async def test_links_to_files_are_files_and_links_to_folders_are_left_out(
    files: FilesClient, home: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(b"secret")
    (folder / "to-file").symlink_to(tmp_path / "outside" / "secret")
    (folder / "to-folder").symlink_to(tmp_path / "outside")
    (folder / "round").symlink_to(folder)
    (folder / "nowhere").symlink_to("gone")
    os.mkfifo(folder / "pipe")
    outcome = await upload(files, folder, home)
    assert await names(files, home) == ["to-file"]
    assert await contents(files, f"{home}/to-file") == b"secret"
    left = {Path(item.path).name: str(item.reason) for item in outcome.left_out}
    assert left.keys() == {"to-folder", "round", "nowhere", "pipe"}
    assert "link to a folder" in left["round"]
    assert outcome.complete


async def test_a_file_that_cannot_be_taken_does_not_keep_the_others(
    files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "a").write_bytes(b"1")
    (folder / "b").write_bytes(b"1")
    await files.mkdirs(f"{home}/a/in-the-way")
    outcome = await upload(files, folder, home)
    assert [Path(item.path).name for item in outcome.left_out] == ["a"]
    assert not outcome.complete
    assert await contents(files, f"{home}/b") == b"1"


async def test_a_broken_connection_is_gone_on_with(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    (folder / "small").write_bytes(LARGE[:900_000])
    async with cutting(scheduler.url) as way, FilesClient(way.url, "token-of-alice") as client:
        way.up, way.cuts = 800_000, 4
        outcome = await upload(client, folder, home)
        assert way.cuts == 0
    assert outcome.files == 2
    assert await names(files, home) == ["large", "small"]
    assert await contents(files, f"{home}/large") == LARGE
    assert await contents(files, f"{home}/small") == LARGE[:900_000]


async def test_what_a_later_upload_begins_with_is_what_came_over(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    status = (folder / "large").stat()
    part = f"{home}/{part_name('large', 3_000_000, status.st_mtime_ns // 1_000_000)}"
    async with cutting(scheduler.url) as way, FilesClient(way.url, "token-of-alice") as client:
        sent = asyncio.create_task(upload(client, folder / "large", f"{home}/large"))
        await way.until_up(1_600_000)
        sent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sent
        # no half file under the final name
        assert await names(files, home) == [part.rpartition("/")[2]]
        # what was on its way lands, which counts too
        while (await files.status(part)).length <= 1_300_000:  # noqa: ASYNC110 - the server makes it so
            await asyncio.sleep(0.01)
        way.passed_up = 0
        await upload(client, folder / "large", f"{home}/large")
        assert way.passed_up < 1_900_000
    assert await names(files, home) == ["large"]
    assert await contents(files, f"{home}/large") == LARGE


async def test_an_upload_to_an_unreachable_storage_is_given_up(
    scheduler: RunningScheduler, home: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transfer, "_TRIES", 2)
    (folder / "large").write_bytes(LARGE)
    async with cutting(scheduler.url) as way, FilesClient(way.url, "token-of-alice") as client:
        way.up, way.cuts = 0, 10**6
        with pytest.raises(UnreachableError):
            await upload(client, folder / "large", f"{home}/large")


async def test_a_part_that_has_grown_too_long_is_begun_anew(
    files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    part = part_name("large", 3_000_000, (folder / "large").stat().st_mtime_ns // 1_000_000)
    await files.write(f"{home}/{part}", LARGE + b"x")
    await upload(files, folder / "large", f"{home}/large")
    assert await contents(files, f"{home}/large") == LARGE


async def test_a_part_that_does_not_end_as_the_file_does_there_is_begun_anew(
    files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    part = part_name("large", 3_000_000, (folder / "large").stat().st_mtime_ns // 1_000_000)
    await files.write(f"{home}/{part}", LARGE[:1_500_000] + LARGE[:500_000])
    await upload(files, folder / "large", f"{home}/large")
    assert await contents(files, f"{home}/large") == LARGE


async def test_what_something_else_wrote_meanwhile_is_noticed(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    appends: list[str] = []

    async def disturb(request: httpx.Request) -> None:
        if request.url.params["op"] == "APPEND":
            appends.append(request.url.path.removeprefix("/webhdfs/v1"))
            if len(appends) == 2:
                await files.append(appends[0], b"something else")

    async with FilesClient(scheduler.url, "token-of-alice") as client:
        client._http.event_hooks = {"request": [disturb]}
        await upload(client, folder / "large", f"{home}/large")
    assert await contents(files, f"{home}/large") == LARGE
    assert await names(files, home) == ["large"]


async def test_what_a_broken_connection_brings_late_is_never_mixed_in(
    scheduler: RunningScheduler, files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    await upload_with_a_late_append(scheduler, files, folder / "large", f"{home}/large")
    assert await contents(files, f"{home}/large") == LARGE
    assert await names(files, home) == ["large"]


async def test_two_uploads_of_one_file_at_once_never_leave_a_mixture(
    files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    await asyncio.gather(
        *(upload(files, folder / "large", f"{home}/large") for _ in range(2)), return_exceptions=True
    )
    there = await files.find(f"{home}/large")
    assert there is not None
    assert await contents(files, f"{home}/large") == LARGE


async def test_the_part_of_an_older_state_is_cleared_away(
    files: FilesClient, home: str, folder: Path
) -> None:
    (folder / "large").write_bytes(LARGE)
    old, young = part_name("large", 1, 1), part_name("large", 2, 2)
    for name, modified in ((old, 1000), (young, 1_900_000_000_000)):
        await files.write(f"{home}/{name}", b"half")
        await files.set_times(f"{home}/{name}", modified)
    await upload(files, folder / "large", f"{home}/large")
    assert await names(files, home) == [young, "large"]


async def test_a_file_that_changes_meanwhile_is_not_put_in_place(
    files: FilesClient, home: str, folder: Path
) -> None:
    file = folder / "large"
    file.write_bytes(LARGE)

    def tell(progress: TransferProgress) -> None:
        if progress.bytes_done > 2_000_000:
            file.write_bytes(b"other")

    outcome = await upload(files, file, f"{home}/large", tell)
    assert "has changed while" in str(outcome.left_out[0].reason)
    assert await files.find(f"{home}/large") is None


async def test_a_refusal_of_the_whole_folder_is_an_error(files: FilesClient, folder: Path) -> None:
    (folder / "a").write_bytes(b"1")
    with pytest.raises(FilesError, match="may not write"):
        await upload(files, folder, "/bob/x")


async def test_a_very_long_name_has_a_part_too(files: FilesClient, home: str, folder: Path) -> None:
    name = "é" * 127
    (folder / name).write_bytes(LARGE)
    await upload(files, folder, home)
    assert await names(files, home) == [name]
