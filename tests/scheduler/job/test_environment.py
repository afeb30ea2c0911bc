"""A task finds in its environment what the documents promise it, and sees its own GPUs only."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from pai_scheduler.cluster.node import Gpu
from pai_scheduler.job.environment import scalar_text, storage_uris, task_environment
from pai_scheduler.job.spec import JobSpec, PortRequest, Scalar, TaskRole
from pai_scheduler.job.task import TaskRef

SPEC = JobSpec(
    name="train-1",
    image="i",
    task_roles=(
        TaskRole("ps_server", "x", task_number=2, cpu_number=2, memory_mb=8192, shm_mb=512),
        TaskRole(
            "worker",
            "x",
            task_number=3,
            cpu_number=4,
            memory_mb=16384,
            gpu_number=2,
            ports=(PortRequest("ssh", 0, 1), PortRequest("grpc", 0, 2)),
            min_failed_task_count=None,
            min_succeeded_task_count=2,
        ),
    ),
    data_dir="$PAI_DEFAULT_FS_URI/data/${PAI_USER_NAME}",
    code_dir="hdfs://other:9000/code",
    virtual_cluster="vision",
)


def environment_of(spec: JobSpec, role: str, index: int, **options: Any) -> Mapping[str, str]:
    """Return a task's environment; the gang's n-th task has the address 10.0.0.n and ports from 1000 n on."""
    addresses, ports = {}, {}
    number = 0
    for one in spec.task_roles:
        for task in range(one.task_number):
            number += 1
            addresses[one.name, task] = f"10.0.0.{number}"
            port, own = 1000 * number, {}
            for request in one.all_ports:
                own[request.label] = tuple(range(port, port + request.count))
                port += request.count
            ports[one.name, task] = own
    given: dict[str, Any] = {
        "user": "alice",
        "addresses": addresses,
        "ports": ports,
        "gpus": (),
        "default_fs_uri": "hdfs://fs:9000",
        "work_dir": "/work",
        "container_id": "c-1",
    }
    return task_environment(spec, TaskRef("j1", 0, role, index), **given | options)


def roles(*named: tuple[str, tuple[str, ...]]) -> JobSpec:
    """Make a job of roles with these names and port labels, two tasks each."""
    return JobSpec(
        "j",
        "i",
        tuple(
            TaskRole(name, "x", task_number=2, ports=tuple(PortRequest(label, 0, 1) for label in labels))
            for name, labels in named
        ),
    )


def test_the_variables_of_the_scm_manual_are_set() -> None:
    env = environment_of(SPEC, "worker", 1)
    expected = {
        "PAI_JOB_NAME": "train-1",
        "PAI_USER_NAME": "alice",
        "PAI_DEFAULT_FS_URI": "hdfs://fs:9000",
        "PAI_TASK_ROLE_COUNT": "2",
        "PAI_TASK_ROLE_LIST": "ps_server,worker",
        "PAI_TASK_ROLE_TASK_COUNT_ps_server": "2",
        "PAI_TASK_ROLE_TASK_COUNT_worker": "3",
        "PAI_HOST_IP_ps_server_0": "10.0.0.1",
        "PAI_HOST_IP_worker_2": "10.0.0.5",
        "PAI_PORT_LIST_worker_2_grpc": "5001,5002",
        "PAI_PORT_LIST_ps_server_1_http": "2000",
        "PAI_RESOURCE_ps_server": "0,2,8192,512",
        "PAI_RESOURCE_worker": "2,4,16384,64",
        "PAI_MIN_FAILED_TASK_COUNT_ps_server": "1",
        "PAI_MIN_FAILED_TASK_COUNT_worker": "",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_ps_server": "",
        "PAI_MIN_SUCCEEDED_TASK_COUNT_worker": "2",
        "PAI_CURRENT_TASK_ROLE_NAME": "worker",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
    }
    assert expected.items() <= env.items()


def test_the_variables_of_openpai_s_tutorial_are_set() -> None:
    env = environment_of(SPEC, "worker", 1)
    expected = {
        "PAI_WORK_DIR": "/work",
        "PAI_DEFAULT_FS_URI": "hdfs://fs:9000",
        "PAI_JOB_NAME": "train-1",
        "PAI_JOB_VC_NAME": "vision",
        "PAI_USER_NAME": "alice",
        "PAI_DATA_DIR": "hdfs://fs:9000/data/alice",
        "PAI_OUTPUT_DIR": "hdfs://fs:9000/Output/alice/train-1",
        "PAI_CODE_DIR": "hdfs://other:9000/code",
        "PAI_CURRENT_TASK_ROLE_NAME": "worker",
        "PAI_CURRENT_TASK_ROLE_TASK_COUNT": "3",
        "PAI_CURRENT_TASK_ROLE_CPU_COUNT": "4",
        "PAI_CURRENT_TASK_ROLE_MEM_MB": "16384",
        "PAI_CURRENT_TASK_ROLE_SHM_MB": "64",
        "PAI_CURRENT_TASK_ROLE_GPU_COUNT": "2",
        "PAI_CURRENT_TASK_ROLE_MIN_FAILED_TASK_COUNT": "",
        "PAI_CURRENT_TASK_ROLE_MIN_SUCCEEDED_TASK_COUNT": "2",
        "PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX": "1",
        "PAI_JOB_TASK_COUNT": "5",
        "PAI_JOB_TASK_ROLE_COUNT": "2",
        "PAI_JOB_TASK_ROLE_LIST": "ps_server,worker",
        "PAI_CONTAINER_HOST_IP": "10.0.0.4",
        "PAI_CONTAINER_HOST_PORT_LIST": "ssh:4000;grpc:4001,4002;http:4003",
        "PAI_CONTAINER_HOST_grpc_PORT_LIST": "4001,4002",
        "PAI_CONTAINER_HOST_http_PORT_LIST": "4003",
        "PAI_TASK_ROLE_ps_server_HOST_LIST": "10.0.0.1:1000,10.0.0.2:2000",
        "PAI_TASK_ROLE_worker_HOST_LIST": "10.0.0.3:3003,10.0.0.4:4003,10.0.0.5:5003",
        "PAI_worker_2_grpc_PORT": "5001",
        "PAI_ps_server_0_ssh_PORT": "1001",
    }
    assert expected.items() <= env.items()


def test_the_variables_that_old_clients_read_are_set() -> None:
    env = environment_of(SPEC, "worker", 1)
    expected = {
        "PAI_USERNAME": "alice",
        "PAI_TASK_ROLE_NAME": "worker",
        "PAI_TASK_ROLE_INDEX": "1",
        "PAI_TASK_INDEX": "1",
        "PAI_TASK_ROLE_NUM": "3",
        "PAI_TASK_ROLES_NUM": "2",
        "PAI_TASKS_NUM": "5",
        "PAI_TASK_CPU_NUM": "4",
        "PAI_TASK_MEM_MB": "16384",
        "PAI_TASK_GPU_NUM": "2",
        "PAI_CURRENT_CONTAINER_IP": "10.0.0.4",
        "PAI_CURRENT_CONTAINER_PORT": "4003",
        "PAI_CONTAINER_HOST_PORT": "4003",
        "PAI_CONTAINER_SSH_PORT": "4000",
        "PAI_CONTAINER_ID": "c-1",
        "HADOOP_USER_NAME": "alice",
        "FRAMEWORK_NAME": "alice~train-1",
    }
    assert expected.items() <= env.items()


def test_all_tasks_are_told_the_same_about_their_gang() -> None:
    first, last = environment_of(SPEC, "ps_server", 0), environment_of(SPEC, "worker", 2)
    shared = {name for name in first if name.startswith(("PAI_HOST_IP_", "PAI_PORT_LIST_", "PAI_worker_"))}
    assert len(shared) == 5 + (2 * 2 + 3 * 3) + 3 * 3
    assert {name: first[name] for name in shared} == {name: last[name] for name in shared}


@pytest.mark.parametrize(
    ("uri", "filled"),
    [
        ("$PAI_DEFAULT_FS_URI/$PAI_USER_NAME/$PAI_JOB_NAME", "hdfs://fs/bob/j.1"),
        ("$PAI_DEFAULT_FS_URI/$PAI_USERNAME/${PAI_USERNAME}_x", "hdfs://fs/bob/bob_x"),
        ("${PAI_DEFAULT_FS_URI}/${PAI_JOB_NAME}_x", "hdfs://fs/j.1_x"),
        ("$PAI_JOB_NAME.tar/$PAI_JOB_NAMES/$PAI_JOB_NAME_x", "j.1.tar/$PAI_JOB_NAMES/$PAI_JOB_NAME_x"),
        ("/$HOME/$$/${}/$(id)/`id`", "/$HOME/$$/${}/$(id)/`id`"),
        ("$$PAI_JOB_NAME", "$j.1"),
        ("${PAI_JOB_NAME", "${PAI_JOB_NAME"),
        ("", ""),
    ],
)
def test_the_documented_variables_are_filled_into_storage_uris_and_nothing_else(
    uri: str, filled: str
) -> None:
    spec = JobSpec("j.1", "i", (), auth_file=uri, data_dir=uri, code_dir=uri, output_dir=f"/{uri}")
    uris = storage_uris(spec, "bob", "hdfs://fs")
    assert (uris.auth_file, uris.data_dir, uris.code_dir, uris.output_dir) == (
        filled,
        filled,
        filled,
        f"/{filled}",
    )


def test_what_was_filled_in_is_not_filled_in_again() -> None:
    uris = storage_uris(JobSpec("j", "i", (), data_dir="$PAI_USER_NAME"), "$PAI_JOB_NAME", "hdfs://fs")
    assert uris.data_dir == "$PAI_JOB_NAME"


def test_an_empty_output_folder_is_one_of_the_job_s_own() -> None:
    assert storage_uris(JobSpec("j", "i", ()), "bob", "hdfs://fs/").output_dir == "hdfs://fs/Output/bob/j"


def test_the_job_s_own_variables_come_last_and_are_literal() -> None:
    envs: dict[str, Scalar] = {
        "PAI_JOB_NAME": "mine",
        "dollar": "$PAI_USER_NAME `id` \\n",
        "yes": True,
        "no": False,
        "null": None,
        "whole": 32,
        "part": 0.1,
        "big": 2**70,
        "空 格": "é",
    }
    env = environment_of(replace(SPEC, envs=envs), "worker", 0)
    assert {name: env[name] for name in envs} == {
        "PAI_JOB_NAME": "mine",
        "dollar": "$PAI_USER_NAME `id` \\n",
        "yes": "true",
        "no": "false",
        "null": "",
        "whole": "32",
        "part": "0.1",
        "big": "1180591620717411303424",
        "空 格": "é",
    }


def test_names_that_no_shell_variable_can_have_get_a_twin() -> None:
    env = environment_of(roles(("a.b~c", ("t.1", "plain"))), "a.b~c", 1)
    pairs = {
        "PAI_HOST_IP_a.b~c_1": "PAI_HOST_IP_a_b_c_1",
        "PAI_TASK_ROLE_TASK_COUNT_a.b~c": "PAI_TASK_ROLE_TASK_COUNT_a_b_c",
        "PAI_TASK_ROLE_a.b~c_HOST_LIST": "PAI_TASK_ROLE_a_b_c_HOST_LIST",
        "PAI_RESOURCE_a.b~c": "PAI_RESOURCE_a_b_c",
        "PAI_PORT_LIST_a.b~c_0_t.1": "PAI_PORT_LIST_a_b_c_0_t_1",
        "PAI_PORT_LIST_a.b~c_0_plain": "PAI_PORT_LIST_a_b_c_0_plain",
        "PAI_a.b~c_1_t.1_PORT": "PAI_a_b_c_1_t_1_PORT",
        "PAI_CONTAINER_HOST_t.1_PORT_LIST": "PAI_CONTAINER_HOST_t_1_PORT_LIST",
    }
    for name, twin in pairs.items():
        assert env[name] == env[twin] != ""
    assert env["PAI_CURRENT_TASK_ROLE_NAME"] == "a.b~c"
    assert env["PAI_CONTAINER_HOST_PORT_LIST"].startswith("t.1:")


def test_a_twin_never_takes_the_name_of_another_role() -> None:
    smaller = TaskRole("a_b", "x", task_number=1)
    spec = JobSpec("j", "i", (TaskRole("a.b", "x", task_number=2), smaller))
    env = environment_of(spec, "a.b", 0)
    assert env["PAI_HOST_IP_a.b_1"] == "10.0.0.2"
    assert env["PAI_HOST_IP_a_b_0"] == "10.0.0.3"
    assert env["PAI_TASK_ROLE_TASK_COUNT_a_b"] == "1"
    assert "PAI_HOST_IP_a_b_1" not in env


def test_of_two_roles_with_the_same_twin_the_first_has_it() -> None:
    env = environment_of(roles(("a~b", ()), ("a.b", ())), "a.b", 0)
    assert env["PAI_HOST_IP_a_b_0"] == env["PAI_HOST_IP_a~b_0"] == "10.0.0.1"


def test_a_twin_never_takes_the_name_of_another_label_of_its_role() -> None:
    env = environment_of(roles(("r", ("x.y", "x_y")), ("s", ("x.y",))), "r", 0)
    assert env["PAI_CONTAINER_HOST_x_y_PORT_LIST"] == env["PAI_PORT_LIST_r_0_x_y"] == "1001"
    assert env["PAI_PORT_LIST_s_0_x_y"] == env["PAI_PORT_LIST_s_0_x.y"] == "3000"


def test_a_twin_never_takes_the_place_of_a_variable_that_has_its_name_by_right() -> None:
    # the first port of label 0.x of task a-1, and of label x of task a_1-0
    env = environment_of(roles(("a_1", ("x",)), ("a", ("0.x",))), "a", 0)
    assert env["PAI_a_1_0_x_PORT"] == "1000"
    assert env["PAI_a_1_0.x_PORT"] == "4000"


@pytest.mark.parametrize(
    ("gpus", "cuda", "nvidia"),
    [
        ((), "", "none"),
        ((Gpu(3, "P100"),), "3", "3"),
        ((Gpu(0, "P100"), Gpu(2, "P100")), "0,2", "0,2"),
        ((Gpu(0, "P100", "GPU-a"), Gpu(1, "P100", "GPU-b")), "GPU-a,GPU-b", "GPU-a,GPU-b"),
        ((Gpu(0, "P100", "GPU-a"), Gpu(1, "P100")), "0,1", "0,1"),
    ],
)
def test_a_task_sees_its_gpus_and_no_other(gpus: tuple[Gpu, ...], cuda: str, nvidia: str) -> None:
    env = environment_of(SPEC, "worker", 0, gpus=gpus)
    assert (env["CUDA_VISIBLE_DEVICES"], env["NVIDIA_VISIBLE_DEVICES"]) == (cuda, nvidia)


def test_a_real_shell_finds_the_variables_by_the_names_in_the_documents() -> None:
    spec = replace(SPEC, envs={"batch_size": 32, "literal": "$(echo no)"})
    script = (
        'echo "$PAI_TASK_ROLE_worker_HOST_LIST|$PAI_CONTAINER_HOST_grpc_PORT_LIST|$PAI_worker_2_grpc_PORT'
        '|$PAI_HOST_IP_ps_server_0|$batch_size|$literal|${CUDA_VISIBLE_DEVICES-unset}"'
    )
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        env=environment_of(spec, "worker", 0),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == (
        "10.0.0.3:3003,10.0.0.4:4003,10.0.0.5:5003|3001,3002|5001|10.0.0.1|32|$(echo no)|"
    )


def test_a_real_program_starts_in_a_role_of_thousands_of_tasks() -> None:
    # the address list alone is longer than Linux lets one variable be
    spec = JobSpec("j", "i", (TaskRole("w", "x", task_number=8000),))
    members = {("w", index): f"10.100.{index // 250}.{index % 250}" for index in range(8000)}
    ports = {key: {"http": (10_000,), "ssh": (10_001,)} for key in members}
    env = environment_of(spec, "w", 7999, addresses=members, ports=ports)
    assert "PAI_TASK_ROLE_w_HOST_LIST" not in env
    done = subprocess.run(
        ["/bin/sh", "-c", "echo $PAI_HOST_IP_w_7999"], env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout == "10.100.31.249\n"


@given(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text())
def test_every_scalar_has_a_text(value: Any) -> None:
    assert isinstance(scalar_text(value), str)
