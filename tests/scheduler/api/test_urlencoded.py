"""Url-encoded bodies, as old clients send them, say the same as JSON."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote_plus

import pytest
from hypothesis import given, settings

from pai_scheduler.api.body import loads_urlencoded
from pai_scheduler.job.validation import InvalidJobError, config_of, parse_job, validate
from tests.scheduler.job.strategies import jobs
from tests.testbed.properties import examples


def encode(value: Any, key: str = "") -> str:
    """Write a value as jQuery's `$.param` does."""
    match value:
        case dict():
            parts = (encode(item, f"{key}[{name}]" if key else name) for name, item in value.items())
        case list():
            parts = (encode(item, f"{key}[{number}]") for number, item in enumerate(value))
        case None:
            return f"{quote_plus(key)}="
        case bool():
            return f"{quote_plus(key)}={str(value).lower()}"
        case float():
            return f"{quote_plus(key)}={value:g}"
        case _:
            return f"{quote_plus(key)}={quote_plus(str(value))}"
    return "&".join(part for part in parts if part)


def test_nested_keys_become_objects_and_lists_and_numbers_are_typed() -> None:
    body = (
        "jobName=a+b%2Bc&image=i&retryCount=-2&taskRoles[0][name]=r&taskRoles[0][cpuNumber]=4"
        "&taskRoles%5B1%5D%5BportList%5D%5B0%5D%5Blabel%5D=123&taskRoles[0][command]=echo+1"
    )
    assert loads_urlencoded(body) == {
        "jobName": "a b+c",
        "image": "i",
        "retryCount": -2,
        "taskRoles": [
            {"name": "r", "cpuNumber": 4, "command": "echo 1"},
            {"portList": [{"label": "123"}]},
        ],
    }


def test_null_is_the_empty_text_where_null_is_allowed() -> None:
    role = "taskRoles[0]"
    body = f"{role}[minFailedTaskCount]=&{role}[minSucceededTaskCount]=2&{role}[cpuNumber]=&gpuType="
    assert loads_urlencoded(body) == {
        "taskRoles": [{"minFailedTaskCount": None, "minSucceededTaskCount": 2, "cpuNumber": ""}],
        "gpuType": "",
    }


def test_a_number_that_is_none_stays_text_for_validation_to_name_it() -> None:
    job = loads_urlencoded("jobName=j&image=i&taskRoles[0][name]=r&taskRoles[0][command]=x&retryCount=1.5")
    [error] = validate(job)
    assert error.path == "$.retryCount"
    assert 'the text "1.5"' in str(error.message)


def test_entries_come_in_the_order_of_their_indices() -> None:
    body = "taskRoles[10][name]=c&taskRoles[2][name]=b&taskRoles[0][name]=a"
    assert [role["name"] for role in loads_urlencoded(body)["taskRoles"]] == ["a", "b", "c"]


def test_free_fields_hold_texts_and_lists_where_the_keys_are_those_of_one() -> None:
    body = "jobEnvs[0]=x&extras[list][]=1&extras[list][]=2&extras[map][1]=a&tmp[a][0][b]=c"
    assert loads_urlencoded(body) == {
        "jobEnvs": {"0": "x"},
        "extras": {"list": ["1", "2"], "map": {"1": "a"}},
        "tmp": {"a": [{"b": "c"}]},
    }


def test_an_enormous_index_takes_no_room() -> None:
    assert loads_urlencoded("taskRoles[999999999][name]=a") == {"taskRoles": [{"name": "a"}]}
    assert loads_urlencoded("taskRoles[9999999999][name]=a") == {"taskRoles": {"9999999999": {"name": "a"}}}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("taskRoles[0=x", "is no field such as taskRoles[0][name]"),
        ("[0]=x", "is no field such as"),
        ("=x", "is no field such as"),
        ("a" + "[b]" * 40 + "=x", "is no field such as"),
        ("jobName=a&jobName=b", "is there twice"),
        ("jobName=a&jobName[b]=c", "is both a value and an object"),
        ("jobName[b]=c&jobName=a", "is there twice"),
        ("jobName=%ff", "not valid UTF-8"),
        ("&".join(["a=1"] * 100_001), "more than 100000 fields"),
    ],
)
def test_a_body_that_makes_no_sense_is_refused_in_a_sentence(body: str, sentence: str) -> None:
    with pytest.raises(InvalidJobError) as refused:
        loads_urlencoded(body)
    [error] = refused.value.errors
    assert error.path.startswith("$")
    assert sentence in str(error.message)


@given(jobs)
@settings(max_examples=examples(100), deadline=None)
def test_a_job_is_the_same_job_however_it_was_encoded(config: dict[str, Any]) -> None:
    # only names can hold brackets or be untyped there
    config = {name: value for name, value in config_of(config).items() if name not in ("jobEnvs", "extras")}
    config.pop("killAllOnCompletedTaskNumber", None)
    assert parse_job(loads_urlencoded(encode(config))) == parse_job(config)
