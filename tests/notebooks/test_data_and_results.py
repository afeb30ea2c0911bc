"""The second tutorial runs from its first cell to its last: data up, a job with its code, results down."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from tests.testbed.scheduler import RunningScheduler, hello_job
from tests.testbed.warm import WarmScheduler

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02-data-and-results.ipynb"


# (with processes: e2e/test_couplet.py goes from data to downloaded results)
@pytest.fixture(params=[pytest.param("process", marks=pytest.mark.long), "docker"])
def engine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "docker":
        monkeypatch.setenv("DOCKER_HOST", request.getfixturevalue("docker_host"))
    return str(request.param)


@pytest.fixture
def scheduler(engine: str, tmp_path: Path) -> Iterator[RunningScheduler]:
    running = WarmScheduler(tmp_path, "--engine", engine)
    yield running
    running.close()


@pytest.fixture
def image(engine: str, request: pytest.FixtureRequest) -> str:
    """Return the image of notebook servers; empty where there are no images."""
    return str(request.getfixturevalue("notebook_image")) if engine == "docker" else ""


@pytest.fixture
async def server_job(image: str, scheduler: RunningScheduler) -> dict[str, str]:
    """Return the variables that say which job this notebook's server is: the tutorial takes its image."""
    if not image:
        return {}
    async with Client(scheduler.url, "token-of-alice") as client:
        await client.submit({**hello_job("server"), "image": image})
    return {"PAI_JOB_NAME": "server", "PAI_USER_NAME": "alice"}


def test_it_is_stored_without_outputs() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


async def test_its_job_fetches_the_data_learns_and_leaves_results_that_are_downloaded(
    scheduler: RunningScheduler,
    server_job: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PAI_API_URL", scheduler.url)
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    monkeypatch.setenv("PAI_LOCALE", "en")
    for name in ("PAI_JOB_NAME", "PAI_DEFAULT_FS_URI"):
        monkeypatch.delenv(name, raising=False)
    for name, value in server_job.items():
        monkeypatch.setenv(name, value)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    await NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).async_execute()

    summary = json.loads((folder / "results" / "summary.json").read_text())
    assert summary["epochs"] == 30
    assert summary["accuracy"] > 0.85
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output.get("text", "") for output in outputs)
    final = re.search(r"SUCCEEDED · final accuracy (\S+)", printed)
    assert final is not None, printed
    assert float(final[1]) == pytest.approx(summary["accuracy"], abs=1e-4)
    assert any("image/png" in output.get("data", {}) for output in outputs)

    async with FilesClient(scheduler.url, "token-of-alice") as files:
        assert [entry.path async for entry in files.walk("/alice")] == []
        results = [entry.name async for entry in files.walk("/Output/alice")]
        assert results == ["server"] * bool(server_job)
    async with Client(scheduler.url, "token-of-alice") as client:
        assert [job["name"] for job in await client.jobs()] == ["server"] * bool(server_job)
