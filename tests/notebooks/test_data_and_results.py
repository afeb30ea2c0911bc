"""The second tutorial runs from its first cell to its last: data up, a job with its code, results down."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pai_scheduler.client import Client
from pai_scheduler.webhdfs.client import FilesClient
from tests.testbed.scheduler import RunningScheduler

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "02-data-and-results.ipynb"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[RunningScheduler]:
    running = RunningScheduler(tmp_path)
    yield running
    running.close()


def test_it_is_stored_without_outputs() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


async def test_its_job_fetches_the_data_learns_and_leaves_results_that_are_downloaded(
    scheduler: RunningScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_API_URL", scheduler.url)
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    monkeypatch.setenv("PAI_LOCALE", "en")
    for name in ("PAI_JOB_NAME", "PAI_DEFAULT_FS_URI"):
        monkeypatch.delenv(name, raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    await NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
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
        assert [entry.path async for entry in files.walk("/Output/alice")] == []
    async with Client(scheduler.url, "token-of-alice") as client:
        assert await client.jobs() == []
