"""A scheduler of their own for the tests of the documentation, and a reader before it."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from pai_scheduler.own_packages import OwnPackages
from pai_scheduler.testing.ports import free_port
from tests.docs.reader import Reader
from tests.testbed.scheduler import RunningScheduler, clean_environ
from tests.testbed.warm import WarmProcess, WarmScheduler, run_jupyterlab

#: The one that the README has its readers start.
CLUSTER = Path(__file__).parents[2] / "hub_config" / "examples" / "gpu-lab.yaml"
PATIENCE = 60.0


@pytest.fixture(scope="session")
def documented(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    """Run a scheduler as `make run CLUSTER=hub_config/examples/gpu-lab.yaml` has it."""
    running = WarmScheduler(
        tmp_path_factory.mktemp("documented"), cluster=CLUSTER.read_text(encoding="utf-8"), ssh=True
    )
    yield running
    running.close()


@pytest.fixture
async def alice(documented: RunningScheduler) -> AsyncIterator[Client]:
    """Be alice, an ordinary user."""
    async with Client(documented.url, "token-of-alice") as client:
        yield client


@pytest.fixture
async def reader(documented: RunningScheduler, alice: Client, tmp_path: Path) -> AsyncIterator[Reader]:
    """Be alice in a notebook server that she has just started for the first time."""
    home = tmp_path / "home"
    home.mkdir()
    environ = clean_environ(
        {
            "HOME": str(home),
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PAI_API_URL": documented.url,
            "PAI_TOKEN": "token-of-alice",
            "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
            "JUPYTER_DATA_DIR": str(tmp_path / "data"),
            "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        }
    )
    # what a page installs or removes is the reader's own, never that of the tests
    own = OwnPackages.in_home(home)
    own.make()
    environ |= own.variables(environ)
    port = free_port()
    arguments = [
        *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1", f"--ServerApp.root_dir={home}"),
        *(f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token=alices"),
    ]
    server = WarmProcess(run_jupyterlab, arguments, environ, tmp_path / "server.log")
    url = f"http://127.0.0.1:{port}"
    try:
        await _answers(url, server)
        yield Reader(url, "token alices", home, environ, "token-of-root")
    finally:
        server.kill()
        await asyncio.to_thread(server.wait, PATIENCE)
        await _leave_nothing(alice)


async def _answers(url: str, server: WarmProcess) -> None:
    async with asyncio.timeout(PATIENCE), httpx.AsyncClient(trust_env=False) as browser:
        while server.poll() is None:
            try:
                if (await browser.get(f"{url}/api")).is_success:
                    return
            except httpx.TransportError:
                pass
            await asyncio.sleep(0.1)
    raise AssertionError("the notebook server ended at once; see server.log")


async def _leave_nothing(client: Client) -> None:
    """Delete a reader's jobs, schedules and files: the next one finds nothing."""
    for schedule in await client.schedules("alice"):
        await client.remove_schedule("alice", schedule["name"])
    for job in await client.jobs("alice"):
        await client.delete("alice", job["name"])
    async with FilesClient(client.url, client.token) as files:
        for folder in ("/alice", "/Output/alice"):
            for entry in [entry.path async for entry in files.iterate(folder)]:
                await files.delete(entry, recursive=True)
