"""The launcher: what it tells each library, and jobs that run by it, of processes.

Real PyTorch and Open MPI run by it in `tests/e2e/test_distributed.py`.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.distributed import launch
from tests.testbed.jobs import run_to_end
from tests.testbed.scheduler import RunningScheduler
from tests.testbed.warm import WarmScheduler

#: What `worker-1` of a job with a chief, two workers and two GPUs in each of them has.
ENVIRONMENT = {
    "PAI_CURRENT_TASK_ROLE_NAME": "worker",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
    "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "2",
    "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "2",
    "PAI_JOB_TASK_ROLE_LIST": "chief,worker",
    "PAI_TASK_ROLE_TASK_COUNT_chief": "1",
    "PAI_TASK_ROLE_TASK_COUNT_worker": "2",
    "PAI_RESOURCE_worker": "2,4,8192,64",
    "PAI_HOST_IP_chief_0": "10.0.0.1",
    "PAI_HOST_IP_worker_0": "10.0.0.2",
    "PAI_HOST_IP_worker_1": "10.0.0.3",
    "PAI_PORT_LIST_chief_0_http": "20000",
    "PAI_PORT_LIST_chief_0_ssh": "20001",
    "PAI_PORT_LIST_worker_0_http": "20002",
    "PAI_PORT_LIST_worker_0_ssh": "20003",
    "PAI_PORT_LIST_worker_0_ddp": "20004,20005",
    "PAI_PORT_LIST_worker_1_ddp": "20006,20007",
    "PAI_PORT_LIST_worker_1_http": "20008",
}


def test_torch_gets_the_place_of_the_first_task_and_its_own_rank() -> None:
    assert launch.torch_environment(ENVIRONMENT) == {
        "MASTER_ADDR": "10.0.0.2",
        "MASTER_PORT": "20004",
        "WORLD_SIZE": "2",
        "RANK": "1",
        "LOCAL_RANK": "0",
        "LOCAL_WORLD_SIZE": "1",
    }
    second = launch.torch_environment(ENVIRONMENT, "http", local_rank=1, per_task=2)
    assert (second["MASTER_PORT"], second["WORLD_SIZE"], second["RANK"]) == ("20002", "4", "3")


def test_torchrun_starts_a_process_for_each_gpu() -> None:
    command = launch.torch_command(ENVIRONMENT, ["train.py", "--epochs", "3"])
    assert command[1:] == [
        "-m",
        "torch.distributed.run",
        "--nnodes=2",
        "--node_rank=1",
        "--nproc_per_node=2",
        "--master_addr=10.0.0.2",
        "--master_port=20004",
        "train.py",
        "--epochs",
        "3",
    ]
    assert "--nproc_per_node=1" in launch.torch_command(ENVIRONMENT, ["train.py"], None, 1)


def test_tensorflow_is_told_of_every_role_and_of_itself() -> None:
    assert launch.tf_config(ENVIRONMENT) == {
        "cluster": {"chief": ["10.0.0.1:20000"], "worker": ["10.0.0.2:20004", "10.0.0.3:20006"]},
        "task": {"type": "worker", "index": 1},
    }


def test_the_hosts_of_a_role_are_the_names_of_its_tasks() -> None:
    assert launch.hostfile(ENVIRONMENT) == "worker-0 slots=2\nworker-1 slots=2\n"
    assert launch.hostfile(ENVIRONMENT, wanted=8) == "worker-0 slots=8\nworker-1 slots=8\n"


def test_a_role_with_a_dot_in_its_name_is_found_where_a_shell_dropped_its_variables() -> None:
    environment = {
        name.replace("worker", "my_worker"): value.replace("worker", "my.worker")
        for name, value in ENVIRONMENT.items()
    }
    assert launch.torch_environment(environment)["MASTER_PORT"] == "20004"
    assert launch.hostfile(environment) == "my.worker-0 slots=2\nmy.worker-1 slots=2\n"


@pytest.mark.parametrize(
    ("ask", "words"),
    [
        (lambda: launch.torch_environment({}), "for the tasks of a job"),
        (lambda: launch.torch_environment(ENVIRONMENT, "grpc"), "no port with the label grpc: add it"),
        (lambda: launch.address(ENVIRONMENT, "worker", 2, "http"), "no task 2 in a role worker"),
        (lambda: launch.hostfile(ENVIRONMENT, "ps"), "no role ps"),
    ],
)
def test_what_the_job_lacks_is_said_with_what_to_do(ask: Any, words: str) -> None:
    with pytest.raises(launch.LaunchError, match=words):
        ask()


def test_outside_a_job_it_ends_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PAI_CURRENT_TASK_ROLE_NAME", raising=False)
    assert launch.main(["torch", "--", "train.py"]) == 2
    assert "PAI_CURRENT_TASK_ROLE_NAME is not set" in capsys.readouterr().err


def test_a_copy_of_it_runs_without_anything_else(tmp_path: Path) -> None:
    assert launch.main(["--copy", str(tmp_path)]) == 0
    done = subprocess.run(
        [sys.executable, "-I", "-S", tmp_path / "launch.py", "mpi", "--", "true"],
        capture_output=True,
        text=True,
        env={},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("launch: PAI_CURRENT_TASK_ROLE_NAME is not set")


@pytest.fixture
def scheduler(tmp_path: Path) -> Iterator[WarmScheduler]:
    folder = tmp_path / "scheduler"
    folder.mkdir()
    running = WarmScheduler(folder)
    yield running
    running.close()


def make_role(name: str, count: int, command: str) -> dict[str, Any]:
    return {"name": name, "taskNumber": count, "command": command, "memoryMB": 256}


def launcher(folder: Path) -> str:
    return f"{sys.executable} {shutil.copy(launch.__file__, folder)}"


async def test_every_task_of_a_real_job_knows_the_same_cluster(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    (tmp_path / "told.py").write_text("import os\nprint(os.environ['TF_CONFIG'])\n")
    command = f"{launcher(tmp_path)} tensorflow -- {tmp_path / 'told.py'}"
    roles = [make_role("chief", 1, command), make_role("worker", 2, command)]
    state, logs = await run_to_end(scheduler, {"jobName": "told", "image": "any", "taskRoles": roles})
    assert state == "SUCCEEDED", logs
    told = {name: json.loads(log) for name, log in logs.items()}
    assert [told[name]["task"]["index"] for name in sorted(told)] == [0, 0, 1]
    (cluster,) = {json.dumps(one["cluster"]) for one in told.values()}
    assert {role: len(tasks) for role, tasks in json.loads(cluster).items()} == {"chief": 1, "worker": 2}


async def test_a_torch_program_with_one_process_in_each_task_is_started_as_it_is(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    show = "import os\nprint([os.environ[name] for name in ('RANK', 'WORLD_SIZE', 'MASTER_PORT')])\n"
    (tmp_path / "train.py").write_text(show)
    command = f"{launcher(tmp_path)} torch -- {tmp_path / 'train.py'}"
    role = {**make_role("worker", 2, command), "portList": [{"label": "ddp", "beginAt": 0, "portNumber": 1}]}
    state, logs = await run_to_end(scheduler, {"jobName": "torch", "image": "any", "taskRoles": [role]})
    assert state == "SUCCEEDED", logs
    first, second = (json.loads(logs[f"worker-{index}"].replace("'", '"')) for index in range(2))
    assert (first[:2], second[:2]) == (["0", "2"], ["1", "2"])
    assert first[2] == second[2]


@pytest.mark.parametrize(("code", "state"), [(0, "SUCCEEDED"), (3, "FAILED")])
async def test_mpirun_runs_in_the_first_task_and_the_others_end_as_it_does(
    scheduler: RunningScheduler, tmp_path: Path, code: int, state: str
) -> None:
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(f'#!/bin/sh\necho "$@"\ncat "$3"\nexit {code}\n')
    mpirun.chmod(0o755)
    command = f"PATH={tmp_path}:$PATH {launcher(tmp_path)} mpi --processes 2 -- train.py"
    config = {
        "jobName": f"mpi-{code}",
        "image": "any",
        "taskRoles": [{**make_role("worker", 2, command), "minFailedTaskCount": 2}],
    }
    ended, logs = await run_to_end(scheduler, config)
    assert ended == state, logs
    assert "-np 4" in logs["worker-0"]
    assert f"{sys.executable} train.py" in logs["worker-0"]
    assert "worker-0 slots=2\nworker-1 slots=2\n" in logs["worker-0"]
    assert logs["worker-1"] == ""
