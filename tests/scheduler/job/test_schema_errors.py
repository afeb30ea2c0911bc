"""Our keywords decide as jsonschema's own do, apart from the line break that Python's `$` overlooks."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pai_scheduler.job.schema import job_schema
from pai_scheduler.job.schema_errors import schema_errors
from tests.scheduler.job.strategies import any_json, jobs, nearly_jobs
from tests.scheduler.making import make_config
from tests.testbed.properties import examples

reference = Draft202012Validator(dict(job_schema()))


def ends_with_line_break(value: object) -> bool:
    match value:
        case str():
            return value.endswith("\n")
        case dict():
            return any(ends_with_line_break(part) for pair in value.items() for part in pair)
        case list():
            return any(ends_with_line_break(item) for item in value)
    return False


@given(any_json | nearly_jobs | jobs)
@settings(max_examples=examples(200), deadline=None)
def test_the_verdict_is_that_of_the_jsonschema_library(config: Any) -> None:
    if not ends_with_line_break(config):
        assert (not list(schema_errors(config))) == reference.is_valid(config)


@given(nearly_jobs)
@settings(max_examples=examples(200), deadline=None)
def test_the_places_are_those_of_the_jsonschema_library(config: dict[str, Any]) -> None:
    ours = {path for path, _ in schema_errors(config)}
    theirs = {tuple(error.absolute_path) for error in reference.iter_errors(config)}
    # the library finds what is missing, unknown or misnamed at the object; ours is one step further down
    assert {path for path in theirs if path not in ours} <= {path[:-1] for path in ours}


@given(
    extras=st.fixed_dictionaries(
        {},
        optional={
            "preemptible": any_json,
            "priority": any_json,
            "maxRunSeconds": any_json,
            "placement": any_json | st.sampled_from(["near", "spread", "Near"]),
            "after": st.text()
            | st.lists(
                st.integers()
                | st.text(max_size=3)
                | st.fixed_dictionaries({"job": any_json}, optional={"on": any_json}),
                max_size=3,
            ),
        },
    )
)
def test_what_is_read_of_the_extras_is_judged_as_by_the_jsonschema_library(extras: dict[str, Any]) -> None:
    config = make_config(extras=extras)
    assert {path for path, _ in schema_errors(config)} == {
        tuple(error.absolute_path) for error in reference.iter_errors(config)
    }


def test_a_flag_that_is_none_is_named() -> None:
    ((path, message),) = schema_errors(make_config(extras={"preemptible": {}}))
    assert path == ("extras", "preemptible")
    assert str(message) == "preemptible must be true or false, but is an object."


def test_a_placement_that_there_is_not_is_told_which_there_are() -> None:
    assert not list(schema_errors(make_config(extras={"placement": "near"})))
    ((path, message),) = schema_errors(make_config(extras={"placement": "far"}))
    assert path == ("extras", "placement")
    assert str(message) == 'placement must be one of near, spread, but is "far".'
