"""Validation finds everything wrong at once, each with its path, and never stumbles itself."""

from __future__ import annotations

import json
import subprocess
import sys
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pai_scheduler.i18n import LOCALES
from pai_scheduler.job.json_text import loads_jsonc
from pai_scheduler.job.spec import JobSpec
from pai_scheduler.job.validation import MAX_ERRORS, InvalidJobError, config_of, parse_job, validate, warnings
from tests.scheduler.job.strategies import any_json, jobs, nearly_jobs
from tests.testbed.properties import examples

FIXTURES = Path(__file__).parents[2] / "fixtures" / "jobs"


def a_job(**fields: Any) -> dict[str, Any]:
    job = {"jobName": "j", "image": "i", "taskRoles": [{"name": "r", "command": "true"}]}
    return {**job, **fields}


def with_role(**fields: Any) -> dict[str, Any]:
    return a_job(taskRoles=[{"name": "r", "command": "true", **fields}])


def with_ports(*ports: dict[str, Any]) -> dict[str, Any]:
    return with_role(portList=list(ports))


def found(config: object) -> dict[str, str]:
    return {error.path: str(error.message) for error in validate(config)}


@pytest.mark.parametrize("file", sorted(FIXTURES.iterdir()), ids=lambda file: file.name)
def test_the_documents_job_files_are_accepted_unchanged(file: Path) -> None:
    assert validate(loads_jsonc(file.read_text(encoding="utf-8"))) == []


def test_everything_wrong_is_found_at_once() -> None:
    job = {
        "image": "",
        "virtualCluster": 7,
        "taskRoles": [
            {"name": "a", "command": "x", "taskNumber": 0, "memoryMb": 100},
            {"name": "a", "shmMB": 200},
            "b",
        ],
        "jobEnvs": {"": "x", "list": []},
    }
    assert list(found(job)) == [
        "$.jobName",
        "$.image",
        "$.virtualCluster",
        "$.taskRoles[0].taskNumber",
        "$.taskRoles[0].memoryMb",
        "$.taskRoles[1].name",
        "$.taskRoles[1].shmMB",
        "$.taskRoles[1].command",
        "$.taskRoles[2]",
        '$.jobEnvs[""]',
        "$.jobEnvs.list",
    ]


