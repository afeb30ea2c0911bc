"""Uploads into a task, through a real OpenSSH server: only what changed, and whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import asyncssh
import pytest
from asyncssh.sftp import SFTPClient

from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.client.ssh.sftp import PIECE, UNSURE, RemoteFileError, files_of, upload
from pai_scheduler.client.storage.transfer import LocalFileError, TransferProgress, part_name

AWKWARD = "ä \n'\"$(x) \udcff*"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    folder = tmp_path / "here"
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "sub" / AWKWARD).write_bytes(b"awkward")
    (folder / "large").write_bytes(os.urandom(3 * PIECE + 5))
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o751)
    (folder / "link").symlink_to("run.sh")
    (folder / "away").symlink_to("/etc")
    os.mkfifo(folder / "pipe")
    os.utime(folder / "run.sh", (1e9, 1e9))
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


async def test_a_tree_arrives_with_its_modes_times_and_empty_folders(
    task_files: SFTPClient, here: Path, there: Path
) -> None:
    told: list[TransferProgress] = []
    outcome = await upload(task_files, here, f"{there}/new", told.append)
    new = there / "new"
    assert names(new) == sorted(["large", "link", "run.sh", "sub", f"sub/{AWKWARD}", "sub/empty"])
    assert (new / "large").read_bytes() == (here / "large").read_bytes()
    status = (new / "run.sh").stat()
    assert (status.st_mode & 0o777, status.st_mtime) == (0o751, 1e9)
    assert (outcome.files, outcome.complete) == (4, True)
    # a link to a folder and a pipe
    assert len(outcome.left_out) == 2
    assert (told[-1].files_done, told[-1].bytes_done) == (4, told[-1].bytes_total)


async def test_only_what_changed_is_sent_again(task_files: SFTPClient, here: Path, there: Path) -> None:
    await upload(task_files, here, f"{there}/new")
    (here / "run.sh").write_bytes(b"changed")
    (here / "large").chmod(0o400)
    outcome = await upload(task_files, here, f"{there}/new")
    assert (outcome.files, outcome.same) == (2, 2)  # run.sh, and the link to it
    assert (there / "new" / "run.sh").read_bytes() == b"changed"
    assert (there / "new" / "large").stat().st_mode & 0o777 == 0o400


async def test_a_transfer_that_broke_off_goes_on_and_mends_what_was_out_of_order(
    task_files: SFTPClient, here: Path, there: Path
) -> None:
    data = os.urandom(UNSURE + 2 * PIECE)
    (here / "large").write_bytes(data)
    status = (here / "large").stat()
    part = there / part_name("large", status.st_size, status.st_mtime_ns // 1_000_000)
    # the last pieces came in another order: a hole before the end; the begin shows that it is not sent again
    part.write_bytes(b"kept" + data[4 : 2 * PIECE] + bytes(UNSURE - PIECE))
    await upload(task_files, here / "large", f"{there}/large")
    assert (there / "large").read_bytes() == b"kept" + data[4:]
    assert names(there) == ["large"]


async def test_what_stands_there_stays_until_the_new_file_is_whole(
    connection: asyncssh.SSHClientConnection, here: Path, there: Path
) -> None:
    (there / "large").write_bytes(b"old")

    def cut(progress: TransferProgress) -> None:
        if progress.bytes_done:
            connection.abort()

    with pytest.raises(RemoteError, match="broke off"):
        async with files_of(connection) as files:
            await upload(files, here / "large", f"{there}/large", cut)
    assert (there / "large").read_bytes() == b"old"


async def test_one_file_that_cannot_be_written_does_not_hold_up_the_others(
    task_files: SFTPClient, here: Path, there: Path
) -> None:
    (there / "new" / "run.sh").mkdir(parents=True)
    outcome = await upload(task_files, here, f"{there}/new")
    assert not outcome.complete
    assert [item.path for item in outcome.left_out if item.failed] == [str(here / "run.sh")]
    assert (there / "new" / "large").exists()


async def test_a_file_for_a_folder_that_is_not_there_is_refused_in_words(
    task_files: SFTPClient, here: Path, there: Path
) -> None:
    with pytest.raises(RemoteFileError, match="There is no folder"):
        await upload(task_files, here / "run.sh", f"{there}/nowhere/run.sh")
    with pytest.raises(LocalFileError, match="cannot be read"):
        await upload(task_files, here / "nothing", f"{there}/x")
