"""Files run as jobs through a real Jupyter server and a real scheduler, with real kernels."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import nbformat
import pytest

from pai_labextension.images import LOCAL
from pai_labextension.models import RunPlan, SubmitLine
from pai_scheduler.client.rest import Client
from pai_scheduler.client.storage.client import FilesClient
from tests.labextension.conftest import MakeServer
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import WarmScheduler

TOKEN = "token-of-alice"


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningScheduler]:
    scheduler = WarmScheduler(tmp_path_factory.mktemp("scheduler"))
    yield scheduler
    scheduler.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a module beside the notebooks, below what the file browser shows."""
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "model.py").write_text("def double(number):\n    return 2 * number\n")
    return folder


@pytest.fixture
async def server(make_jupyter: MakeServer, running: RunningScheduler) -> httpx.AsyncClient:
    client: httpx.AsyncClient = await make_jupyter(running.url, TOKEN)
    return client


def write_notebook(file: Path, *sources: str, kernel: str = "python3") -> None:
    notebook = nbformat.v4.new_notebook()
    notebook.metadata["kernelspec"] = {"name": kernel, "display_name": kernel, "language": "python"}
    for source in sources:
        cell = nbformat.v4.new_code_cell(source)
        if not notebook.cells:
            cell.metadata["tags"] = ["parameters"]
        notebook.cells.append(cell)
    nbformat.write(notebook, file)


async def submitted(server: httpx.AsyncClient, path: str, **fields: Any) -> str:
    answer = await server.post("pai/run-file", json={"path": path, "memoryMB": 500, "cpus": 1, **fields})
    assert answer.status_code == 200
    lines = [json.loads(line) for line in answer.text.splitlines()]
    assert msgspec.convert(lines, list[SubmitLine]) == lines
    assert "job" in lines[-1], lines
    return str(lines[-1]["job"]["name"])


async def ended(client: Client, name: str) -> str:
    """Wait for the end of a job; return its state."""
    while True:
        status = (await client.job("alice", name))["jobStatus"]
        if status["state"] not in ("WAITING", "RUNNING"):
            return str(status["state"])
        await asyncio.sleep(0.1)


async def log(client: Client, name: str) -> str:
    return (await client.log("alice", name, "run", 0)).decode()


async def executed(running: RunningScheduler, path: str) -> Any:
    async with FilesClient(running.url, TOKEN) as files, files.read(path) as stream:
        text = b"".join([piece async for piece in stream])
    return nbformat.reads(text.decode(), as_version=4)


async def test_a_notebook_runs_with_its_parameters_and_what_is_beside_it_and_comes_back_with_its_outputs(
    server: httpx.AsyncClient, running: RunningScheduler, folder: Path
) -> None:
    # its own kernel would be a job; the image has one for the same language
    write_notebook(
        folder / "train.ipynb",
        "number = 1",
        "from model import double\nprint('the result is', double(number))",
        kernel="pai-python3-1-p100",
    )
    name = await submitted(server, "work/train.ipynb", parameters={"number": "21"})
    assert name.startswith("train_")
    async with Client(running.url, TOKEN) as client:
        state, text = await ended(client, name), await log(client, name)
        assert state == "SUCCEEDED", text
    # what cells print is in the log while they run
    assert "the result is 42" in text
    assert "[3/3] from model import double" in text
    assert "without encryption" not in text
    notebook = await executed(running, f"/alice/results/{name}/train.ipynb")
    assert [cell.metadata.get("tags") for cell in notebook.cells[:2]] == [
        ["parameters"],
        ["injected-parameters"],
    ]
    assert notebook.cells[2].outputs[0].text == "the result is 42\n"


async def test_a_notebook_that_fails_fails_its_job_and_keeps_the_outputs_up_to_the_error(
    server: httpx.AsyncClient, running: RunningScheduler, folder: Path
) -> None:
    write_notebook(folder / "fails.ipynb", "print('before')", "1 / 0", "print('never')")
    name = await submitted(server, "work/fails.ipynb", results="mine/$PAI_JOB_NAME", name="bad")
    assert name.startswith("bad_")
    async with Client(running.url, TOKEN) as client:
        assert await ended(client, name) == "FAILED"
        assert "ZeroDivisionError" in await log(client, name)
        assert (await client.job("alice", name))["jobStatus"]["appExitCode"] == 1
    notebook = await executed(running, f"/alice/mine/{name}/fails.ipynb")
    assert notebook.cells[0].outputs[0].text == "before\n"
    assert notebook.cells[1].outputs[0].ename == "ZeroDivisionError"
    assert notebook.cells[2].outputs == []