@pytest.mark.parametrize(
    ("config", "path", "sentence"),
    [
        ([], "$", "A job must be an object, but this is a list."),
        (None, "$", "A job must be an object, but this is null."),
        ({**a_job(), "jobName": None}, "$.jobName", "jobName must be text, but is null."),
        (a_job(jobName="."), "$.jobName", 'jobName must not be ".".'),
        (a_job(jobName=".."), "$.jobName", 'jobName must not be "..".'),
        (a_job(jobName="a\n"), "$.jobName", r'but is "a\n".'),
        (a_job(jobName="a/b"), "$.jobName", "only the letters A–Z and a–z, digits and - . _ ~"),
        (a_job(jobName=""), "$.jobName", "jobName must not be empty."),
        (
            a_job(jobName="a" * 256),
            "$.jobName",
            "jobName is too long: 256 characters, where 255 are allowed.",
        ),
        (a_job(image="a b"), "$.image", "must not hold spaces"),
        (a_job(image="a\n"), "$.image", "must not hold spaces or line breaks"),
        (a_job(taskRoles=[]), "$.taskRoles", "taskRoles must not be empty."),
        (a_job(taskRoles={}), "$.taskRoles", "taskRoles must be a list, but is an object."),
        (a_job(taskRoles=[None]), "$.taskRoles[0]", "taskRoles[0] must be an object, but is null."),
        (a_job(retryCount=-3), "$.retryCount", "retryCount must be at least -2, but is -3."),
        (a_job(retryCount=10**5000), "$.retryCount", "too large"),
        (a_job(retryCount=1e300), "$.retryCount", "must be at most 2147483647, but is 1e+300."),
        (a_job(retryCount=float("nan")), "$.retryCount", "not a finite number"),
        (a_job(extras={"a": [float("inf")]}), "$.extras.a[0]", "a[0] is not a finite number"),
        (a_job(extras=[]), "$.extras", "extras must be an object, but is a list."),
        (with_role(name="a-b"), "$.taskRoles[0].name", "digits and . _ ~, but is"),
        (with_role(name="é"), "$.taskRoles[0].name", 'but is "é"'),
        (with_role(taskNumber=True), "$.taskRoles[0].taskNumber", "a whole number, but is true."),
        (with_role(taskNumber="2"), "$.taskRoles[0].taskNumber", 'a whole number, but is the text "2".'),
        (with_role(taskNumber=1.5), "$.taskRoles[0].taskNumber", "but is the number 1.5."),
        (with_role(taskNumber=None), "$.taskRoles[0].taskNumber", "a whole number, but is null."),
        (with_role(cpuNumber=0), "$.taskRoles[0].cpuNumber", "at least 1, but is 0."),
        (with_role(memoryMB=99), "$.taskRoles[0].memoryMB", "at least 100, but is 99."),
        (with_role(gpuNumber=-1), "$.taskRoles[0].gpuNumber", "at least 0, but is -1."),
        (with_role(storageGB=-1), "$.taskRoles[0].storageGB", "at least 0, but is -1."),
        (with_role(command=""), "$.taskRoles[0].command", "command must not be empty."),
        (with_role(command=" \n"), "$.taskRoles[0].command", "command must not be empty."),
        (with_role(command="a\0b"), "$.taskRoles[0].command", "NUL"),
        (with_role(command="é" * 70_000), "$.taskRoles[0].command", "140000 bytes, where 131071 are allowed"),
        (with_role(command="\ud800"), "$.taskRoles[0].command", "half a character"),
        (with_role(minFailedTaskCount=0), "$.taskRoles[0].minFailedTaskCount", "at least 1, but is 0."),
        (with_role(minFailedTaskCount="x"), "$.taskRoles[0].minFailedTaskCount", "a whole number or null"),
        (with_role(minFailedTaskCount=2), "$.taskRoles[0].minFailedTaskCount", "but taskNumber is only 1"),
        (
            with_role(minSucceededTaskCount=4, taskNumber=3.0),
            "$.taskRoles[0].minSucceededTaskCount",
            "minSucceededTaskCount is 4, but taskNumber is only 3",
        ),
        (with_role(shmMB=101), "$.taskRoles[0].shmMB", "(shmMB) is 101 MB, but the memory only 100 MB"),
        (with_role(shmMB=201, memoryMB=200), "$.taskRoles[0].shmMB", "the memory only 200 MB"),
        (with_ports({"beginAt": 1}), "$.taskRoles[0].portList[0].label", "label is missing"),
        (with_ports({"label": "a b"}), "$.taskRoles[0].portList[0].label", "digits and . _ ~"),
        (with_ports({"label": "a", "portNumber": 0}), "$.taskRoles[0].portList[0].portNumber", "at least 1"),
        (with_ports({"label": "a", "beginAt": -1}), "$.taskRoles[0].portList[0].beginAt", "at least 0"),
        (with_ports({"label": "a", "beginAt": 65536}), "$.taskRoles[0].portList[0].beginAt", "at most 65535"),
        (
            with_ports({"label": "a", "beginAt": 65535, "portNumber": 2}),
            "$.taskRoles[0].portList[0].portNumber",
            "The ports 65535–65536 go beyond 65535",
        ),
        (
            with_ports({"label": "a"}, {"label": "b"}, {"label": "a"}),
            "$.taskRoles[0].portList[2].label",
            'The label "a" is taken already',
        ),
        (
            with_ports({"label": "a", "beginAt": 8000, "portNumber": 3}, {"label": "b", "beginAt": 8002}),
            "$.taskRoles[0].portList[1].beginAt",
            'The ports 8002–8002 overlap those of "a" (8000–8002)',
        ),
        (
            a_job(
                taskRoles=[{"name": f"r{index}", "command": "x", "taskNumber": 6000} for index in range(2)]
            ),
            "$.taskRoles",
            "The job has 12000 tasks in all; at most 10000 are allowed.",
        ),
        (a_job(jobEnvs={"a=b": 1}), '$.jobEnvs["a=b"]', "cannot be the name of an environment variable"),
        (a_job(jobEnvs={"a\0": 1}), '$.jobEnvs["a\\u0000"]', "cannot be the name of an environment variable"),
        (a_job(jobEnvs={"a": "\0"}), "$.jobEnvs.a", "NUL"),
        (a_job(jobEnvs={"a": {}}), "$.jobEnvs.a", "text, a number, true, false or null, but is an object"),
        (a_job(jobEnvs={"a": "x" * 131_070}), "$.jobEnvs.a", '"a" is too long: 131072 bytes'),
        (a_job(jobEnvs={f"a{n}": "x" * 120_000 for n in range(9)}), "$.jobEnvs", "jobEnvs is too long"),
        (a_job(jobEnvs={"\udc00": 1}), '$.jobEnvs["\\udc00"]', "not valid text"),
        (a_job(jobEnvs={1: 1}), '$.jobEnvs["1"]', "not valid text"),
        (a_job(image=b"bytes"), "$.image", "image is no JSON value."),
    ],
)
def test_a_wrong_job_is_refused_with_one_path_and_one_sentence(
    config: object, path: str, sentence: str
) -> None:
    errors = found(config)
    assert list(errors)[-1] == path
    assert sentence in errors[path]


