"""The first tutorial runs from its first cell to its last, with a real scheduler on the process engine."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from pai_scheduler.client.rest import Client
from tests.testbed.warm import WarmScheduler

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "01-hello-world.ipynb"


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    running = WarmScheduler(tmp_path)
    try:
        async with Client(running.url, "token-of-alice") as client:
            yield client
    finally:
        running.close()


def test_it_is_stored_without_outputs() -> None:
    for cell in nbformat.read(NOTEBOOK, as_version=4).cells:
        assert not cell.get("outputs")
        assert cell.get("execution_count") is None


@pytest.mark.daemon
async def test_its_jobs_really_run_and_the_network_learns(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_API_URL", client.url)
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    monkeypatch.setenv("PAI_LOCALE", "en")
    monkeypatch.delenv("PAI_JOB_NAME", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    await NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).async_execute()

    jobs = {job["name"].rpartition("_")[0]: job for job in await client.jobs()}
    assert {stem: job["state"] for stem, job in jobs.items()} == {
        "helloworld": "SUCCEEDED",
        "lenet": "SUCCEEDED",
    }
    hello = await client.log("alice", jobs["helloworld"]["name"], "task_1", 0)
    assert hello.startswith(b"Hello, world! This is helloworld_")
    training = (await client.log("alice", jobs["lenet"]["name"], "train", 0)).decode()
    accuracy = re.search(r"final accuracy (\S+)", training)
    assert accuracy is not None, training
    assert float(accuracy[1]) > 0.9
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any(accuracy[0] in output.get("text", "") for output in outputs)
    assert any("image/png" in output.get("data", {}) for output in outputs)
