"""What the engine tests share: a disk that is quickly full, Docker."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from pai_scheduler.engine.docker.engine import DockerEngine
from pai_scheduler.engine.docker.loopback_proxy import _splice
from pai_scheduler.testing.lab import Lab, make_code


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a disk of 1 MB in memory."""
    folder = tmp_path / "tiny-disk"
    folder.mkdir()
    mount = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder],
        capture_output=True,
        text=True,
        check=False,
    )
    if mount.returncode:
        reason = f"a tmpfs (mounting one needs root): {mount.stderr.strip()}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


@pytest.fixture
async def tcp_docker(docker_host: str) -> AsyncIterator[str]:
    """Return the address of a daemon whose machine, for all one can tell, is another one."""
    socket = docker_host.removeprefix("unix://")

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _splice((reader, writer), await asyncio.open_unix_connection(socket))

    server = await asyncio.start_server(pass_on, "127.0.0.1", 0)
    yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()


@pytest.fixture
async def docker_lab(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str
) -> AsyncIterator[Lab]:
    """Work on a Docker engine."""
    lab = await Lab.over(await open_docker(), debian_image)
    yield lab
    await lab.clean()


@pytest.fixture
async def walled_lab(
    open_docker: Callable[..., Awaitable[DockerEngine]], debian_image: str, runtime_image: str
) -> AsyncIterator[Lab]:
    """Work on an engine that has the runtime's image, as every installation should."""
    lab = await Lab.over(await open_docker(runtime_image=runtime_image), debian_image)
    yield lab
    await lab.clean()


@pytest.fixture
def code(tmp_path: Path) -> Path:
    """Return code as it is kept for a job: nobody may write to it."""
    return make_code(tmp_path)