@pytest.mark.parametrize(
    ("config", "path", "sentence"),
    [
        (with_role(memoryMb=1), "$.taskRoles[0].memoryMb", "did you mean memoryMB?"),
        (with_role(cpus=1), "$.taskRoles[0].cpus", "did you mean cpuNumber?"),
        (a_job(taskrole=[]), "$.taskrole", "did you mean taskRoles?"),
        (a_job(name="x"), "$.name", "did you mean jobName?"),
        (with_ports({"label": "a", "portNumbr": 1}), "$.taskRoles[0].portList[0].portNumbr", "portNumber?"),
        (with_role(gpuType="P100"), "$.taskRoles[0].gpuType", "to the job itself, beside jobName"),
        (a_job(memoryMB=1), "$.memoryMB", "to a task role (an entry of taskRoles)"),
        (a_job(全然=1), '$["全然"]', '"全然" is no field of a job: remove it.'),
        (a_job(**{"x" * 100_000: 1}), "$." + "x" * 100_000, "is no field of a job: remove it."),
    ],
)
def test_an_unknown_field_is_named_with_the_nearest_known_one_or_where_it_belongs(
    config: object, path: str, sentence: str
) -> None:
    errors = found(config)
    assert list(errors) == [path]
    assert sentence in errors[path]
    assert len(errors[path]) < 200


@pytest.mark.parametrize(
    "config",
    [
        with_role(taskNumber=2.0, minFailedTaskCount=2, minSucceededTaskCount=None),
        with_role(shmMB=100),
        with_role(shmMB=0, storageGB=0),
        with_role(name="...", portList=[{"label": ".."}]),
        with_role(taskNumber=10_000),
        with_ports({"label": "a", "beginAt": 65535}, {"label": "b", "beginAt": 65533, "portNumber": 2}),
        with_ports(
            {"label": "http", "beginAt": 80}, {"label": "b", "beginAt": 0}, {"label": "c", "beginAt": 0}
        ),
        a_job(
            taskRoles=[
                {"name": name, "command": "x", "portList": [{"label": "http", "beginAt": 80}]}
                for name in "ab"
            ]
        ),
        a_job(jobName="a" * 255, retryCount=-2, virtualCluster="", gpuType=""),
        a_job(tmp={"anything": [float("nan"), "\ud800"]}, killAllOnCompletedTaskNumber="?"),
        a_job(extras={"nul": "\0", "deep": {"a": [[[{"b": None}]]]}}),
        a_job(jobEnvs={"空": "é", "a": None, "b": 1e300, "c": 2**1000}),
    ],
)
def test_what_is_unusual_but_allowed_is_accepted(config: object) -> None:
    assert found(config) == {}


def test_a_rule_is_not_held_against_a_field_that_is_wrong_already() -> None:
    job = with_role(taskNumber="2", minFailedTaskCount=3, memoryMB=True, shmMB=5000)
    assert list(found(job)) == ["$.taskRoles[0].taskNumber", "$.taskRoles[0].memoryMB"]


def test_nesting_beyond_the_limit_is_one_error() -> None:
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    [(path, sentence)] = found(a_job(extras={"a": deep})).items()
    assert path == "$.extras.a" + "[0]" * 63
    assert "more than 64 levels" in sentence


