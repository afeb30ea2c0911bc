"""An archive is written while it is read: whole or broken off, and never more than fits."""

from __future__ import annotations

import asyncio
import io
import subprocess
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pai_scheduler.api.webhdfs import transfer as webhdfs_archive
from pai_scheduler.api.webhdfs.transfer import zipped
from pai_scheduler.principal import Principal
from pai_scheduler.storage.files import Files
from pai_scheduler.storage.folder.storage import FolderStorage
from pai_scheduler.storage.paths import Problem, StorageError, StorageNames, StoragePath

ALICE = Principal("alice", groups=("vision",))
HOME = StoragePath(("alice",))


@pytest.fixture
async def files(tmp_path: Path) -> AsyncIterator[Files]:
    files = Files(FolderStorage(tmp_path / "files"), StorageNames(["file:///files"]))
    await files.start()
    yield files
    await files.close()


async def write(files: Files, path: str, contents: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield contents

    await files.create(ALICE, StoragePath.parse(path), pieces())


async def test_another_program_unpacks_it_with_rights_times_and_empty_folders(
    files: Files, tmp_path: Path
) -> None:
    await write(files, "/alice/d/run.sh", b"#!/bin/sh\n")
    await files.set_permission(ALICE, HOME / "d" / "run.sh", 0o755)
    await files.set_times(ALICE, HOME / "d" / "run.sh", 1_500_000_000_000, None)
    await files.mkdirs(ALICE, HOME / "d" / "empty")
    await write(files, "/alice/d/名字 1", bytes(5_000_000))
    archive = tmp_path / "d.zip"
    archive.write_bytes(b"".join([piece async for piece in zipped(files, ALICE, HOME / "d")]))
    code = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])"
    await asyncio.to_thread(
        subprocess.run, ["python3", "-c", code, str(archive), str(tmp_path / "back")], check=True
    )
    back = tmp_path / "back" / "d"
    assert (back / "名字 1").read_bytes() == bytes(5_000_000)
    assert (back / "empty").is_dir()
    (entry,) = [info for info in zipfile.ZipFile(archive).infolist() if info.filename == "d/run.sh"]
    assert entry.external_attr >> 16 == 0o100755
    assert entry.date_time == (2017, 7, 14, 2, 40, 0)


async def test_all_of_the_storage_is_what_the_caller_may_read(files: Files) -> None:
    await write(files, "/alice/f", b"")
    await files.mkdirs(Principal("bob"), StoragePath(("bob", "secret")))
    contents = b"".join([piece async for piece in zipped(files, ALICE, StoragePath())])
    names = zipfile.ZipFile(io.BytesIO(contents)).namelist()
    assert "alice/f" in names
    assert not [name for name in names if "bob" in name]


async def test_a_folder_that_is_too_large_is_refused_before_it_begins(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(webhdfs_archive, "MOST", 3)
    for name in "abc":
        await write(files, f"/alice/{name}", b"")
    with pytest.raises(StorageError, match="too many for one archive") as refused:
        await anext(zipped(files, ALICE, HOME))
    assert refused.value.problem is Problem.TOO_LARGE


async def test_a_long_folder_is_read_page_by_page(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhdfs_archive, "_PAGE", 2)
    for name in "abcde":
        await write(files, f"/alice/{name}", name.encode())
    contents = b"".join([piece async for piece in zipped(files, ALICE, HOME)])
    assert zipfile.ZipFile(io.BytesIO(contents)).namelist() == [f"alice/{name}" for name in "abcde"]


async def test_what_is_deleted_meanwhile_is_left_out(files: Files) -> None:
    await write(files, "/alice/a", bytes(3_000_000))
    await write(files, "/alice/b", b"gone")
    await write(files, "/alice/c/d", b"gone too")
    pieces = zipped(files, ALICE, HOME)
    contents = await anext(pieces)
    await files.delete(ALICE, HOME / "b")
    await files.delete(ALICE, HOME / "c", recursive=True)
    contents += b"".join([piece async for piece in pieces])
    archive = zipfile.ZipFile(io.BytesIO(contents))
    assert archive.testzip() is None
    assert archive.namelist() == ["alice/a", "alice/c/"]


async def test_a_file_that_ends_too_soon_breaks_the_archive_off(files: Files, tmp_path: Path) -> None:
    await write(files, "/alice/a", bytes(3_000_000))
    pieces = zipped(files, ALICE, HOME)
    await anext(pieces)
    (tmp_path / "files" / "alice" / "a").write_bytes(b"")

    async def rest() -> None:
        async for _ in pieces:
            pass

    with pytest.raises(StorageError):
        await rest()
