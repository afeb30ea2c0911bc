"""The launcher with real PyTorch and real Open MPI: a job of two containers, and the tutorial about it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from pai_scheduler.client.rest import Client
from pai_scheduler.distributed import launch
from tests.e2e.test_jobs_that_ssh import ALLREDUCE, outcome
from tests.testbed.fixtures import provide
from tests.testbed.images import training_image
from tests.testbed.scheduler import RunningScheduler

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "04-distributed.ipynb"


@pytest.fixture
def training(docker_host: str) -> str:
    return provide(training_image, docker_host)


@pytest.fixture
def scheduler(
    docker_host: str,
    runtime_image: str,
    own_scheduler: Callable[..., RunningScheduler],
    monkeypatch: pytest.MonkeyPatch,
) -> RunningScheduler:
    del runtime_image  # its name is the one of this version
    monkeypatch.setenv("DOCKER_HOST", docker_host)
    return own_scheduler("--engine", "docker")


@pytest.fixture
async def alice(scheduler: RunningScheduler) -> AsyncIterator[Client]:
    async with Client(scheduler.url, "token-of-alice") as client:
        yield client


def make_job(name: str, image: str, command: str, **files: str) -> dict[str, Any]:
    """Make a job of two workers that find these files beside the launcher."""
    files["launch.py"] = Path(launch.__file__).read_text("utf-8")
    written = "".join(f"cat > /pai/{file} <<'END'\n{text}\nEND\n" for file, text in files.items())
    role = {"name": "worker", "taskNumber": 2, "memoryMB": 2048, "command": f"{written}cd /pai\n{command}"}
    return {"jobName": name, "image": image, "taskRoles": [role]}


async def test_mpirun_reaches_every_task_and_all_end_when_it_does(alice: Client, training: str) -> None:
    # (mpirun comes to a task that has its program already)
    command = (
        'if [ "$PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX" = 0 ]; then\n'
        "until ssh worker-1 test -e /pai/launch.py; do sleep 0.1; done\nfi\n"
        "python3 launch.py mpi -- allreduce.py"
    )
    printed = await outcome(alice, make_job("mpi", training, command, **{"allreduce.py": ALLREDUCE}))
    assert sorted(printed[0].splitlines()) == ["1 of 3 on worker-0 of mpi", "2 of 3 on worker-1 of mpi"]
    assert printed[1] == ""


async def test_the_tutorial_trains_in_two_tasks_and_draws_the_loss(
    scheduler: RunningScheduler, training: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAI_API_URL", scheduler.url)
    monkeypatch.setenv("PAI_TOKEN", "token-of-alice")
    monkeypatch.setenv("PAI_LOCALE", "en")
    monkeypatch.setenv("TRAINING_IMAGE", training)
    monkeypatch.delenv("PAI_JOB_NAME", raising=False)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    folder = tmp_path / "notebooks"
    folder.mkdir()
    await NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    ).async_execute()
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    printed = "".join(output.get("text", "") for output in outputs)
    assert "SUCCEEDED" in printed
    assert "worker 1 of 2 ends with the same model" in printed
    assert any("image/png" in output.get("data", {}) for output in outputs)
    async with Client(scheduler.url, "token-of-alice") as client:
        assert await client.jobs() == []
