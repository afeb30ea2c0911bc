"""A scheduler with simulated GPUs, and notebook servers before it."""

from __future__ import annotations

import asyncio
import tempfile
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from jupyter_server.serverapp import ServerApp
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets
from traitlets.config import Config

from pai_labextension.kernels.kernel_job import KernelJob
from pai_labextension.kernels.manager import JobKernelsManager
from pai_labextension.tasks.connections import TaskConnections
from pai_scheduler.client.rest import Client
from tests.testbed.notebook import PATIENCE, Notebook, connected
from tests.testbed.warm import WarmScheduler

GPU_LAB = """
nodes:
  - {name: node-a, cpus: 32, memoryMB: 100000, storageGB: 100, gpus: {TITANX: 2, P100: 1}}
"""
TOKEN = "browser"
P100 = "pai-python3-1-p100"


@pytest.fixture(scope="session")
def gpu_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmScheduler]:
    """Run a scheduler with its SSH gateway, and one P100."""
    running = WarmScheduler(tmp_path_factory.mktemp("gpu-lab"), cluster=GPU_LAB, ssh=True)
    yield running
    running.close()


@pytest.fixture
async def alice(gpu_lab: WarmScheduler) -> AsyncIterator[Client]:
    """Talk to the scheduler as the person whose notebooks these are; in the end all of hers is stopped."""
    async with Client(gpu_lab.url, "token-of-alice") as client:
        yield client
        await stop_all(client, "alice")


class NotebookServer:
    """A Jupyter server of alice's, and a browser that is logged in to it."""

    def __init__(self, folder: Path, api_url: str, **kernels: Any) -> None:
        config = Config(
            {
                "ServerApp": {"jpserver_extensions": {"pai_labextension": True}},
                "IdentityProvider": {"token": TOKEN},
                "PAIExtension": {"api_url": api_url, "token": "token-of-alice"},
                "PAIKernels": {"cpus": 1, "memory_mb": 1024, **kernels},
            }
        )
        self.app = ServerApp(config=config, root_dir=str(folder), allow_root=True, open_browser=False)
        self.app.init_signal = lambda: None  # type: ignore[method-assign]
        self.app.initialize(argv=[], find_extensions=False, new_httpserver=False)
        self._server = HTTPServer(self.app.web_app)
        sockets = bind_sockets(0, "127.0.0.1")
        self._server.add_sockets(sockets)
        self.url = f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
        self.browser = httpx.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"token {TOKEN}"},
            timeout=PATIENCE,
            trust_env=False,
        )
        self.closed = False

    @property
    def kernels(self) -> JobKernelsManager:
        manager = self.app.kernel_manager
        assert isinstance(manager, JobKernelsManager)
        return manager

    async def close(self) -> None:
        """End it as SIGTERM does."""
        if not self.closed:
            self.closed = True
            await self.browser.aclose()
            self._server.stop()
            await self._server.close_all_connections()
            await self.app._cleanup()

    async def offers(self, wanted: Callable[[dict[str, str]], object]) -> dict[str, str]:
        """Wait for the list of kernels, names with what people read, until it is as wanted."""
        async with asyncio.timeout(PATIENCE):
            while True:
                listed = (await self.browser.get("/api/kernelspecs")).json()["kernelspecs"]
                titles = {name: found["spec"]["display_name"] for name, found in listed.items()}
                if wanted(titles):
                    return titles
                await asyncio.sleep(0.05)

    async def start(self, kernel: str = P100, path: str = "work.ipynb") -> str:
        """Open a notebook with a kernel; return the kernel's id."""
        await self.offers(lambda titles: kernel in titles)
        answer = await self.try_to_start(kernel, path)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["kernel"]["id"])

    async def start_waiting(self) -> str:
        """Open a notebook whose kernel is the first in the queue; return the kernel's id."""
        kernel = await self.start()
        await self.until(kernel, lambda state: state.get("place") == 1)
        return kernel

    async def try_to_start(self, kernel: str, path: str = "work.ipynb") -> httpx.Response:
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": kernel}}
        return await self.browser.post("/api/sessions", json=body)

    async def sessions(self) -> list[tuple[str, str]]:
        """List the open notebooks, each with its kernel's id."""
        sessions = (await self.browser.get("/api/sessions")).json()
        return [(session["path"], session["kernel"]["id"]) for session in sessions]

    async def state(self, kernel: str) -> dict[str, Any]:
        """Return what the person is told of a kernel."""
        states = (await self.browser.get("/pai/kernels")).json()["kernels"]
        return next((state for state in states if state["id"] == kernel), {})

    async def until(self, kernel: str, wanted: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """Wait until this is so."""
        state: dict[str, Any] = {}
        try:
            async with asyncio.timeout(PATIENCE):
                while True:
                    state = await self.state(kernel)
                    if wanted(state):
                        return state
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise AssertionError(f"never so: {state}") from None

    @asynccontextmanager
    async def notebook(self, kernel: str) -> AsyncIterator[Notebook]:
        """Connect a notebook with its kernel."""
        async with connected(self.url, kernel, f"token {TOKEN}") as notebook:
            yield notebook


@pytest.fixture
async def unfollowed_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[KernelJob]:
    """Make a kernel's job as a notebook server knows it that has not begun to follow it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    connections = TaskConnections("http://127.0.0.1:9", "token")
    kernel = str(uuid.uuid4())
    job = KernelJob(connections, "alice", "kernel_1", kernel_id=kernel, python="python3", memory_mb=512)
    yield job
    await job.leave()
    await connections.close()


StartServer = Callable[..., NotebookServer]


@pytest.fixture
async def start_server(
    tmp_path: Path, gpu_lab: WarmScheduler, monkeypatch: pytest.MonkeyPatch, alice: Client
) -> AsyncIterator[StartServer]:
    """Start notebook servers of alice's in one folder."""
    del alice  # she stops what they leave, when they are closed
    for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    monkeypatch.setenv("JUPYTER_NO_CONFIG", "1")
    for name in ("PAI_JOB_NAME", "PAI_LOCALE", "LC_ALL", "LANG"):
        monkeypatch.delenv(name, raising=False)
    servers: list[NotebookServer] = []
    folder = tmp_path / "home"
    folder.mkdir()

    def start(**kernels: Any) -> NotebookServer:
        servers.append(NotebookServer(folder, gpu_lab.url, **kernels))
        return servers[-1]

    yield start
    for server in servers:
        await server.close()


async def running(client: Client) -> list[str]:
    """List alice's jobs that have not ended."""
    return [job["name"] for job in await client.jobs("alice") if job["subState"] != "ENDED"]


async def stop_all(client: Client, user: str) -> None:
    """Stop a user's jobs, and wait until nothing of them is held."""
    async with asyncio.timeout(PATIENCE):
        while left := [job for job in await client.jobs(user) if job["subState"] != "ENDED"]:
            for job in left:
                await client.stop(user, job["name"])
            await asyncio.sleep(0.1)


@pytest.fixture
async def holder(gpu_lab: WarmScheduler) -> AsyncIterator[Client]:
    """Have bob hold the only P100, in the job `holder`; gives bob's client."""
    async with Client(gpu_lab.url, "token-of-bob") as bob:
        role = {"name": "main", "command": "sleep 3600", "gpuNumber": 1}
        job = {
            "jobName": f"holder-{uuid.uuid4().hex[:8]}",
            "image": "any",
            "gpuType": "P100",
            "taskRoles": [role],
        }
        await bob.submit(job)
        async for event in bob.events("bob", str(job["jobName"])):
            if event["type"] == "running":
                break
        yield bob
        await stop_all(bob, "bob")
