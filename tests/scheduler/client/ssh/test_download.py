"""Downloads out of a task, through a real OpenSSH server: only what changed, nothing out of the folder."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from pathlib import Path

import asyncssh
import pytest
from asyncssh.sftp import SFTPClient

from pai_scheduler.client.ssh.sftp import PIECE, UNSURE, RemoteFileError, download, files_of
from pai_scheduler.client.storage.transfer import part_name

AWKWARD = "ä \n'\"$(x) \udcff*"


@pytest.fixture
def results(there: Path) -> Path:
    folder = there / "results"
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "sub" / AWKWARD).write_bytes(b"awkward")
    (folder / "large").write_bytes(os.urandom(3 * PIECE + 5))
    (folder / "run.sh").write_bytes(b"#!/bin/sh\n")
    (folder / "run.sh").chmod(0o4751)
    (folder / "link").symlink_to("run.sh")
    (folder / "away").symlink_to("/etc")
    (folder / "broken").symlink_to("nothing")
    os.mkfifo(folder / "pipe")
    os.utime(folder / "run.sh", (1e9, 1e9))
    return folder


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


async def test_a_tree_arrives_with_its_modes_times_and_empty_folders(
    task_files: SFTPClient, results: Path, tmp_path: Path
) -> None:
    outcome = await download(task_files, str(results), tmp_path / "new")
    new = tmp_path / "new"
    assert names(new) == sorted(["large", "link", "run.sh", "sub", f"sub/{AWKWARD}", "sub/empty"])
    assert (new / "large").read_bytes() == (results / "large").read_bytes()
    status = (new / "run.sh").stat()
    # of a program that runs as its owner only the program comes along
    assert (status.st_mode & 0o7777, status.st_mtime) == (0o751, 1e9)
    assert (outcome.files, outcome.complete, len(outcome.left_out)) == (4, True, 3)


async def test_only_what_changed_is_fetched_again(
    task_files: SFTPClient, results: Path, tmp_path: Path
) -> None:
    await download(task_files, str(results), tmp_path / "new")
    (results / "sub" / AWKWARD).write_bytes(b"changed now")
    (results / "large").chmod(0o400)
    outcome = await download(task_files, str(results), tmp_path / "new")
    assert (outcome.files, outcome.same) == (1, 3)
    assert (tmp_path / "new" / "sub" / AWKWARD).read_bytes() == b"changed now"
    assert (tmp_path / "new" / "large").stat().st_mode & 0o777 == 0o400


async def test_a_transfer_that_broke_off_goes_on_and_mends_what_was_out_of_order(
    task_files: SFTPClient, there: Path, tmp_path: Path
) -> None:
    data = os.urandom(UNSURE + 2 * PIECE)
    (there / "large").write_bytes(data)
    os.utime(there / "large", (1e9, 1e9))
    part = tmp_path / part_name("large", len(data), 10**12)
    part.write_bytes(b"kept" + data[4 : 2 * PIECE] + bytes(UNSURE - PIECE))
    await download(task_files, str(there / "large"), tmp_path / "large")
    assert (tmp_path / "large").read_bytes() == b"kept" + data[4:]
    assert not part.exists()


async def test_nothing_is_written_through_a_link_that_is_here(
    task_files: SFTPClient, results: Path, tmp_path: Path
) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "sub").symlink_to(tmp_path / "private")
    outcome = await download(task_files, str(results), tmp_path / "new")
    assert not outcome.complete
    assert list((tmp_path / "private").iterdir()) == []


async def test_what_is_not_there_or_no_file_is_said(
    task_files: SFTPClient, results: Path, tmp_path: Path
) -> None:
    with pytest.raises(RemoteFileError, match="There is no"):
        await download(task_files, str(results / "nothing"), tmp_path / "x")
    with pytest.raises(RemoteFileError, match="is no file"):
        await download(task_files, str(results / "pipe"), tmp_path / "x")
    assert not (tmp_path / "x").exists()


class LyingServer(asyncssh.SFTPServer):
    """A task's server that says of its files what it likes."""

    async def scandir(self, _path: bytes) -> AsyncIterator[asyncssh.SFTPName]:
        """List names that lead out of the folder."""
        attrs = asyncssh.SFTPAttrs(
            type=asyncssh.FILEXFER_TYPE_REGULAR, permissions=0o100644, size=4, mtime=1, atime=1
        )
        for name in (b"../evil", b"/tmp/evil-of-a-task", b"a/../../evil", b"good"):
            yield asyncssh.SFTPName(name, b"", attrs)

    async def stat(self, path: bytes) -> asyncssh.SFTPAttrs:
        """Say that everything is there."""
        return asyncssh.SFTPAttrs(
            type=asyncssh.FILEXFER_TYPE_DIRECTORY
            if path.endswith(b"lies")
            else asyncssh.FILEXFER_TYPE_REGULAR,
            permissions=0o40755 if path.endswith(b"lies") else 0o100644,
            size=4,
            mtime=1,
            atime=1,
        )

    def open(self, _path: bytes, _pflags: int, _attrs: asyncssh.SFTPAttrs) -> object:
        """Return something."""
        return open("/proc/self/cmdline", "rb")


async def test_a_task_that_lies_about_its_files_writes_nothing_outside(tmp_path: Path) -> None:
    key = asyncssh.generate_private_key("ssh-ed25519")

    class Anybody(asyncssh.SSHServer):
        def begin_auth(self, _username: str) -> bool:
            return False

    server = await asyncssh.create_server(
        Anybody, "127.0.0.1", 0, server_host_keys=[key], sftp_factory=LyingServer
    )
    async with server:
        connection = await asyncssh.connect(
            "127.0.0.1", server.get_port(), known_hosts=None, config=[], agent_path=None, client_keys=[]
        )
        async with connection, files_of(connection) as files:
            (tmp_path / "inner").mkdir()
            outcome = await download(files, "lies", tmp_path / "inner" / "new")
    assert len([item for item in outcome.left_out if item.failed]) == 3
    assert names(tmp_path) == ["inner", "inner/new", "inner/new/good"]
