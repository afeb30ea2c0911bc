"""The tutorial about code runs from its first cell to its last: cells and functions as jobs, and a sweep."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from tests.testbed.warm import WarmScheduler

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "05-from-code.ipynb"


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[WarmScheduler]:
    running = WarmScheduler(tmp_path)
    yield running
    running.close()


def test_it_is_stored_without_outputs() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


async def test_its_values_come_back_and_its_jobs_leave_no_files(
    scheduler: WarmScheduler, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_API_URL", scheduler.url)
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    monkeypatch.setenv("PAI_LOCALE", "en")
    monkeypatch.delenv("PAI_JOB_NAME", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    await NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).async_execute()

    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    # (what is only displayed is a progress bar)
    results = [output for output in outputs if output["output_type"] == "execute_result"]
    shown = [output["data"]["text/plain"] for output in results]
    assert float(shown[0]) == pytest.approx(3.14, abs=0.05)
    assert shown[1].startswith("([0, 1], ['127.")
    assert float(shown[2]) < 1e-5
    assert any("4 of 4 done, 0 failed" in text for text in shown)
    printed = "".join(output.get("text", "") for output in outputs)
    assert "worker-1 | I am 1 of 2\n" in printed
    assert "x -= learning_rate * 2 * x" in printed, "the line of the function that failed"
    assert any("image/png" in output.get("data", {}) for output in outputs)

    async with Client(scheduler.url, "token-of-alice") as client:
        jobs = await client.jobs()
    ended = Counter((job["name"].rpartition("_")[0], job["state"]) for job in jobs)
    assert ended == {
        ("pi", "SUCCEEDED"): 1,
        ("gang", "SUCCEEDED"): 1,
        ("train", "SUCCEEDED"): 2,
        ("train", "FAILED"): 1,
    }
    async with FilesClient(scheduler.url, "token-of-alice") as files:
        assert [entry.path async for entry in files.walk("/alice/.pai/calls")] == []
