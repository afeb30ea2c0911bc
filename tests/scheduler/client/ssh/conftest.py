"""A real OpenSSH server, and a connection to it, as the gateway would give one to a task."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncssh
import pytest
from asyncssh.sftp import SFTPClient

from pai_scheduler.client.ssh.sftp import files_of
from tests.testbed.sshd import RunningSshd


@pytest.fixture
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningSshd]:
    """Run a server."""
    running = RunningSshd(tmp_path_factory.mktemp("sshd"))
    yield running
    running.close()


@pytest.fixture
async def connection(sshd: RunningSshd) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """Be logged in."""
    async with await sshd.connect() as connection:
        yield connection


@pytest.fixture
def there(tmp_path: Path) -> Path:
    """Return a folder that stands for one in a task."""
    folder = tmp_path / "there"
    folder.mkdir()
    return folder


@pytest.fixture
async def files(connection: asyncssh.SSHClientConnection) -> AsyncIterator[SFTPClient]:
    """Have a task's files open."""
    async with files_of(connection) as opened:
        yield opened
