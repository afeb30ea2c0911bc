"""What uploads and downloads have in common, on a real OpenSSH server."""

from __future__ import annotations

from pathlib import Path

import asyncssh
import pytest

from pai_scheduler.client.ssh.connection import RemoteError
from pai_scheduler.client.ssh.sftp import (
    PIECE,
    UNSURE,
    RemoteFileError,
    attributes,
    files_of,
    is_folder,
    make_folder,
    offsets,
)


async def test_folders_are_made_with_those_above_them_and_kept(
    connection: asyncssh.SSHClientConnection, there: Path
) -> None:
    async with files_of(connection) as files:
        await make_folder(files, f"{there}/a/b/c", 0o700)
        (there / "a").chmod(0o711)
        await make_folder(files, f"{there}/a", 0o700)
        found = await attributes(files, f"{there}/a/b/c")
        (there / "file").touch()
        with pytest.raises(RemoteFileError, match="is no folder"):
            await make_folder(files, f"{there}/file/sub")
        assert await attributes(files, f"{there}/nothing") is None
    assert found is not None
    assert is_folder(found)
    assert (there / "a" / "b" / "c").stat().st_mode & 0o777 == 0o700
    assert (there / "a").stat().st_mode & 0o777 == 0o711


async def test_a_connection_that_is_lost_is_not_a_files_fault(
    connection: asyncssh.SSHClientConnection,
) -> None:
    async def ask() -> None:
        async with files_of(connection) as files:
            connection.abort()
            await connection.wait_closed()
            await attributes(files, "x")

    with pytest.raises(RemoteError, match="broke off"):
        await ask()


def test_what_may_have_holes_is_sent_again() -> None:
    assert list(offsets(0, 0)) == []
    assert list(offsets(0, PIECE + 1)) == [0, PIECE]
    assert offsets(UNSURE + 5, UNSURE + 10)[0] == 5
    assert offsets(UNSURE - 1, UNSURE)[0] == 0
