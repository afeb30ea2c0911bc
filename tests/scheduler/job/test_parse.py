"""A job JSON becomes a JobSpec with the contract's defaults, and is kept as it was submitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai_scheduler.job.json_text import loads_jsonc
from pai_scheduler.job.spec import JobSpec, PortRequest, TaskRole
from pai_scheduler.job.validation import InvalidJobError, config_of, parse_job, sound_part, validate

FIXTURES = Path(__file__).parents[2] / "fixtures" / "jobs"
SMALLEST = {"jobName": "j", "image": "i", "taskRoles": [{"name": "r", "command": "true"}]}


def fixture(name: str) -> Any:
    return loads_jsonc((FIXTURES / name).read_text(encoding="utf-8"))


def test_the_smallest_job_has_the_defaults_of_the_contract() -> None:
    role = TaskRole(
        name="r",
        command="true",
        task_number=1,
        cpu_number=1,
        memory_mb=100,
        shm_mb=64,
        gpu_number=0,
        storage_gb=None,
        ports=(),
        min_failed_task_count=1,
        min_succeeded_task_count=None,
    )
    assert parse_job(SMALLEST) == JobSpec(
        name="j",
        image="i",
        task_roles=(role,),
        virtual_cluster="default",
        gpu_type=None,
        retry_count=0,
        envs={},
        extras={},
    )


def test_every_field_arrives_where_it_belongs() -> None:
    job = {
        "jobName": "j",
        "image": "i",
        "authFile": "a",
        "dataDir": "d",
        "outputDir": "o",
        "codeDir": "c",
        "virtualCluster": "vision",
        "gpuType": "P100",
        "retryCount": -2,
        "jobEnvs": {"isDebug": True, "x": 1.5},
        "extras": {"note": ["kept"]},
        "tmp": "dropped",
        "taskRoles": [
            {
                "name": "r",
                "command": "true",
                "taskNumber": 3.0,
                "cpuNumber": 2,
                "memoryMB": 300,
                "shmMB": 200,
                "gpuNumber": 4,
                "storageGB": 5,
                "portList": [{"label": "a", "beginAt": 80, "portNumber": 2}, {"label": "b"}],
                "minFailedTaskCount": None,
                "minSucceededTaskCount": 2,
            }
        ],
    }
    ports = (PortRequest("a", 80, 2), PortRequest("b", 0, 1))
    spec = parse_job(job)
    assert spec == JobSpec(
        name="j",
        image="i",
        task_roles=(TaskRole("r", "true", 3, 2, 300, 200, 4, 5, ports, None, 2),),
        auth_file="a",
        data_dir="d",
        output_dir="o",
        code_dir="c",
        virtual_cluster="vision",
        gpu_type="P100",
        retry_count=-2,
        envs={"isDebug": True, "x": 1.5},
        extras={"note": ["kept"]},
    )
    assert type(spec.task_roles[0].task_number) is int


def test_an_empty_virtual_cluster_is_the_default_one_and_an_empty_gpu_type_is_any() -> None:
    spec = parse_job({**SMALLEST, "virtualCluster": "", "gpuType": ""})
    assert (spec.virtual_cluster, spec.gpu_type) == ("default", None)


def test_a_failure_count_of_null_is_not_the_absent_one() -> None:
    null, absent = {"name": "a", "command": "x", "minFailedTaskCount": None}, {"name": "b", "command": "x"}
    roles = parse_job({**SMALLEST, "taskRoles": [null, absent]}).task_roles
    assert [role.min_failed_task_count for role in roles] == [None, 1]


def test_the_distributed_example_of_the_tutorial_is_understood() -> None:
    spec = parse_job(fixture("openpai-tensorflow-distributed.jsonc"))
    assert [(role.name, role.task_number, role.gpu_number) for role in spec.task_roles] == [
        ("ps_server", 2, 0),
        ("worker", 2, 4),
    ]
    assert spec.role("worker").min_succeeded_task_count == 2
    assert spec.virtual_cluster == "your_virtual_cluster"
    assert spec.envs == {"batch_size": 32, "job_model": "resnet20"}


def test_a_wrong_job_is_refused_with_everything_that_is_wrong() -> None:
    with pytest.raises(InvalidJobError) as refused:
        parse_job({"jobName": "j", "taskRoles": []})
    assert [error.path for error in refused.value.errors] == ["$.image", "$.taskRoles"]
    assert str(refused.value).splitlines()[0] == "$.image: image is missing, and it is required."


def test_of_a_wrong_job_what_is_right_is_understood() -> None:
    wrong = {
        "jobName": "",
        "gpuType": "P100",
        "extras": {"priority": 1000},
        "taskRoles": [
            {"name": "a", "comand": "x", "gpuNumber": 8, "memoryMB": "much"},
            "no role",
            {"name": "a", "command": "x", "taskNumber": 2, "portList": [{"label": "p"}, {"label": "p"}]},
        ],
    }
    spec = sound_part(wrong, validate(wrong))
    assert spec is not None
    assert [(role.gpu_number, role.memory_mb, role.task_number) for role in spec.task_roles] == [
        (8, 100, 1),
        (0, 100, 2),
    ]
    assert (spec.gpu_type, spec.extras) == ("P100", {})


@pytest.mark.parametrize("wrong", [None, [], {}, {"taskRoles": {}}, {"taskRoles": []}, {"taskRoles": [1]}])
def test_of_a_job_without_task_roles_nothing_is_understood(wrong: object) -> None:
    assert sound_part(wrong, validate(wrong)) is None


def test_what_is_kept_is_what_was_submitted_without_tmp_and_without_defaults() -> None:
    submitted = fixture("scm-helloworld.json")
    kept = config_of(submitted)
    assert kept == {name: value for name, value in submitted.items() if name != "tmp"}
    assert "virtualCluster" not in kept
    assert "tmp" in submitted


def test_whole_numbers_are_kept_as_integers_where_the_schema_has_them() -> None:
    job = {
        **SMALLEST,
        "taskRoles": [{"name": "r", "command": "x", "taskNumber": 2.0, "minFailedTaskCount": 1.0}],
        "jobEnvs": {"rate": 1.0},
        "extras": {"taskNumber": 2.0},
    }
    kept = config_of(job)
    assert repr(kept["taskRoles"][0]["taskNumber"]) == "2"
    assert repr(kept["taskRoles"][0]["minFailedTaskCount"]) == "1"
    assert repr(kept["jobEnvs"]["rate"]) == "1.0"
    assert repr(kept["extras"]["taskNumber"]) == "2.0"


def test_what_is_kept_does_not_change_when_the_submitted_one_does() -> None:
    job = {**SMALLEST, "extras": {"list": [{"a": 1}]}}
    kept, spec = config_of(job), parse_job(job)
    job["extras"]["list"][0]["a"] = 2  # type: ignore[index]
    assert kept["extras"] == spec.extras == {"list": [{"a": 1}]}
