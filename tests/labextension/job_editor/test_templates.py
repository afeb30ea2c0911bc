"""The templates of the job editor: each is a valid job, and what needs no GPU library runs as it is."""

from __future__ import annotations

import copy
import json
import sys
from pathlib import Path
from typing import Any

import distributed
import pytest

from pai_labextension.job_editor.editor_info import TEMPLATES, job_templates, read_template
from pai_scheduler.client.rest import Client
from pai_scheduler.job.validation import validate
from tests.testbed.jobs import run_to_end
from tests.testbed.scheduler import RunningScheduler, StartScheduler

NAMES = [name for name, _, _ in TEMPLATES]
#: Writes what it was started with, in place of a program that the image would bring.
STAND_IN = """#!/bin/sh
echo "$0 $*"
"""


@pytest.fixture(scope="module")
def running(module_scheduler: StartScheduler) -> RunningScheduler:
    """Run one scheduler for these tests: each template's job has a name of its own."""
    return module_scheduler()


@pytest.mark.parametrize("name", NAMES)
def test_a_template_is_a_valid_job_of_its_own_name(name: str) -> None:
    config = read_template(name)
    assert validate(config) == []
    assert config["jobName"] == name


def test_every_template_has_a_title_and_a_sentence_in_each_language() -> None:
    english, chinese = list(job_templates("en")), list(job_templates("zh_CN"))
    for one, other in zip(english, chinese, strict=True):
        assert one["title"] != other["title"]
        assert one["description"] != other["description"]


def test_every_file_is_a_template_that_is_offered() -> None:
    import pai_labextension.job_editor as package

    files = (Path(package.__file__).parent / "templates").glob("*.json")
    assert sorted(file.stem for file in files) == sorted(NAMES)


def with_programs(config: dict[str, Any], folder: Path, *names: str, text: str = STAND_IN) -> dict[str, Any]:
    """Return a job whose tasks find stand-ins for these programs first."""
    for name in names:
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    config = copy.deepcopy(config)
    for role in config["taskRoles"]:
        role["command"] = f"PATH={folder}:$PATH\n{role['command']}"
    return config


async def test_one_gpu_prints_the_gpu_that_the_task_was_given(running: RunningScheduler) -> None:
    state, logs = await run_to_end(running, read_template("single-gpu"))
    assert state == "SUCCEEDED"
    assert "GPUs of this task: " in logs["main-0"]
    assert "none" not in logs["main-0"]


async def test_each_task_of_a_sweep_has_a_value_of_its_own(running: RunningScheduler) -> None:
    state, logs = await run_to_end(running, read_template("sweep"))
    assert state == "SUCCEEDED"
    rates = [logs[f"trial-{index}"].split("learning rate ")[1].strip() for index in range(4)]
    assert rates == ["0.1", "0.03", "0.01", "0.003"]


def with_train_py(config: dict[str, Any], text: str) -> dict[str, Any]:
    """Return a job whose train.py is another, as the library that it imports is only in the image."""
    config = copy.deepcopy(config)
    for role in config["taskRoles"]:
        begin, _, rest = role["command"].partition('<<"END"\n')
        role["command"] = f'{begin}<<"END"\n{text}\nEND\n{rest.partition(chr(10) + "END" + chr(10))[2]}'
    return config


async def test_both_workers_of_ddp_meet_at_the_same_place(running: RunningScheduler) -> None:
    shown = "import json, os\nprint(json.dumps(dict(os.environ)))"
    state, logs = await run_to_end(running, with_train_py(read_template("pytorch-ddp"), shown))
    assert state == "SUCCEEDED", logs
    told = [json.loads(logs[f"worker-{index}"]) for index in range(2)]
    assert [(one["RANK"], one["LOCAL_RANK"], one["WORLD_SIZE"]) for one in told] == [
        ("0", "0", "2"),
        ("1", "0", "2"),
    ]
    ((_, port),) = {(one["MASTER_ADDR"], one["MASTER_PORT"]) for one in told}
    assert port == told[0]["PAI_worker_0_master_PORT"]


async def test_horovod_is_started_on_every_worker(running: RunningScheduler, tmp_path: Path) -> None:
    stand_in = STAND_IN + 'while [ $# -gt 0 ]; do [ "$1" = --hostfile ] && cat "$2"; shift; done\n'
    config = with_programs(read_template("horovod"), tmp_path, "mpirun", text=stand_in)
    state, logs = await run_to_end(running, config)
    assert state == "SUCCEEDED", logs
    assert "-np 2" in logs["worker-0"]
    assert "python3 -c" in logs["worker-0"]
    assert logs["worker-0"].endswith("worker-0 slots=1\nworker-1 slots=1\n")


async def test_a_notebook_computes_on_a_dask_cluster(
    running: RunningScheduler,
) -> None:
    config = read_template("dask")
    for role in config["taskRoles"]:
        # (Dask of this Python, in place of the image's; one core is enough)
        role["command"] = f"PATH={Path(sys.executable).parent}:$PATH\n{role['command']}"
        role["cpuNumber"], role["memoryMB"] = 1, 512
    async with Client(running.url, "token-of-alice") as alice:
        await alice.submit(config)
        async for event in alice.events("alice", "dask"):
            if event["type"] == "running":
                break
        task = (await alice.job("alice", "dask"))["taskRoles"]["scheduler"]["taskStatuses"][0]
        address = f"tcp://{task['containerIp']}:{task['containerPorts']['dask']}"
        async with distributed.Client(address, asynchronous=True) as cluster:
            await cluster.wait_for_workers(2)
            squares = await cluster.gather(cluster.map(_squared, range(10)))
        await alice.stop("alice", "dask")
        async for event in alice.events("alice", "dask"):
            if event["type"] == "ended":
                break
    assert squares == [number * number for number in range(10)]


def _squared(number: int) -> int:
    return number * number


async def test_every_task_of_the_parameter_server_job_knows_the_cluster(
    running: RunningScheduler,
) -> None:
    shown = 'import os\nprint(os.environ["TF_CONFIG"])'
    state, logs = await run_to_end(running, with_train_py(read_template("tensorflow-ps-worker"), shown))
    assert state == "SUCCEEDED", logs
    told = json.loads(logs["chief-0"])
    assert {role: len(tasks) for role, tasks in told["cluster"].items()} == {"chief": 1, "worker": 2, "ps": 1}
    assert told["task"] == {"type": "chief", "index": 0}