async def test_a_notebook_that_is_stopped_keeps_what_it_has(
    server: httpx.AsyncClient, running: RunningScheduler, folder: Path
) -> None:
    write_notebook(folder / "long.ipynb", "print('begun')", "import time\nprint('waits')\ntime.sleep(3600)")
    name = await submitted(server, "work/long.ipynb")
    async with Client(running.url, TOKEN) as client:
        async for piece in client.follow_log("alice", name, "run", 0):
            if b"waits\n" in piece:
                break
        await client.stop("alice", name)
        assert await ended(client, name) == "STOPPED"
    notebook = await executed(running, f"/alice/results/{name}/long.ipynb")
    assert notebook.cells[0].outputs[0].text == "begun\n"


async def test_scripts_run_with_their_arguments(
    server: httpx.AsyncClient, running: RunningScheduler, folder: Path
) -> None:
    (folder / "script.py").write_text(
        "import sys, model\nprint(sys.argv[1:], model.double(2))\nsys.exit(7)\n"
    )
    (folder / "script.sh").write_text('echo "$# of them: $1"\nls\n')
    python = await submitted(server, "work/script.py", arguments="--a 'b $(c)'")
    shell = await submitted(server, "work/script.sh", arguments="'1 2' 3", include=["model.py"])
    async with Client(running.url, TOKEN) as client:
        assert await ended(client, python) == "FAILED"
        assert (await client.job("alice", python))["jobStatus"]["appExitCode"] == 7
        assert "['--a', 'b $(c)'] 4" in await log(client, python)
        assert await ended(client, shell) == "SUCCEEDED"
        assert "2 of them: 1 2\nmodel.py\nscript.sh\n" in await log(client, shell)


async def test_the_plan_says_what_there_is_to_choose_and_what_would_come_of_it(
    server: httpx.AsyncClient, folder: Path
) -> None:
    write_notebook(folder / "train.ipynb", "rate = 0.1")
    answer = await server.post("pai/run-plan", json={"path": "work/train.ipynb"})
    plan = msgspec.convert(answer.json(), RunPlan)
    assert (plan["kind"], plan["name"], plan["parameters"]) == ("notebook", "train", {"rate": "0.1"})
    assert [file["name"] for file in plan["files"]] == ["model.py", "train.ipynb"]
    assert (plan["imageNeeded"], plan["gpuTypes"]) == (False, {"P100": 4, "TITANX": 4})
    assert plan["virtualClusters"][0] == plan["virtualCluster"] == "default"
    assert (plan["image"], plan["results"]) == (plan["images"][0] if plan["images"] else LOCAL, RESULTS)
    assert (plan["fits"], plan["sentences"]) == ("now", ["It starts at once."])
    too_much = {"path": "work/train.ipynb", "gpus": 9, "gpuType": "P100"}
    refused = (await server.post("pai/run-plan", json=too_much)).json()
    assert refused["fits"] == "never"
    assert "P100" in refused["sentences"][0]


RESULTS = "results/$PAI_JOB_NAME"


async def test_what_cannot_run_is_refused_in_the_readers_language(
    server: httpx.AsyncClient, folder: Path
) -> None:
    (folder / "notes.md").write_text("no code")
    chinese = {"Accept-Language": "zh-CN"}
    for body, sentence in (
        ({"path": "work/notes.md"}, "不能作为作业运行"),
        ({"path": "../outside.py"}, "没有文件"),
    ):
        answer = await server.post("pai/run-plan", json=body, headers=chinese)
        assert answer.status_code == 422
        assert sentence in answer.json()["message"]
    for body in ({}, {"path": "a", "gpus": "x"}):
        assert (await server.post("pai/run-plan", json=body)).status_code == 400
    del server.headers["Authorization"]
    server.cookies.clear()
    for route in ("run-plan", "run-file"):
        assert (await server.post(f"pai/{route}", json={"path": "work/model.py"})).status_code == 403


async def test_a_scheduled_run_has_the_files_as_they_were(
    server: httpx.AsyncClient, running: RunningScheduler, folder: Path
) -> None:
    write_notebook(
        folder / "night.ipynb", "number = 1", "from model import double\nprint('is', double(number))"
    )
    schedule = {"cron": "0 2 1 1 *", "timeZone": "Asia/Shanghai", "overlap": "allow"}
    name = await submitted(server, "work/night.ipynb", parameters={"number": "21"}, schedule=schedule)
    assert name == "night"
    (folder / "model.py").write_text("raise RuntimeError('changed since')\n")
    async with Client(running.url, TOKEN) as client:
        made = await client.schedule("alice", "night")
        assert (made["cron"], made["timeZone"], made["overlap"]) == ("0 2 1 1 *", "Asia/Shanghai", "allow")
        assert [job for job in await client.jobs("alice") if job["name"].startswith("night")] == []
        jobs = [await client.run_schedule("alice", "night")]
        assert await ended(client, jobs[0]) == "SUCCEEDED"
        assert "is 42" in await log(client, jobs[0])
        # the name is taken now, and what was uploaded for it stays
        answer = await server.post("pai/run-file", json={"path": "work/night.ipynb", "schedule": schedule})
        error = json.loads(answer.text.splitlines()[-1])["error"]
        assert "There is a schedule named night already." in error["message"]
        await client.remove_schedule("alice", "night")