@pytest.mark.parametrize(
    "config",
    [
        {"taskRoles": [{}] * 1_000_000},
        {f"field{number}": 1 for number in range(200_000)},
        a_job(jobEnvs={f"v{number}": [] for number in range(200_000)}),
        a_job(extras={"list": [0] * 1_000_000}),
    ],
    ids=["roles", "fields", "variables", "values"],
)
def test_an_enormous_job_is_refused_with_a_bounded_number_of_errors(config: object) -> None:
    errors = validate(config)
    assert 1 <= len(errors) <= MAX_ERRORS
    assert "more than 100000 values" in str(errors[0])


def test_the_library_that_validates_is_loaded_when_it_is_first_needed() -> None:
    code = """
import sys, pai_labextension.widgets, pai_scheduler.client.cli.program, pai_spawner
from pai_scheduler.job.validation import validate
print("jsonschema" in sys.modules)
validate({})
print("jsonschema" in sys.modules)
"""
    said = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert said == ["False", "True"]


def test_an_ignored_field_is_warned_about() -> None:
    [warning] = warnings(a_job(killAllOnCompletedTaskNumber=1))
    assert str(warning).startswith("$.killAllOnCompletedTaskNumber: killAllOnCompletedTaskNumber is ignored")
    assert warnings(a_job()) == []


@pytest.mark.parametrize(
    ("part", "name", "path"),
    [
        ("jobEnvs", "paiAzRDMA", "$.jobEnvs.paiAzRDMA"),
        *(
            ("extras", name, f"$.extras.{name}")
            for name in ("gangAllocation", "node", "nodes", "nodeSelector", "hivedScheduler")
        ),
        ("extras", "com.microsoft.pai.runtimeplugin", '$.extras["com.microsoft.pai.runtimeplugin"]'),
    ],
)
def test_a_field_of_openpais_without_effect_is_warned_about_with_its_path(
    part: str, name: str, path: str
) -> None:
    [warning] = warnings(a_job(**{part: {name: False, "other": 1}}))
    assert (warning.path, str(warning.message)) == (path, f"{part}.{name} is kept, and has no effect here.")
    assert warning.message.in_locale("zh_CN") != str(warning.message)


@pytest.mark.parametrize(
    "extras", [{"tags": ["a"], "mine": {"nodes": 1}}, {"priority": 1}, [], None, "nodes"]
)
def test_other_fields_that_are_not_known_stay_silent(extras: object) -> None:
    assert warnings(a_job(extras=extras, jobEnvs={"isDebug": True, "nodes": 2})) == []
    assert warnings(extras) == []


@given(any_json | nearly_jobs)
@settings(max_examples=examples(300), deadline=None)
def test_any_json_is_either_a_job_or_a_list_of_errors(config: Any) -> None:
    before = deepcopy(config)
    errors = validate(config)
    for error in errors:
        assert error.path.startswith("$")
        assert error.path.encode()
        assert all(error.message.in_locale(locale).encode() for locale in LOCALES)
    assert len({error.path for error in errors}) == len(errors)
    if errors:
        with pytest.raises(InvalidJobError) as refused:
            parse_job(config)
        assert list(refused.value.errors) == errors
    else:
        assert isinstance(parse_job(config), JobSpec)
    assert repr(config) == repr(before)


@given(jobs)
@settings(max_examples=examples(200), deadline=None)
def test_a_right_job_is_accepted_and_is_the_same_after_it_was_kept(config: dict[str, Any]) -> None:
    kept = config_of(config)
    assert "tmp" not in kept
    again = json.loads(json.dumps(kept, allow_nan=False))
    assert parse_job(again) == parse_job(config)


@given(jobs, st.data())
@settings(max_examples=examples(100), deadline=None)
def test_one_wrong_value_is_found_where_it_is(config: dict[str, Any], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(["taskNumber", "cpuNumber", "memoryMB", "gpuNumber"]))
    index = data.draw(st.integers(0, len(config["taskRoles"]) - 1))
    config["taskRoles"][index][name] = data.draw(st.sampled_from(["1", -1, True, None, [], {}, 0.5, 2**40]))
    assert f"$.taskRoles[{index}].{name}" in found(config)
