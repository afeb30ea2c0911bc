"""The third tutorial runs from its first cell to its last: commands, a port, files, from task to task."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pai_scheduler.client.rest import Client
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "03-into-the-container.ipynb"


# (processes are entered in each of these ways in scheduler/ssh/runtime/process)
@pytest.fixture(params=[pytest.param("process", marks=pytest.mark.long), "docker"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "docker":
        monkeypatch.setenv("DOCKER_HOST", request.getfixturevalue("docker_host"))
        request.getfixturevalue("runtime_image")
    return str(request.param)


@pytest.fixture
def scheduler(engine: str, tmp_path: Path) -> Iterator[RunningScheduler]:
    running = WarmScheduler(tmp_path, "--engine", engine, ssh=True)
    yield running
    running.close()


@pytest.fixture
async def server_job(
    engine: str, scheduler: RunningScheduler, request: pytest.FixtureRequest
) -> dict[str, str]:
    """Return the variables that say which job this notebook's server is: the tutorial takes its image."""
    if engine == "process":
        return {}
    async with Client(scheduler.url, "token-of-alice") as client:
        await client.submit({**hello_job("server"), "image": request.getfixturevalue("debian_image")})
    return {"PAI_JOB_NAME": "server", "PAI_USER_NAME": "alice"}


def test_it_is_stored_without_outputs() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


async def test_its_tasks_are_entered_in_every_way_that_it_shows(
    engine: str,
    scheduler: RunningScheduler,
    server_job: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAI_API_URL", scheduler.url)
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    monkeypatch.setenv("PAI_LOCALE", "en")
    # as notebook servers have it
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    monkeypatch.delenv("PAI_JOB_NAME", raising=False)
    for name, value in server_job.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    await NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).async_execute()

    printed = {
        cell.source: "".join(output.get("text", "") for output in cell.outputs)
        for cell in notebook.cells
        if cell.cell_type == "code"
    }

    def after(words: str) -> str:
        """Return what the only cell with these words printed."""
        (text,) = (text for source, text in printed.items() if words in source)
        return text

    assert after("ls -l").split()[-1] == "index.html"
    ports = dict(line.split() for line in after("--all").splitlines())
    assert ports.keys() == {"worker-0", "worker-1"}
    assert ports["worker-0"].isdecimal()
    assert after("wc -c").strip() == str(len("<h1>Hello from task 0</h1>\n"))
    assert "<h1>Hello from task 0</h1>" in after("import httpx")
    assert "<h1>This page was changed while the job runs</h1>" in after("index.html\nprint(httpx")
    assert "<h1>Hello from task 1</h1>" in after("from-worker-1.html")
    assert after("ssh worker-1").strip() == (
        "worker-1" if engine == "docker" else "no containers here: nothing to go to"
    )
    assert "alice opened a command in worker-1 from 127.0.0.1" in after('"access"')
    assert "alice opened a way to localhost:" in after('"access"')
    assert "alice opened files (SFTP) in worker-0" in after('"access"')

    async with Client(scheduler.url, "token-of-alice") as client:
        assert [job["name"] for job in await client.jobs()] == ["server"] * bool(server_job)
