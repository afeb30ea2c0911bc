"""Our keywords decide as jsonschema's own do, apart from the line break that Python's `$` overlooks."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from jsonschema import Draft202012Validator

from pai_scheduler.job.schema import job_schema
from pai_scheduler.job.schema_errors import schema_errors

from .strategies import any_json, jobs, nearly_jobs

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
@settings(max_examples=200, deadline=None)
def test_the_verdict_is_that_of_the_jsonschema_library(config: Any) -> None:
    if not ends_with_line_break(config):
        assert (not list(schema_errors(config))) == reference.is_valid(config)


@given(nearly_jobs)
@settings(max_examples=200, deadline=None)
def test_the_places_are_those_of_the_jsonschema_library(config: dict[str, Any]) -> None:
    ours = {path for path, _ in schema_errors(config)}
    theirs = {tuple(error.absolute_path) for error in reference.iter_errors(config)}
    # the library finds what is missing, unknown or misnamed at the object; ours is one step further down
    assert {path for path in theirs if path not in ours} <= {path[:-1] for path in ours}
