"""Folders that are fetched for jobs: whole or not at all, kept over a restart, gone with their job."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from pai_scheduler.i18n import Message, msg
from pai_scheduler.principal import Principal
from pai_scheduler.service.inputs import FolderCache, Limit
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StorageNames, StoragePath
from pai_scheduler.storage.protocol import Listing, OpenFile
from tests.scheduler.open_service import ALICE

CODE = StoragePath.parse("/alice/my code")


def too_large(mb: int, files: int) -> Message:
    return msg("{mb} MB in {files} files", mb=mb, files=files)


LIMIT = Limit(1, 5, too_large)


class WaitingFiles(Files):
    """Files in which nothing is listed before the gate is open; how many were opened is counted."""

    def __init__(self, folder: Path) -> None:
        super().__init__(FolderStorage(folder / "storage"), StorageNames(["http://fs"]))
        self.gate = asyncio.Event()
        self.gate.set()
        self.asked = asyncio.Event()
        self.fetched = 0

    def open(
        self, principal: Principal, path: StoragePath, offset: int = 0, length: int | None = None
    ) -> AbstractAsyncContextManager[OpenFile]:
        self.fetched += 1
        return super().open(principal, path, offset, length)

    async def list(
        self, principal: Principal, path: StoragePath, after: str = "", limit: int | None = None
    ) -> Listing:
        self.asked.set()
        await self.gate.wait()
        return await super().list(principal, path, after, limit)

    async def put(self, path: str, contents: bytes = b"x", *, permission: int | None = None) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield contents

        await self.create(ALICE, StoragePath.parse(path), pieces(), overwrite=True, permission=permission)


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[WaitingFiles]:
    files = WaitingFiles(tmp_path)
    await files.start()
    await files.put("/alice/my code/a.py", b"print(1)")
    await files.put("/alice/my code/deep/er/run.sh", b"#!/bin/sh", permission=0o750)
    await files.mkdirs(ALICE, CODE / "empty")
    yield files
    await files.close()


@pytest.fixture
async def staging(tmp_path: Path) -> FolderCache:
    staging = FolderCache(tmp_path / "code")
    await staging.keep_only(set())
    return staging


async def fetch(staging: FolderCache, files: Files, job: str = "j1", limit: Limit = LIMIT) -> Path:
    return await staging.fetch(files, ALICE, CODE, limit, job, CODE.name)


def tree(folder: Path) -> dict[str, str]:
    """Return what is in a folder, with the rights."""
    return {str(path.relative_to(folder)): f"{path.stat().st_mode & 0o777:o}" for path in folder.rglob("*")}


async def test_a_folder_comes_whole_and_nobody_may_write_to_it(
    files: WaitingFiles, staging: FolderCache, tmp_path: Path
) -> None:
    place = await fetch(staging, files)
    assert place == tmp_path / "code" / "j1" / "my code"
    assert place.stat().st_mode & 0o777 == 0o555
    assert tree(place) == {
        "a.py": "444",
        "deep": "555",
        "deep/er": "555",
        "deep/er/run.sh": "555",
        "empty": "555",
    }
    assert (place / "a.py").read_bytes() == b"print(1)"


async def test_it_is_fetched_once_for_a_job_also_over_a_restart(
    files: WaitingFiles, staging: FolderCache, tmp_path: Path
) -> None:
    await fetch(staging, files)
    await files.put("/alice/my code/a.py", b"print(2)")
    again = FolderCache(tmp_path / "code")
    await again.keep_only({"j1"})
    assert ((await fetch(again, files)) / "a.py").read_bytes() == b"print(1)"
    assert ((await fetch(again, files, "j2")) / "a.py").read_bytes() == b"print(2)"
    assert files.fetched == 4


async def test_it_goes_with_its_job(files: WaitingFiles, staging: FolderCache, tmp_path: Path) -> None:
    await fetch(staging, files)
    await fetch(staging, files, "j2")
    await staging.forget("j1")
    await staging.forget("never-was")
    assert {path.name for path in (tmp_path / "code").glob("[!.]*")} == {"j2"}
    await staging.keep_only({"j3"})
    assert not list((tmp_path / "code").glob("[!.]*"))


async def test_what_was_not_fetched_to_its_end_is_gone_after_a_restart(
    files: WaitingFiles, staging: FolderCache, tmp_path: Path
) -> None:
    files.gate.clear()
    fetching = asyncio.create_task(fetch(staging, files))
    await files.asked.wait()
    assert not (tmp_path / "code" / "j1").exists()
    # (as after a kill -9: nobody is there to clean up)
    half = next((tmp_path / "code" / ".parts").iterdir())
    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)
    half.mkdir(parents=True)
    (half / "a.py").write_text("half")
    await FolderCache(tmp_path / "code").keep_only({"j1"})
    assert not (tmp_path / "code" / ".parts").exists()
    assert not (tmp_path / "code" / "j1").exists()


async def test_a_cancelled_fetch_leaves_nothing(
    files: WaitingFiles, staging: FolderCache, tmp_path: Path
) -> None:
    files.gate.clear()
    fetching = asyncio.create_task(fetch(staging, files))
    await files.asked.wait()
    fetching.cancel()
    await asyncio.gather(fetching, return_exceptions=True)
    assert not list((tmp_path / "code" / ".parts").iterdir())


async def test_after_a_crash_of_the_machine_all_is_fetched_anew(
    files: WaitingFiles, staging: FolderCache, tmp_path: Path
) -> None:
    await fetch(staging, files)
    (tmp_path / "code" / ".boot").write_text("another boot")
    await staging.keep_only({"j1"})
    assert not (tmp_path / "code" / "j1").exists()


async def test_simultaneous_fetches_share_one_copy(files: WaitingFiles, staging: FolderCache) -> None:
    places = await asyncio.gather(*(fetch(staging, files) for _ in range(3)))
    assert len(set(places)) == 1
    assert "deep/er/run.sh" in tree(places[0])


@pytest.mark.parametrize("over", ["bytes", "files"])
async def test_what_is_too_much_is_refused_before_anything_is_fetched(
    files: WaitingFiles, staging: FolderCache, over: str
) -> None:
    if over == "bytes":
        await files.put("/alice/my code/large", b"x" * 10**6)
    for number in range(4 if over == "files" else 0):
        await files.put(f"/alice/my code/{number}")
    with pytest.raises(StorageError, match=r"2 MB in 3 files|1 MB in 6 files") as caught:
        await fetch(staging, files)
    assert caught.value.problem is Problem.TOO_LARGE
    assert files.fetched == 0


async def test_what_grows_while_it_is_fetched_is_refused_and_leaves_nothing(
    files: WaitingFiles, staging: FolderCache, tmp_path: Path
) -> None:
    files.gate.clear()
    fetching = asyncio.create_task(fetch(staging, files))
    await files.asked.wait()
    await files.put("/alice/my code/large", b"x" * (10**6 + 1))
    files.gate.set()
    with pytest.raises(StorageError) as caught:
        await fetching
    assert caught.value.problem is Problem.TOO_LARGE
    assert not (tmp_path / "code" / "j1").exists()
    assert not list((tmp_path / "code" / ".parts").iterdir())


async def test_symbolic_links_are_left_out(files: WaitingFiles, staging: FolderCache, tmp_path: Path) -> None:
    here = tmp_path / "storage" / "alice" / "my code"
    (here / "link").symlink_to("/etc/passwd")
    (here / "folder").symlink_to("/etc")
    os.mkfifo(here / "pipe")
    assert set(tree(await fetch(staging, files))) == {"a.py", "deep", "deep/er", "deep/er/run.sh", "empty"}


async def test_a_folder_of_more_entries_than_are_listed_at_once_comes_whole(
    files: WaitingFiles, staging: FolderCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pai_scheduler.service.inputs._PAGE", 7)
    for number in range(30):
        await files.put(f"/alice/my code/many/{number}")
    place = await fetch(staging, files, limit=Limit(1, 100, too_large))
    assert len(list((place / "many").iterdir())) == 30


async def test_a_disk_that_cannot_take_it_is_said_to_be_so(
    files: WaitingFiles, staging: FolderCache, tmp_path: Path
) -> None:
    (tmp_path / "code" / ".parts").write_text("in the way")
    with pytest.raises(StorageError, match="cannot be kept on the scheduler's disk") as caught:
        await fetch(staging, files)
    assert caught.value.problem is Problem.NO_SPACE


async def test_a_folder_that_is_not_there_is_not_there(files: WaitingFiles, staging: FolderCache) -> None:
    with pytest.raises(StorageError) as caught:
        await staging.fetch(files, ALICE, StoragePath.parse("/alice/none"), LIMIT, "j1", "none")
    assert caught.value.problem is Problem.NOT_FOUND
