"""Fixtures of the tests of the clients: `pai`, a server as a task has one, the storage."""

from __future__ import annotations

import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import asyncssh
import pytest
from asyncssh.sftp import SFTPClient

from pai_scheduler.client.ssh.sftp import files_of
from pai_scheduler.client.storage.client import FilesClient
from tests.scheduler.client.cli.pai import environ_for
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.sshd import RunningSshd
from tests.testbed.warm import run_pai_text

# `pai` as somebody at a terminal has it.


@pytest.fixture
def pai(scheduler: RunningScheduler) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run `pai` as alice."""

    def run(*words: str | Path, stdin: str = "", **environ: str) -> subprocess.CompletedProcess[str]:
        return run_pai_text(words, environ_for(scheduler, **environ), stdin)

    return run


# A real OpenSSH server, and a connection to it, as the gateway would give one to a task.


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
async def task_files(connection: asyncssh.SSHClientConnection) -> AsyncIterator[SFTPClient]:
    """Have a task's files open."""
    async with files_of(connection) as opened:
        yield opened


# The storage of a real scheduler, as alice has it: a folder of her own for each test.


@pytest.fixture
async def files(scheduler: RunningScheduler) -> AsyncIterator[FilesClient]:
    """Be alice."""
    async with FilesClient(scheduler.url, "token-of-alice") as client:
        yield client


@pytest.fixture
async def home(files: FilesClient, request: pytest.FixtureRequest) -> str:
    """Return a folder of alice's that no other test has."""
    path = f"/alice/{request.node.name[:60]}-{id(request.node):x}"
    await files.mkdirs(path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder of this machine."""
    made = tmp_path / "here"
    made.mkdir()
    return made
