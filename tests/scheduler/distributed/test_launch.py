"""The launcher of distributed programs: what it makes of an environment, and a copy in real tasks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.client.rest import Client
from pai_scheduler.distributed import launch
from tests.testbed.scheduler import RunningScheduler

ENVIRONMENT = {
    "PAI_JOB_TASK_ROLE_LIST": "launcher,worker",
    "PAI_JOB_TASK_COUNT": "3",
    "PAI_TASK_ROLE_TASK_COUNT_launcher": "1",
    "PAI_TASK_ROLE_TASK_COUNT_worker": "2",
    "PAI_RESOURCE_launcher": "0,1,1024,64",
    "PAI_RESOURCE_worker": "2,4,8192,64",
    "PAI_MIN_SUCCEEDED_TASK_COUNT_launcher": "1",
    "PAI_CURRENT_TASK_ROLE_NAME": "worker",
    "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
    "PAI_HOST_IP_launcher_0": "172.18.0.2",
    "PAI_HOST_IP_worker_0": "172.18.0.3",
    "PAI_HOST_IP_worker_1": "172.18.0.4",
    "PAI_PORT_LIST_launcher_0_http": "20000",
    "PAI_PORT_LIST_worker_0_http": "20001,20002",
    "PAI_PORT_LIST_worker_1_http": "20003",
}


def test_the_processes_of_torch_meet_at_task_0_of_their_role() -> None:
    meeting = launch.torch_environment(ENVIRONMENT)
    assert (meeting["MASTER_ADDR"], meeting["MASTER_PORT"]) == ("172.18.0.3", "20001")
    assert (meeting["RANK"], meeting["WORLD_SIZE"]) == ("1", "2")


def test_torchrun_starts_a_process_for_each_gpu() -> None:
    line = launch.torch_command(ENVIRONMENT, ["train.py", "--lr", "1"], "http", "torchrun")
    assert "--nproc_per_node=2" in line
    assert line[-3:] == ["train.py", "--lr", "1"]


def test_a_port_label_that_the_role_lacks_is_named_with_what_to_add() -> None:
    with pytest.raises(launch.LaunchError, match=r"worker has no port with the label grpc.*portList"):
        launch.torch_environment(ENVIRONMENT, "grpc")


def test_mpi_runs_on_every_role_but_the_one_that_starts_it() -> None:
    assert launch.hostfile(ENVIRONMENT) == "worker-0 slots=2\nworker-1 slots=2\n"


def test_mpi_runs_on_this_machine_where_tasks_have_no_containers() -> None:
    assert launch.hostfile({**ENVIRONMENT, "PAI_PROCESS_ENGINE_TASK": "x"}) == "localhost slots=4\n"


def test_only_task_0_of_the_first_role_starts_mpirun() -> None:
    first = {"PAI_CURRENT_TASK_ROLE_NAME": "launcher", "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "0"}
    assert launch.starts_mpi({**ENVIRONMENT, **first})
    assert not launch.starts_mpi(ENVIRONMENT)


def test_an_mpi_job_whose_waiting_tasks_nobody_would_end_is_refused() -> None:
    with pytest.raises(launch.LaunchError, match='"minSucceededTaskCount": 1 in the role launcher'):
        launch.starts_mpi({**ENVIRONMENT, "PAI_MIN_SUCCEEDED_TASK_COUNT_launcher": ""})


def test_a_role_whose_name_no_shell_variable_can_have_is_found() -> None:
    names = {"PAI_CURRENT_TASK_ROLE_NAME": "w.x", "PAI_HOST_IP_w_x_0": "172.18.0.9"}
    names |= {"PAI_PORT_LIST_w_x_0_http": "1", "PAI_TASK_ROLE_TASK_COUNT_w_x": "2"}
    assert launch.torch_environment({**ENVIRONMENT, **names})["MASTER_ADDR"] == "172.18.0.9"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["tensorflow", "--", "no-such-program"], "no-such-program cannot be started"),
        (["torch"], "name the program to start after --"),
    ],
)
def test_a_missing_program_is_said(arguments: list[str], said: str) -> None:
    ended = subprocess.run(
        [sys.executable, "-I", launch.__file__, *arguments],
        env={**ENVIRONMENT, "PATH": os.environ["PATH"]}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert said in ended.stderr


def test_outside_a_task_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PAI_JOB_TASK_ROLE_LIST", raising=False)
    assert launch.main(["mpi", "--", "true"]) == 2
    assert "Run this in a task of a job" in capsys.readouterr().err


async def run(scheduler: RunningScheduler, config: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """Run a job to its end; give its state, and what each task has written."""
    async with Client(scheduler.url, "token-of-alice") as alice:
        await alice.submit(config)
        async for event in alice.events("alice", config["jobName"]):
            if event["type"] == "ended":
                break
        state = (await alice.job("alice", config["jobName"]))["jobStatus"]["state"]
        logs = {
            f"{role['name']}-{index}": (
                await alice.log("alice", config["jobName"], role["name"], index)
            ).decode()
            for role in config["taskRoles"]
            for index in range(role["taskNumber"])
        }
    return state, logs


def job(name: str, *roles: tuple[str, int, int | None], command: str) -> dict[str, Any]:
    return {
        "jobName": name,
        "image": "python:3.12",
        "taskRoles": [
            {"name": role, "taskNumber": tasks, "minSucceededTaskCount": succeeded, "command": command}
            for role, tasks, succeeded in roles
        ],
    }


async def test_a_copy_of_the_file_tells_tensorflow_of_every_task(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    copy = shutil.copy(launch.__file__, tmp_path / "launch.py")
    command = f"{sys.executable} -I {copy} tensorflow -- sh -c 'echo \"$TF_CONFIG\"'"
    state, logs = await run(scheduler, job("tf", ("chief", 1, None), ("worker", 2, None), command=command))
    assert state == "SUCCEEDED"
    told = {task: json.loads(log) for task, log in logs.items()}
    assert {role: len(hosts) for role, hosts in told["chief-0"]["cluster"].items()} == {
        "chief": 1,
        "worker": 2,
    }
    assert told["worker-1"]["task"] == {"type": "worker", "index": 1}
    assert told["worker-1"]["cluster"] == told["chief-0"]["cluster"]


async def test_both_tasks_of_a_torch_job_meet_at_a_port_that_one_opens(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    # what torch's processes do first: process 0 listens, the other comes
    (tmp_path / "meet.py").write_text(
        "import os, socket\n"
        "place = os.environ['MASTER_ADDR'], int(os.environ['MASTER_PORT'])\n"
        "if os.environ['RANK'] == '0':\n"
        "    print('came:', socket.create_server(place).accept()[0].recv(9).decode())\n"
        "else:\n"
        "    while True:\n"
        "        try:\n"
        "            socket.create_connection(place).sendall(b'process 1')\n"
        "            break\n"
        "        except ConnectionRefusedError:\n"
        "            pass\n"
    )
    copy = shutil.copy(launch.__file__, tmp_path / "launch.py")
    command = f"PATH=/usr/bin:/bin {sys.executable} -I {copy} torch -- {tmp_path}/meet.py"
    state, logs = await run(scheduler, job("meet", ("worker", 2, None), command=command))
    assert state == "SUCCEEDED"
    assert "came: process 1" in logs["worker-0"]


async def test_an_mpi_job_ends_with_mpirun_though_its_other_tasks_wait(
    scheduler: RunningScheduler, tmp_path: Path
) -> None:
    # a stand-in: it writes with what it was started
    (tmp_path / "mpirun").write_text('#!/bin/sh\necho "$*"\n')
    (tmp_path / "mpirun").chmod(0o755)
    command = f"PATH={tmp_path}:$PATH {sys.executable} -I {launch.__file__} mpi -- solve --fast"
    state, logs = await run(scheduler, job("mpi", ("main", 2, 1), command=command))
    assert state == "SUCCEEDED"
    assert "-np 2 --hostfile" in logs["main-0"]
    assert "solve --fast" in logs["main-0"]
